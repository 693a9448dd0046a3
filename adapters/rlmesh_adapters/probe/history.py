"""History: do answers depend on the calls before them?"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice

from rlmesh_adapters.looks import looks_of

from .attributes import see_another_episode
from .budget import Spent
from .chance import result, sample
from .findings import Findings, Gap
from .lab import Session
from .series import IS_MEMORY
from .verdicts import TestResult

#: Long enough for an action queue of eight to be refilled.
_REFILL = 9
_REPEATS = 12
#: Calls that a switch or a slow drift is waited for.
_MANY = 220
_FEW = 5


def check_repeat(findings: Findings) -> TestResult:
    """The same input, many times: every answer must be the first."""
    session = findings.first
    assert session is not None
    repeats, between = 1 if findings.is_short else _REPEATS, findings.between
    if between is None:
        gap, calls = findings.follow(session, [0] * repeats, start=1)
    else:
        # It was asked once more while another instance played an episode of its own.
        gap, calls = findings.gap(1, findings.fresh_answer(0), between), 1
        if gap is not None:
            findings.accuse(session, session.asked, between)
        elif repeats > 1:
            gap, made = findings.follow(session, [0] * (repeats - 1), start=2)
            calls += made
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
        other.begin()
        findings.begun = looks_of(other.policy)
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
    strength, what, count = sample(findings, findings.lab.batches[0], 0)
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


def _after(session: Session, past: str) -> str:
    return f"After {past}, call {len(session.asked)}"
