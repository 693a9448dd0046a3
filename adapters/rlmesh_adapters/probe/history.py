"""History: do answers depend on the calls before them?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle, islice
from typing import Any

from rlmesh_adapters.batches import Batch

from .answers import difference
from .attributes import see_another_episode
from .budget import Spent
from .findings import Findings, Gap
from .lab import Session
from .series import IS_MEMORY, dependence
from .verdicts import TestResult

#: Long enough for an action queue of eight to be refilled.
_REFILL = 9
_REPEATS = 12
#: Calls that a switch or a slow drift is waited for.
_MANY = 220
_SAMPLES = 128
_FEW = 5
# How often a past is played again before its answer counts as repeated. Chance passes each time by one in four.
_REPLAYS = 8


def check_repeat(findings: Findings) -> TestResult:
    """The same input, many times: every answer must be the first."""
    session = findings.first
    assert session is not None
    repeats = 1 if findings.is_short else _REPEATS
    gap, calls = findings.follow(session, [0] * repeats, start=1)
    return result(findings, "repeat", gap, calls, _after(session, "the same input"))


def check_carry_over(findings: Findings) -> TestResult:
    """Other inputs between: the first input must still be answered as at first."""
    session = findings.first
    assert session is not None
    between = list(islice(cycle(range(1, min(len(findings.lab.batches), 5))), _REFILL))
    gap, calls = findings.follow(session, [*between, 0, 0, *between, *between, 0])
    return result(findings, "carry-over", gap, calls, _after(session, "other inputs"))


def check_order(findings: Findings) -> TestResult:
    """Two instances are asked for the same inputs, one of them backwards: each input has one answer.

    It costs two calls an input, and compares as many pasts: of a choice between few actions, most show nothing.
    """
    lab = findings.lab
    back = lab.fresh(None if lab.renew is None else lab.renew())
    numbers = list(range(len(lab.batches)))
    # Of few calls some must be left to look into a difference: a first part is compared before the rest is asked.
    parts = [numbers[:_FEW], numbers[_FEW : 2 * _FEW - 1]] if findings.is_short else [numbers]
    for part in parts:
        gap = _both_ways(findings, back, part)
        if gap is not None:
            return result(findings, "order", gap, len(back.asked), "After the same inputs in another order, one")
    return result(findings, "order", None, 2 * sum(map(len, parts)), "")


def _both_ways(findings: Findings, back: Session, numbers: Sequence[int]) -> Gap | None:
    """Ask the first session for batches and another for the same backwards; accuse the one that errs."""
    forth, batches = findings.first, findings.lab.batches
    assert forth is not None
    before = len(forth.asked)
    answers = [forth.ask(batches[number]) for number in numbers]
    for place in reversed(range(len(numbers))):
        number = numbers[place]
        given = back.ask(batches[number])
        gap = findings.gap(number, answers[place], given)
        if gap is None:
            continue
        if len(back.asked) == 1:
            findings.firsts[number] = given
        if findings.gap(number, findings.fresh_answer(number), given) is not None:
            findings.accuse(back, back.asked, given)
        else:
            findings.accuse(forth, forth.asked[: before + place + 1], answers[place])
        return gap
    return None


def check_first_input(findings: Findings) -> TestResult:
    """Two fresh instances with different first inputs must answer a common one alike."""
    lab = findings.lab
    # Where the file can be run anew, so that also what outlives an instance is another one's.
    session = lab.fresh(None if lab.renew is None else lab.renew())
    first = session.ask(lab.batches[1])
    if lab.renew is None:
        findings.firsts.setdefault(1, first)
    gap, calls = findings.follow(session, [0], start=1)
    return result(findings, "first-input", gap, calls + 1, _after(session, "another first input"))


def check_call_count(findings: Findings) -> TestResult:
    """Many calls: no period, no switch after so many."""
    session = findings.lab.fresh()
    answers = []
    try:
        for call in range(_MANY):
            answers.append(session.ask(findings.lab.batches[0]))
            gap = findings.gap(call, findings.fresh_answer(0), answers[-1])
            if gap is not None:
                findings.accuse(session, session.asked, answers[-1])
                return result(findings, "call-count", gap, call + 1, _after(session, "the same input"))
    except Spent:
        if len(answers) < 2:
            raise
        return TestResult(
            name="call-count",
            outcome="noted",
            sentence=f"Answers stayed the same for {len(answers)} calls; there was no time for {_MANY}.",
            numbers={"calls": len(answers)},
        )
    return result(findings, "call-count", None, _MANY, "")


def check_learning(findings: Findings) -> TestResult:
    """A long and varied past, as a normaliser that learns would take in."""
    session = findings.lab.fresh()
    numbers = list(islice(cycle(range(1, len(findings.lab.batches))), 60))
    made = 0
    for number in numbers:
        session.ask(findings.lab.batches[number])
        made += 1
    # Several inputs: of a choice, one input alone may show nothing.
    gap, calls = findings.follow(session, range(min(8, len(findings.lab.batches))), start=made)
    return result(findings, "learning", gap, made + calls, _after(session, "varied inputs"))


def check_hidden_noise(findings: Findings) -> TestResult:
    """Fresh instances, asked the same: what differs although every known random source was the same?"""
    lab = findings.lab
    one = findings.fresh_answer(0)
    with lab.visit() as other:
        again = other.ask(lab.batches[0])
        see_another_episode(findings, other)
    gap = findings.gap(0, one, again)
    if gap is None and lab.is_lone:
        return TestResult(
            name="fresh",
            outcome="not checked",
            sentence="There is only one object of this policy, so what it keeps for good cannot be seen.",
        )
    if gap is None:
        return TestResult(
            name="fresh",
            outcome="pass",
            sentence="Two fresh instances give the same first answers.",
            numbers={"gap": 0.0},
        )
    if _is_renewed_alike(findings):
        findings.remembers = findings.outlives = True
        return TestResult(
            name="fresh",
            outcome="fail",
            sentence="A second instance answers otherwise than the first did: something outlives the instance, "
            "on its class or in its module.",
            numbers={"gap": gap.size, "row": gap.row},
        )
    return _sampled(findings)


def _is_renewed_alike(findings: Findings) -> bool:
    """Tell whether the policy's file, run anew twice, gives the first answers again: then it is no chance."""
    lab = findings.lab
    if lab.renew is None:
        return False
    for _ in range(2):
        with lab.visit(lab.renew()) as session:
            if findings.gap(0, findings.firsts[0], session.ask(lab.batches[0])) is not None:
                return False
    return True


