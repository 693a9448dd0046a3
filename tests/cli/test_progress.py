"""Progress: on standard error, a panel on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
from terminals import Terminal

from rlmesh_cli import progress
from rlmesh_cli.glances import Estimate, Glance
from rlmesh_cli.live_panel import Pace, status_line
from rlmesh_cli.plays import Company
from rlmesh_cli.progress import make_watcher
from rlmesh_cli.tallies import Tally


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


GLANCE = Glance(
    title="policy on Env-v0",
    returns=Estimate(value=2.5),
    least=1.0,
    most=4.0,
    success=Estimate(value=0.75),
    successes=9,
    judged=12,
    company=Company(lanes=[(0, 12, 31)]),
)


def on(
    stream: io.StringIO,
    monkeypatch,
    *,
    term: str = "xterm",
    is_silent: bool = False,
    columns: int = 100,
    rows: int = 24,
):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("LINES", str(rows))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("NO_COLOR", "1")
    return make_watcher(is_silent=is_silent)


def unseen() -> Glance:
    raise AssertionError("nobody looks")


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
    pace = Pace(planned=planned, done=done, fresh=done, steps=steps, seconds=seconds)
    assert status_line(pace, Glance()) == text


def test_line_says_how_the_run_stands():
    pace = Pace(planned=50, done=12, fresh=12, steps=0, seconds=100.0)
    glance = Glance(returns=Estimate(value=2.5), success=Estimate(value=2 / 3), errored=3)
    assert status_line(pace, glance) == (
        "12/50 episodes, 0 steps/s, 5 min 17 s left, mean return 2.50, success 66.7 %, 3 errored"
    )


def test_silence_is_silent_and_does_not_look(monkeypatch, capsys):
    watcher = make_watcher(is_silent=True)
    watcher.begin(3)
    watcher.tick(Tally(), 1, unseen)
    watcher.end()
    assert capsys.readouterr() == ("", "")
    assert on(Terminal(), monkeypatch, is_silent=True).__class__ is watcher.__class__


@pytest.mark.parametrize(("stream", "term"), [(io.StringIO, "xterm"), (Terminal, "dumb"), (Terminal, "unknown")])
def test_without_a_terminal_there_is_a_plain_line_every_ten_seconds(stream, term, monkeypatch, clock):
    written = stream()
    watcher = on(written, monkeypatch, term=term)
    watcher.begin(8)
    for second in range(1, 26):
        clock.now = 1000.0 + second
        watcher.tick(Tally(steps=100 * second), second // 5, (lambda: GLANCE) if second % 10 == 0 else unseen)
    watcher.end()
    assert written.getvalue().splitlines() == [
        "2/8 episodes, 100 steps/s, 30 s left, mean return 2.50, success 75.0 %",
        "4/8 episodes, 100 steps/s, 20 s left, mean return 2.50, success 75.0 %",
    ]


def test_time_left_is_that_of_this_sitting(monkeypatch, clock):
    written = io.StringIO()
    watcher = on(written, monkeypatch)
    watcher.begin(100)
    watcher.tick(Tally(), 90, unseen)
    clock.now += 10
    watcher.tick(Tally(steps=1000), 92, Glance)
    assert written.getvalue() == "92/100 episodes, 100 steps/s, 40 s left\n"


def test_short_run_writes_no_line(monkeypatch, clock):
    written = io.StringIO()
    watcher = on(written, monkeypatch)
    watcher.begin(2)
    clock.now += 9.9
    watcher.tick(Tally(), 1, unseen)
    watcher.end()
    assert written.getvalue() == ""


def test_on_a_terminal_there_is_a_panel_that_goes_away(monkeypatch, clock):
    written = Terminal(100, 24)
    watcher = on(written, monkeypatch)
    watcher.begin(50)
    watcher.tick(Tally(), 0, unseen)
    clock.now += 2
    watcher.tick(Tally(steps=168_000), 12, lambda: GLANCE)
    assert written.screen.text == [
        "",
        "policy on Env-v0",
        "█" * 12 + "░" * 38 + "  12 of 50 episodes (24 %)",
        "time       2 s gone, about 6 s left, 84,000 steps/s",
        "return     mean 2.50, min 1, max 4",
        "success    9 of 12 (75.0 %)",
        "errored    none",
        "lanes      0: episode 12, step 31",
    ]
    watcher.end()
    assert "".join(written.screen.text) == ""


@pytest.mark.parametrize(("columns", "rows"), [(59, 24), (100, 9), (20, 3)])
def test_small_window_gets_one_line(columns, rows, monkeypatch, clock):
    written = Terminal(columns, rows)
    watcher = on(written, monkeypatch, columns=columns, rows=rows)
    watcher.begin(50)
    watcher.tick(Tally(), 0, unseen)
    clock.now += 2
    watcher.tick(Tally(steps=168_000), 12, lambda: GLANCE)
    (line,) = [line for line in written.screen.text if line]
    assert line.startswith("12/50 episodes")
    assert len(line) < columns
    watcher.end()


def test_panel_follows_a_window_that_changes_its_size(monkeypatch, clock):
    written = Terminal(100, 24)
    watcher = on(written, monkeypatch)
    watcher.begin(50)
    clock.now += 2
    watcher.tick(Tally(), 12, lambda: GLANCE)
    monkeypatch.setenv("COLUMNS", "40")
    written.screen.columns = 40
    watcher.tick(Tally(), 12, lambda: GLANCE)
    assert [line for line in written.screen.text if line] == ["12/50 episodes, 0 steps/s"]
    watcher.end()


def test_run_that_is_soon_over_does_not_flash_up(monkeypatch, clock):
    written = Terminal()
    watcher = on(written, monkeypatch)
    watcher.begin(2)
    clock.now += 0.2
    watcher.tick(Tally(), 1, unseen)
    assert written.getvalue() == ""
    watcher.end()
    assert "".join(written.screen.text) == ""


def test_colours_come_and_go_with_no_color(monkeypatch, clock):
    texts = []
    for no_color in ("", "1"):
        written = Terminal()
        watcher = on(written, monkeypatch)
        monkeypatch.setenv("NO_COLOR", no_color)
        watcher.begin(50)
        clock.now += 2
        watcher.tick(Tally(), 12, lambda: GLANCE)
        texts.append(written.getvalue())
        watcher.end()
    assert ["\x1b[32m" in text for text in texts] == [True, False]


def test_panel_that_never_began_can_end(monkeypatch):
    written = Terminal()
    on(written, monkeypatch).end()
    assert written.getvalue() == ""


def test_panel_leaves_standard_streams_in_place(monkeypatch):
    watcher = on(Terminal(), monkeypatch)
    before = sys.stdout, sys.stderr
    watcher.begin(1)
    assert (sys.stdout, sys.stderr) == before
    watcher.end()
    assert (sys.stdout, sys.stderr) == before
