"""Live screen: lines at the end of a terminal, whatever else is written to it meanwhile."""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import termios

import pytest
from terminals import Terminal

from rlmesh_cli.live_screen import LiveScreen

PANEL = ["title", "#####-----", "lanes 0: episode 3"]


@pytest.fixture
def terminal(monkeypatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "10")
    return Terminal(40, 10)


@pytest.fixture
def live(terminal) -> LiveScreen:
    made = LiveScreen(terminal)
    made.open()
    return made


def past(terminal: Terminal, text: str) -> None:
    """Write as a library or another process does, which knows nothing of us."""
    terminal.screen.feed(text)


def test_lines_stand_below_an_empty_one_and_go_away(terminal, live):
    live.draw(PANEL)
    assert terminal.screen.text == ["", *PANEL]
    live.close()
    assert "".join(terminal.screen.text) == ""
    assert (terminal.screen.row, terminal.screen.column) == (0, 0)


def test_drawing_again_is_in_place_and_one_write(terminal, live):
    live.draw(PANEL)
    before = terminal.screen.writes
    live.draw(["title", "##########", "a"])
    assert terminal.screen.text == ["", "title", "##########", "a"]
    assert terminal.screen.writes == before + 1
    live.draw(["one line"])
    assert [line for line in terminal.screen.text if line] == ["one line"]


def test_what_is_printed_stands_above_at_once(terminal, live):
    live.draw(PANEL)
    print("hello\nyou", file=terminal)
    assert terminal.screen.text == ["hello", "you", "", *PANEL]
    live.draw(PANEL)
    print("again", file=terminal)
    live.close()
    assert [line for line in terminal.screen.text if line] == ["hello", "you", "again"]
    assert terminal.screen.column == 0


def test_loggers_that_hold_the_stream_since_before_are_heard(terminal):
    logger = logging.getLogger("test-live-screen")
    handler = logging.StreamHandler(terminal)
    logger.addHandler(handler)
    live = LiveScreen(terminal)
    live.open()
    live.draw(PANEL)
    logger.warning("one\ntwo\nthree\nfour")
    assert terminal.screen.text == ["one", "two", "three", "four", "", *PANEL]
    live.close()
    logger.removeHandler(handler)


def test_half_a_line_is_kept_and_what_follows_belongs_to_it(terminal, live):
    live.draw(PANEL)
    print("half", end="", file=terminal)
    assert terminal.screen.text == ["", *PANEL]
    print(" a line", end="", file=terminal, flush=True)
    assert terminal.screen.text == ["half a line", *PANEL]
    print("..", end="", file=terminal, flush=True)
    live.draw(PANEL)
    print(".", end="", file=terminal, flush=True)
    assert terminal.screen.text == ["half a line...", *PANEL]
    print(" end\nnext", file=terminal)
    live.draw(PANEL)
    assert terminal.screen.text == ["half a line... end", "next", "", *PANEL]


def test_bar_of_somebody_else_stays_in_its_line(terminal, live):
    for percent in range(0, 101, 10):
        print(f"\r{percent} %", end="", file=terminal, flush=True)
        live.draw(PANEL)
    assert terminal.screen.text == ["100 %", *PANEL]
    live.close()
    assert [line for line in terminal.screen.text if line] == ["100 %"]
    assert terminal.screen.column == 0


@pytest.mark.parametrize("text", ["\x1b[Kred", "x" * 60, "日本"])
def test_half_a_line_that_ends_nobody_knows_where_is_left_alone(terminal, live, text):
    live.draw(PANEL)
    print(text, end="", file=terminal, flush=True)
    print("!", end="", file=terminal, flush=True)
    live.draw(PANEL)
    lines = terminal.screen.text
    assert "".join(lines[:-4]) == text.removeprefix("\x1b[K") + "!"
    assert lines[-4:] == ["", *PANEL]


@pytest.mark.parametrize("text", ["native", "native\n", "^C", "x" * 40, "x" * 41])
def test_what_is_written_past_us_is_not_lost(terminal, live, text):
    live.draw(PANEL)
    past(terminal, text)
    live.draw(PANEL)
    lines = terminal.screen.text
    assert "".join(lines[: -len(PANEL) - 1]).startswith(text.rstrip("\n"))
    assert lines[-len(PANEL) - 1 :] == ["", *PANEL]
    live.close()
    assert "".join(terminal.screen.text).startswith(text.rstrip("\n"))


def test_lines_at_the_end_of_a_full_screen_scroll_what_was_there(terminal, live):
    for number in range(30):
        print(f"line {number}", file=terminal)
    for _ in range(5):
        live.draw(PANEL)
    assert terminal.screen.text == [*(f"line {number}" for number in range(30)), "", *PANEL]
    print("line 30", file=terminal)
    assert terminal.screen.text == [*(f"line {number}" for number in range(31)), "", *PANEL]
    live.close()
    assert [line for line in terminal.screen.text if line] == [f"line {number}" for number in range(31)]


def test_stream_is_as_it_was_afterwards(terminal, monkeypatch):
    before = dict(vars(terminal))
    live = LiveScreen(terminal)
    live.open()
    assert "write" in vars(terminal)
    live.draw(PANEL)
    live.close()
    live.close()
    assert dict(vars(terminal)) == before


def test_terminal_that_went_away_ends_nothing(monkeypatch):
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError("no terminal")

    live = LiveScreen(Gone())
    live.open()
    live.draw(PANEL)
    live.close()


def test_forked_process_writes_as_it_is(terminal, live, tmp_path):
    live.draw(PANEL)
    child = os.fork()
    if not child:
        before = len(terminal.getvalue())
        terminal.write("from a worker")
        (tmp_path / "told").write_text(terminal.getvalue()[before:])
        os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "told").read_text() == "from a worker"


def test_size_of_what_is_no_window_comes_from_the_environment(terminal, live):
    assert live.size == (40, 10)


def test_size_is_that_of_the_window_as_it_is_now(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as stream:
        live = LiveScreen(stream)
        for rows, columns in ((24, 80), (40, 140)):
            fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            assert live.size == (columns, rows)
    os.close(ours)
