"""Reset: does a new episode begin as with a fresh instance?"""

from __future__ import annotations

from itertools import cycle, islice

from .findings import Findings
from .verdicts import TestResult


def check_reset(findings: Findings) -> TestResult:
    """After a past, a new episode must go on as with a fresh instance, for several calls."""
    lab = findings.lab
    length = 6 if findings.is_short else 14
    numbers = list(islice(cycle([0, 0, *range(1, len(lab.batches))]), length))
    fresh = lab.fresh()
    wanted = [fresh.ask(lab.batches[number]) for number in numbers]
    session = findings.suspect or findings.first
    assert session is not None
    session.next_episode()
    for call, number in enumerate(numbers):
        gap = findings.gap(call, wanted[call], session.ask(lab.batches[number]))
        if gap is not None:
            return TestResult(
                name="reset",
                outcome="fail" if findings.remembers else "noted",
                sentence=f"A new episode does not begin as with a fresh instance: call {call} differs.",
                numbers={"call": call, "row": gap.row, "gap": gap.size},
            )
    return TestResult(
        name="reset",
        outcome="pass",
        sentence=f"A new episode goes on as with a fresh instance, for {length} calls.",
        numbers={"calls": length},
    )
