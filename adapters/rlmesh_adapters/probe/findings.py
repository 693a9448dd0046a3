"""Findings: what the tests of a battery learn from one another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlmesh_adapters.batches import Batch

from .answers import JITTER, Answer, differ, difference
from .lab import Lab, Moved, Session


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
    shown: what the suspect had been asked for, up to the batch whose answer showed it; shown_answer: that answer.
    rival: what the one that answered otherwise had been asked for, up to the same batch.
    is_unsure: whether a difference was seen, and there was no call left to tell chance from memory.
    first_moved: states of the random sources before and after the very first call.
    firsts: number of a batch -> what a fresh instance answers to it.
    hidden_floor: largest difference between fresh instances that are asked the same; 0 where there is none.
    remembers: whether answers depend on what came before. outlives: whether that outlives the instance.
    looks: what the first instance's attributes were like after its first call, None where that cannot be seen.
    changed_by_episode: what of them is another in another episode, None where that cannot be seen.
    outliving: what is not as in the first episode when one with its seed begins again.
    shares: whether instances change one another's answers, None where that is not known. between: what the first
    session answers to batch 0 while another instance plays an episode of its own, None if it was not asked.
    draws: whether it draws random numbers where an episode begins.
    begun: what the second instance's attributes were like when its first episode began, before its first call.
    is_put_back: whether attributes changed, all were like that again when a later episode began, and
    none changed while another instance was asked.
    is_told_of_episodes: whether it has a `reset` or an `on_episode_end`, or asks for the step. is_hiding: whether
    it is told, and anything changed.
    """

    def __init__(self, lab: Lab, *, is_short: bool) -> None:
        self.lab = lab
        self.is_short = is_short
        self.first: Session | None = None
        self.suspect: Session | None = None
        self.shown: list[Batch] = []
        self.rival: list[Batch] = []
        self.shown_answer: list[Answer] = []
        self.is_unsure = False
        self.first_moved: Moved = ([], [])
        self.firsts: dict[int, list[Answer]] = {}
        self.hidden_floor = 0.0
        self.remembers = False
        self.outlives = False
        self.looks: dict[str, object] | None = None
        self.changed_by_episode: list[str] | None = []
        self.outliving: list[str] = []
        self.shares: bool | None = None
        self.between: list[Answer] | None = None
        self.draws = False
        self.begun: dict[str, object] | None = None
        self.is_put_back = False
        self.is_told_of_episodes = self.is_hiding = False

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
                self.accuse(session, session.asked, given)
                return found, made
        return None, made

    def accuse(
        self, session: Session, asked: Sequence[Batch], given: list[Answer], *, rival: Sequence[Batch] = ()
    ) -> None:
        """Note that a session showed a memory; the first one to do so stays the suspect.

        asked: what it had been asked for when it did. given: its answer to the last of it. rival: what another
        had been asked for that answered otherwise; without one, it was a fresh instance.
        """
        if self.suspect is None:
            self.suspect, self.shown, self.shown_answer = session, list(asked), given
            self.rival = list(rival or asked[-1:])


def is_rounding(size: float, scale: float) -> bool:
    """Tell whether a difference is no more than rounding."""
    return size <= JITTER * scale
