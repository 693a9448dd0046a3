"""Findings: what the tests of a battery learn from one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .answers import JITTER, Answer, differ, difference
from .lab import Lab, Session


class Gap:
    """The first place at which answers differ from what they should be.

    call: 0-based number of the call. row: of the batch. size: of the largest difference.
    wanted, given: the answers.
    """

    def __init__(self, call: int, row: int, wanted: Answer, given: Answer) -> None:
        self.call, self.row = call, row
        self.wanted, self.given = wanted, given
        self.size = difference(wanted, given)


class Findings:
    """What is known of the policy so far.

    lab: where it is asked. is_short: whether calls are few.

    first: the session that was asked first. suspect: the one whose answers showed a memory.
    firsts: number of a batch -> what a fresh instance answers to it.
    hidden_floor: largest difference between fresh instances that are asked the same; 0 where there is none.
    remembers: whether answers depend on what came before. outlives: whether that outlives the instance.
    """

    def __init__(self, lab: Lab, *, is_short: bool) -> None:
        self.lab = lab
        self.is_short = is_short
        self.first: Session | None = None
        self.suspect: Session | None = None
        self.firsts: dict[int, list[Answer]] = {}
        self.hidden_floor = 0.0
        self.remembers = False
        self.outlives = False

    @property
    def scale(self) -> float:
        """What differences are measured against."""
        return self.lab.largest

    def fresh_answer(self, number: int) -> list[Answer]:
        """Return what a fresh instance answers to a batch as its first call."""
        known = self.firsts.get(number)
        if known is None:
            with self.lab.visit() as session:
                known = self.firsts[number] = session.ask(self.lab.batches[number])
        return known

    def gap(self, call: int, wanted: Sequence[Answer], given: Sequence[Answer]) -> Gap | None:
        """Return where two calls' answers differ by more than rounding and hidden noise, None if nowhere."""
        scale = self.scale
        for row, (one, other) in enumerate(zip(wanted, given, strict=True)):
            if not differ(one, other, scale):
                continue
            if self.hidden_floor and difference(one, other) <= self._allowed():
                continue
            return Gap(call, row, one, other)
        return None

    def _allowed(self) -> float:
        # The largest of a few differences of noise is about a third of what is ever seen.
        return 4 * self.hidden_floor

    def follow(self, session: Session, numbers: Iterable[int], *, start: int = 0) -> tuple[Gap | None, int]:
        """Ask a session for batches, each to be answered as a fresh instance does.

        Returns the first gap and how many calls were made.
        """
        made = 0
        for made, number in enumerate(numbers, 1):
            given = session.ask(self.lab.batches[number])
            found = self.gap(start + made - 1, self.fresh_answer(number), given)
            if found is not None:
                self.suspect = self.suspect or session
                return found, made
        return None, made


def is_rounding(size: float, scale: float) -> bool:
    """Tell whether a difference is no more than rounding."""
    return size <= JITTER * scale
