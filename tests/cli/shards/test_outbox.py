"""What a worker says arrives in order: at once where words are few, together where they are many."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from rlmesh_cli.shards.messages import Asks, Traced, Word
from rlmesh_cli.shards.outbox import Outbox, opened


class Line:
    """A channel that keeps what is sent, until it breaks."""

    def __init__(self) -> None:
        self.pieces: list[list[Any]] = []
        self.is_broken = False

    def send(self, obj: Any) -> None:
        if self.is_broken:
            raise BrokenPipeError("nobody listens")
        self.pieces.append(obj)

    def recv(self) -> Any:
        raise NotImplementedError

    @property
    def numbers(self) -> list[int]:
        """What was said, as far as it was sent."""
        return [word.index for piece in self.pieces for word in piece]


def word(number: int) -> Word:
    return Traced(number, [])


def wait_for(happened: Any) -> None:
    until = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_words_that_come_thick_and_fast_go_together_and_in_order() -> None:
    line = Line()
    with opened(line) as outbox:
        until = time.monotonic() + 0.3
        said = 0
        while time.monotonic() < until:
            outbox.say_soon(word(said))
            said += 1
    assert line.numbers == list(range(said))
    # One in 20 ms, and one a round of the thread's; a few more where this machine is slow.
    assert len(line.pieces) < 50 < said


def test_a_word_that_comes_alone_is_sent_at_once() -> None:
    line = Line()
    with opened(line) as outbox:
        for number in range(4):
            time.sleep(0.05)
            outbox.say_soon(word(number))
            assert line.numbers == list(range(number + 1))


def test_a_word_that_none_comes_after_is_sent_all_the_same() -> None:
    line = Line()
    with opened(line) as outbox:
        for turn in range(3):  # the thread goes on its rounds, rests, and goes again
            outbox.say(word(2 * turn))
            outbox.say_soon(word(2 * turn + 1))
            wait_for(lambda turn=turn: line.numbers == list(range(2 * turn + 2)))
            time.sleep(0.15)


def test_what_is_said_now_takes_along_what_waits() -> None:
    line = Line()
    with opened(line) as outbox:
        outbox.say(word(0))
        outbox.say_soon(word(1))
        outbox.say(Asks(is_idle=True))
        assert [type(one) for piece in line.pieces for one in piece] == [Traced, Traced, Asks]


def test_closing_sends_what_waits_and_ends_the_thread() -> None:
    line, before = Line(), set(threading.enumerate())
    outbox = Outbox(line)
    outbox.say(word(0))
    outbox.say_soon(word(1))
    outbox.close()
    outbox.close()
    assert line.numbers == [0, 1]
    assert set(threading.enumerate()) <= before


def test_a_broken_line_is_raised_to_who_says_something() -> None:
    line = Line()
    outbox = Outbox(line)
    outbox.say(word(0))
    line.is_broken = True
    with pytest.raises(BrokenPipeError, match="nobody listens"):
        outbox.say(word(1))


def test_what_breaks_while_nobody_speaks_is_raised_with_the_next_word() -> None:
    line = Line()
    outbox = Outbox(line)
    outbox.say(word(0))
    line.is_broken = True
    outbox.say_soon(word(1))
    wait_for(lambda: outbox._error is not None)
    with pytest.raises(BrokenPipeError, match="nobody listens"):
        outbox.say(word(2))


def test_an_error_of_the_game_is_not_hidden_by_a_broken_line() -> None:
    line = Line()
    with pytest.raises(ZeroDivisionError), opened(line) as outbox:  # noqa: PT012 - what it leaves behind counts
        outbox.say(word(0))
        outbox.say_soon(word(1))
        line.is_broken = True
        raise ZeroDivisionError
