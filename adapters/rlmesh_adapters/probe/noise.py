"""Noise: how much do answers vary by chance?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .answers import difference
from .findings import Findings, is_rounding
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
    if is_rounding(floor, findings.scale) and _are_drawn_from(moved):
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


def _are_drawn_from(moved: Sequence[tuple[list[Any], list[Any]]]) -> bool:
    """Tell whether calls drew from some source, by its states before and after each of them.

    Who sets a seed in every call moves the source as well, but to the same place, and draws the same each time.
    """
    sources = zip(*(zip(before, after, strict=False) for before, after in moved), strict=False)
    return any(
        all(before != after for before, after in states) and len({after for _, after in states}) > 1
        for states in sources
    )
