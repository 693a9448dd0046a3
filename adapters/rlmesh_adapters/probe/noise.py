"""Noise: how much do answers vary by chance?"""

from __future__ import annotations

from .answers import difference
from .findings import Findings, is_rounding
from .verdicts import TestResult


def check_noise(findings: Findings) -> TestResult:
    """Fresh instances under different states of the known random sources."""
    lab = findings.lab
    wanted = findings.fresh_answer(0)
    floor = 0.0
    draws = 2 if findings.is_short else 6
    for noise in range(1, draws + 1):
        # A policy that remembers would differ by its past.
        session = lab.fresh() if findings.remembers or findings.first is None else findings.first
        given = session.ask(lab.batches[0], noise=noise)
        floor = max([floor, *(difference(one, other) for one, other in zip(wanted, given, strict=True))])
    floor = max(floor, findings.hidden_floor)
    if is_rounding(floor, findings.scale):
        return TestResult(
            name="noise", outcome="pass", sentence="It draws no random numbers.", numbers={"floor": floor}
        )
    return TestResult(
        name="noise",
        outcome="noted",
        sentence=f"It draws random numbers: answers to one input differ by up to {floor:.3g}.",
        numbers={"floor": floor},
    )
