"""Progress: on standard error, a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from rlmesh_cli import progress
from rlmesh_cli.progress import make_watcher, status_line
from rlmesh_cli.tallies import Tally


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=made.perf_counter))
    return made


def on(stream: io.StringIO, monkeypatch, *, term: str = "xterm", is_silent: bool = False):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "100")
    return make_watcher(is_silent=is_silent)


@pytest.mark.parametrize(
    ("steps", "done", "planned", "seconds", "text"),
    [
        (840_000, 12, 50, 10.0, "12/50 episodes, 84,000 steps/s, 32 s left"),
        (0, 0, 50, 10.0, "0/50 episodes, 0 steps/s"),
        (5, 0, 2, 0.0, "0/2 episodes, 0 steps/s"),
        (100, 4, 4, 2.0, "4/4 episodes, 50 steps/s, 0 s left"),
    ],
)
def test_line_says_episodes_rate_and_what_is_left(steps, done, planned, seconds, text):
    assert status_line(Tally(steps=steps), done, planned, seconds) == text


def test_silence_is_silent(monkeypatch, capsys):
    watcher = make_watcher(is_silent=True)
    watcher.begin(3)
    watcher.tick(Tally(), 1)
    watcher.end()
    assert capsys.readouterr() == ("", "")
    assert on(Terminal(), monkeypatch, is_silent=True).__class__ is watcher.__class__


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO, "xterm"), (Terminal, "dumb")])
def test_without_a_terminal_there_is_a_plain_line_every_ten_seconds(stream, term, monkeypatch, clock):
    written = stream()
    watcher = on(written, monkeypatch, term=term)
    watcher.begin(8)
    for second in range(1, 26):
        clock.now = 1000.0 + second
        watcher.tick(Tally(steps=100 * second), done=second // 5)
    watcher.end()
    assert written.getvalue().splitlines() == [
        "2/8 episodes, 100 steps/s, 30 s left",
        "4/8 episodes, 100 steps/s, 20 s left",
    ]


def test_short_run_writes_no_line(monkeypatch, clock):
    written = io.StringIO()
    watcher = on(written, monkeypatch)
    watcher.begin(2)
    clock.now += 9.9
    watcher.tick(Tally(), 1)
    watcher.end()
    assert written.getvalue() == ""


def test_on_a_terminal_there_is_a_bar_that_goes_away(monkeypatch, clock):
    written = Terminal()
    watcher = on(written, monkeypatch)
    watcher.begin(50)
    clock.now += 2
    watcher.tick(Tally(steps=168_000), 12)
    text = written.getvalue()
    assert "12/50" in text
    assert "84,000 steps/s" in text
    watcher.end()
    last = written.getvalue()[len(text) :]
    assert "\x1b[2K" in last
    assert "\x1b[?25h" in last


def test_bar_that_never_began_can_end(monkeypatch):
    written = Terminal()
    on(written, monkeypatch).end()
    assert written.getvalue() == ""


def test_bar_leaves_standard_streams_in_place(monkeypatch):
    watcher = on(Terminal(), monkeypatch)
    before = sys.stdout, sys.stderr
    watcher.begin(1)
    assert (sys.stdout, sys.stderr) == before
    watcher.end()
    assert (sys.stdout, sys.stderr) == before
