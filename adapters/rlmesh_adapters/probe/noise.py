"""Noise: how much do answers vary by chance?"""

from __future__ import annotations

from collections.abc import Sequence

from .answers import Answer, difference
from .findings import Findings, is_rounding
from .randomness import are_drawn_from
from .verdicts import TestResult


def check_noise(findings: Findings) -> TestResult:
    """One input, with the known random sources in different states."""
    lab = findings.lab
    assert findings.first is not None
    wanted = findings.fresh_answer(0)
    floor = 0.0
    draws = 2 if findings.is_short else 6
    moved = []
    for noise in range(1, draws + 1):
        given = findings.first.ask(lab.batches[0], noise=noise)
        moved.append(findings.first.moved)
        floor = max([floor, *(difference(one, other) for one, other in zip(wanted, given, strict=True))])
    if not is_rounding(floor, findings.scale) and not findings.hidden_floor:
        # With the random numbers of the first call it must give the first answer, or it was no noise.
        given = findings.first.ask(lab.batches[0])
        gap = findings.gap(draws, wanted, given)
        if gap is not None:
            findings.accuse(findings.first, findings.first.asked, given)
            findings.remembers = True
            return TestResult(
                name="noise",
                outcome="fail",
                sentence="With the random numbers of its first call, it does not give its first answer.",
                numbers={"row": gap.row, "gap": gap.size},
            )
    floor = max(floor, findings.hidden_floor)
    if is_rounding(floor, findings.scale) and not are_drawn_from(moved):
        floor = _at_first(findings, wanted)
    if is_rounding(floor, findings.scale) and (findings.draws or are_drawn_from(moved)):
        return TestResult(
            name="noise",
            outcome="noted",
            sentence="It draws random numbers, which these answers do not show.",
            numbers={"floor": floor},
        )
    if is_rounding(floor, findings.scale):
        return TestResult(
            name="noise",
            outcome="pass",
            sentence="It draws no random numbers of its own.",
            numbers={"floor": floor},
        )
    return TestResult(
        name="noise",
        outcome="noted",
        sentence=f"It draws random numbers: answers to one input differ by up to {floor:.3g}.",
        numbers={"floor": floor},
    )


def _at_first(findings: Findings, wanted: Sequence[Answer]) -> float:
    """Return how far the first answers of instances differ that were given other random numbers.

    What is drawn once and then kept shows in no other call. Only where the first call of an instance drew is it
    asked for.
    """
    lab = findings.lab
    before, after = findings.first_moved
    if before == after:
        return 0.0
    lab.budget.extend(1)
    with lab.visit() as session:
        given = session.ask(lab.batches[0], noise=1)
    return max(difference(one, other) for one, other in zip(wanted, given, strict=True))


def check_draws(findings: Findings) -> TestResult:
    """Whether a policy that remembers draws as well; its answers, which its past changes, cannot tell."""
    assert findings.first is not None
    is_drawn = findings.draws
    if not is_drawn:
        moved = []
        for noise in (1, 2):
            findings.first.ask(findings.lab.batches[0], noise=noise)
            moved.append(findings.first.moved)
        is_drawn = are_drawn_from(moved)
    return TestResult(
        name="noise",
        outcome="noted" if is_drawn else "pass",
        sentence="It draws random numbers." if is_drawn else "It draws no random numbers of its own.",
    )
