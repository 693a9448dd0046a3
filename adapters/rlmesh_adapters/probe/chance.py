"""Chance: is a difference chance, a memory, or another instance's doing?

Chance does not repeat. A memory does: the same past gives the same answer again, and what it is held against
another. Instances that share a memory have one answer alone and another while a second instance is played.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from rlmesh_adapters.batches import Batch

from .answers import Answer, difference
from .findings import Findings, Gap
from .lab import Session
from .series import IS_MEMORY, dependence
from .verdicts import TestResult

_SAMPLES = 128
# How often a past is played again before its answer counts as repeated. Chance passes each time by one in four.
_REPLAYS = 8


def sample(findings: Findings, batch: Batch, row: int) -> tuple[float, str, int]:
    """Tell chance from memory by many answers to one input: chance has no order.

    Returns how strong the order is, in what it shows, and how many answers there were; notes how large chance is.
    """
    count = 10 if findings.is_short else _SAMPLES
    lab = findings.lab
    # A step that goes on would be an order in time.
    counts, lab.counts_steps = lab.counts_steps, False
    with lab.visit() as session:
        answers = [session.ask(batch)[row] for _ in range(count)]
    lab.counts_steps = counts
    floor = max(difference(one, other) for one in answers[:8] for other in answers)
    findings.hidden_floor = max(findings.hidden_floor, floor)
    return *dependence(answers), count


def _is_chance(findings: Findings, gap: Gap) -> bool:
    """Play the past that led to a difference again: a memory gives that answer again, chance does not."""
    findings.is_unsure = True
    costs_little = len(findings.shown) + len(findings.rival) < 5
    replays = _REPLAYS if not findings.is_short else 2 if costs_little else 1
    if _was_between(findings):
        # What another instance did came before that answer: without it, only a memory of its own gives it again.
        is_own = findings.gap(0, findings.shown_answer, _alone(findings)) is None
        is_repeated = is_own and all(_is_repeated(findings) for _ in range(replays - 1))
    else:
        is_repeated = all(_is_repeated(findings) for _ in range(replays))
    findings.shares = False
    # What answers otherwise now may stand where no attribute is.
    findings.is_put_back = findings.is_put_back and is_repeated
    if not is_repeated and findings.is_told_of_episodes:
        is_repeated = findings.shares = _is_meddled_with(findings)
    if not is_repeated and findings.lab.renew is not None:
        # What outlives an instance does not repeat; but it does where the policy's file is run anew.
        is_repeated = findings.outlives = all(_is_repeated(findings, findings.lab.renew) for _ in range(2))
    if not is_repeated and not findings.is_told_of_episodes:
        # Only a constructor could clear it.
        is_repeated = findings.shares = _is_meddled_with(findings)
    if not is_repeated:
        strength, _, _ = sample(findings, findings.shown[-1], gap.row)
        is_repeated = findings.outlives = strength > IS_MEMORY
    findings.is_unsure = False
    if is_repeated:
        return False
    findings.hidden_floor = max(findings.hidden_floor, gap.size)
    findings.suspect, findings.shown, findings.shown_answer, findings.rival = None, [], [], []
    return True


def _was_between(findings: Findings) -> bool:
    """Tell whether the answer that showed a memory came after a call of another instance."""
    return findings.shown_answer is findings.between


def _is_repeated(findings: Findings, renew: Callable[[], Callable[[], Any]] | None = None) -> bool:
    """Tell whether the past gives its answer again, and the one it is held against another.

    The two are played in turn, which only instances that share a memory notice.
    """
    with contextlib.ExitStack() as living:
        other, given = _in_turn(findings, living, renew)
        if findings.gap(0, findings.shown_answer, given) is not None:
            return False
        if len(findings.rival) < 2:
            other.next_episode()
        against = other.ask(findings.rival[-1])
    return findings.gap(0, findings.shown_answer, against) is not None


def _in_turn(
    findings: Findings,
    living: contextlib.ExitStack,
    renew: Callable[[], Callable[[], Any]] | None = None,
    *,
    asks: bool = False,
) -> tuple[Session, list[Answer]]:
    """Play the past, and before its last call, which is answered, another instance's but for its last call.

    Where the other's is a first call, an episode of another seed and of other random numbers begins, in which it
    is not asked, or, with `asks`, is. Returns the other instance and the answer.
    """
    lab = findings.lab
    *past, last = findings.shown
    *rival, _ = findings.rival
    one = living.enter_context(lab.visit(renew and renew()))
    for batch in past:
        one.ask(batch)
    # Built only now, for what a constructor clears.
    other = living.enter_context(lab.visit(renew and renew()))
    for batch in rival:
        other.ask(batch)
    if asks:
        other.play_another(lab.batches[1])
    elif not rival:
        other.begin_another()
    return other, one.ask(last)


def _is_meddled_with(findings: Findings) -> bool:
    """Tell whether the past has one answer alone, and another while a second instance is played, twice over."""
    alone = _alone(findings)
    for asks in (False, True) if _was_between(findings) else (False,):
        in_turn = _together(findings, asks=asks)
        if findings.gap(0, alone, in_turn) is None:
            continue
        for _ in range(1 if findings.is_short else 3):
            if findings.gap(0, alone, _alone(findings)) is not None:
                return False
            if findings.gap(0, in_turn, _together(findings, asks=asks)) is not None:
                return False
        return True
    return False


def _alone(findings: Findings) -> list[Answer]:
    with findings.lab.visit() as session:
        return session.play(findings.shown)


def _together(findings: Findings, *, asks: bool) -> list[Answer]:
    with contextlib.ExitStack() as living:
        return _in_turn(findings, living, asks=asks)[1]


def result(findings: Findings, name: str, gap: Gap | None, calls: int, after: str) -> TestResult:
    """Return what a test of history found: nothing, chance, or a memory, which is noted.

    calls: how many were compared. after: what the answer that differs came after.
    """
    if gap is None:
        return TestResult(
            name=name,
            outcome="pass",
            sentence=f"{calls} answers are those of a fresh instance.",
            numbers={"calls": calls},
        )
    if not findings.hidden_floor and _is_chance(findings, gap):
        return TestResult(
            name=name,
            outcome="noted",
            sentence="Answers vary by chance, from a source that cannot be seen: the same past gives others.",
            numbers={"call": gap.call, "row": gap.row, "gap": gap.size, "calls": calls},
        )
    findings.remembers = True
    return TestResult(
        name=name,
        outcome="fail",
        sentence=f"{after} is answered otherwise than by a fresh instance{_values(gap)}.",
        numbers={"call": gap.call, "row": gap.row, "gap": gap.size, "calls": calls},
    )


def _values(gap: Gap) -> str:
    """Return both answers where they are short, else how far they are apart."""
    pair = [answer.numbers for answer in (gap.given, gap.wanted)]
    if any(numbers.size == 0 for numbers in pair):
        return ""
    if all(numbers.size <= 2 for numbers in pair):
        given, wanted = (", ".join(f"{number:.4g}" for number in numbers) for numbers in pair)
        return f" ({given} instead of {wanted})"
    return f" (by up to {gap.size:.3g})"