def _sampled(findings: Findings) -> TestResult:
    strength, what, count = _sample(findings, findings.lab.batches[0], 0)
    if strength > IS_MEMORY:
        findings.remembers = findings.outlives = True
        return TestResult(
            name="fresh",
            outcome="fail",
            sentence=f"Answers to one input have an order in time ({what}); a fresh instance does not start anew.",
            numbers={"strength": strength, "samples": count},
        )
    return TestResult(
        name="fresh",
        outcome="noted",
        sentence="Answers vary by chance, from a source that cannot be seen; they have no order in time.",
        numbers={"floor": findings.hidden_floor, "strength": strength, "samples": count},
    )


def _sample(findings: Findings, batch: Batch, row: int) -> tuple[float, str, int]:
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
    replays = _REPLAYS if not findings.is_short else 2 if len(findings.shown) < 4 else 1
    is_repeated = all(_is_repeated(findings, None) for _ in range(replays))
    if not is_repeated and findings.lab.renew is not None:
        # What outlives an instance does not repeat; but it does where the policy's file is run anew.
        is_repeated = findings.outlives = all(_is_repeated(findings, findings.lab.renew) for _ in range(2))
    if not is_repeated:
        strength, _, _ = _sample(findings, findings.shown[-1], gap.row)
        is_repeated = findings.outlives = strength > IS_MEMORY
    findings.is_unsure = False
    if is_repeated:
        return False
    findings.hidden_floor = max(findings.hidden_floor, gap.size)
    findings.suspect, findings.shown, findings.shown_answer, findings.rival = None, [], [], []
    return True


def _is_repeated(findings: Findings, renew: Callable[[], Callable[[], Any]] | None) -> bool:
    """Tell whether the past gives its answer again, and the one it is held against another."""
    lab = findings.lab
    with lab.visit(renew and renew()) as session:
        other = session.play(findings.rival)
    if findings.gap(0, findings.shown_answer, other) is None:
        return False
    with lab.visit(renew and renew()) as session:
        given = session.play(findings.shown)
    return findings.gap(0, findings.shown_answer, given) is None


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


def _after(session: Session, past: str) -> str:
    return f"After {past}, call {len(session.asked)}"


def _values(gap: Gap) -> str:
    """Return both answers where they are short, else how far they are apart."""
    pair = [answer.numbers for answer in (gap.given, gap.wanted)]
    if any(numbers.size == 0 for numbers in pair):
        return ""
    if all(numbers.size <= 2 for numbers in pair):
        given, wanted = (", ".join(f"{number:.4g}" for number in numbers) for numbers in pair)
        return f" ({given} instead of {wanted})"
    return f" (by up to {gap.size:.3g})"
