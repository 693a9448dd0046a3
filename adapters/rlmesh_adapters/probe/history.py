"""History: do answers depend on the calls before them?"""

from __future__ import annotations

from itertools import cycle, islice

from .answers import difference
from .findings import Findings, Gap
from .lab import Spent
from .series import IS_MEMORY, dependence
from .verdicts import TestResult

#: Long enough for an action queue of eight to be refilled.
_REFILL = 9
_REPEATS = 12
#: Calls that a switch or a slow drift is waited for.
_MANY = 220
_SAMPLES = 128


def check_repeat(findings: Findings) -> TestResult:
    """The same input, many times: every answer must be the first."""
    session = findings.first
    assert session is not None
    repeats = 1 if findings.is_short else _REPEATS
    gap, calls = findings.follow(session, [0] * repeats, start=1)
    return _result(findings, "repeat", gap, calls, "the same input")


def check_carry_over(findings: Findings) -> TestResult:
    """Other inputs between: the first input must still be answered as at first."""
    session = findings.first
    assert session is not None
    others = range(1, min(len(findings.lab.batches), 3 if findings.is_short else 5))
    between = list(islice(cycle(others), _REFILL))
    numbers = [*between, 0] if findings.is_short else [*between, 0, 0, *between, *between, 0]
    if findings.is_short:
        # What the others are answered is only compared where a fresh instance has said so before.
        for number in between:
            given = session.ask(findings.lab.batches[number])
            gap = findings.gap(0, findings.firsts[number], given) if number in findings.firsts else None
            if gap is not None:
                findings.suspect = session
                return _result(findings, "carry-over", gap, len(between), "other inputs")
        numbers = [0]
    gap, calls = findings.follow(session, numbers)
    return _result(findings, "carry-over", gap, calls, "other inputs")


def check_first_input(findings: Findings) -> TestResult:
    """Two fresh instances with different first inputs must answer a common one alike."""
    session = findings.lab.fresh()
    findings.firsts.setdefault(1, session.ask(findings.lab.batches[1]))
    gap, calls = findings.follow(session, [0], start=1)
    return _result(findings, "first-input", gap, calls + 1, "another first input")


def check_call_count(findings: Findings) -> TestResult:
    """Many calls: no period, no switch after so many."""
    session = findings.lab.fresh()
    answers = []
    try:
        for call in range(_MANY):
            answers.append(session.ask(findings.lab.batches[0]))
            gap = findings.gap(call, findings.fresh_answer(0), answers[-1])
            if gap is not None:
                findings.suspect = session
                return _result(findings, "call-count", gap, call + 1, f"{call} calls")
    except Spent:
        if len(answers) < 2:
            raise
        return TestResult(
            name="call-count",
            outcome="noted",
            sentence=f"Answers stayed the same for {len(answers)} calls; there was no time for {_MANY}.",
            numbers={"calls": len(answers)},
        )
    return _result(findings, "call-count", None, _MANY, "")


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
    return _result(findings, "learning", gap, made + calls, f"{made} varied inputs")


def check_hidden_noise(findings: Findings) -> TestResult:
    """Fresh instances, asked the same: what differs although every known random source was the same?"""
    lab = findings.lab
    one = findings.fresh_answer(0)
    with lab.visit() as other:
        again = other.ask(lab.batches[0])
    gap = findings.gap(0, one, again)
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
    """Tell chance from memory by many answers to one input: chance has no order."""
    lab = findings.lab
    answers = []
    with lab.visit() as session:
        for _ in range(10 if findings.is_short else _SAMPLES):
            answers.append(session.ask(lab.batches[0])[0])
    strength, what = dependence(answers)
    findings.hidden_floor = max(difference(one, other) for one in answers[:8] for other in answers)
    if strength > IS_MEMORY:
        findings.remembers = findings.outlives = True
        return TestResult(
            name="fresh",
            outcome="fail",
            sentence=f"Answers to one input have an order in time ({what}); a fresh instance does not start anew.",
            numbers={"strength": strength, "samples": len(answers)},
        )
    return TestResult(
        name="fresh",
        outcome="noted",
        sentence="Answers vary by chance, from a source that cannot be seen; they have no order in time.",
        numbers={"floor": findings.hidden_floor, "strength": strength, "samples": len(answers)},
    )


def _result(findings: Findings, name: str, gap: Gap | None, calls: int, after: str) -> TestResult:
    if gap is None:
        return TestResult(
            name=name,
            outcome="pass",
            sentence=f"{calls} answers are those of a fresh instance.",
            numbers={"calls": calls},
        )
    findings.remembers = True
    return TestResult(
        name=name,
        outcome="fail",
        sentence=f"After {after}, an input is answered otherwise than by a fresh instance.",
        numbers={"call": gap.call, "row": gap.row, "gap": gap.size, "calls": calls},
    )
