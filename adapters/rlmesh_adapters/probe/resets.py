"""Reset: does a new episode begin as with a fresh instance?"""

from __future__ import annotations

from itertools import cycle, islice

from .findings import Findings
from .verdicts import TestResult


def check_reset(findings: Findings) -> TestResult:
    """After a past, a new episode must go on as with a fresh instance, for several calls.

    More than once, with pasts of different lengths: what counts in circles may by chance stand where it began.
    """
    lab = findings.lab
    length, rounds = (3, 2) if findings.is_short else (14, 4)
    numbers = list(islice(cycle([0, 0, *range(1, len(lab.batches))]), length))
    with lab.visit() as fresh:
        wanted = [fresh.ask(lab.batches[number]) for number in numbers]
    session = findings.suspect or findings.first
    assert session is not None
    for more in range(rounds):
        for _ in range(more):
            session.ask(lab.batches[0])
        session.next_episode()
        for call, number in enumerate(numbers):
            gap = findings.gap(call, wanted[call], session.ask(lab.batches[number]))
            if gap is not None:
                return TestResult(
                    name="reset",
                    outcome="fail",
                    sentence=f"A new episode does not begin as with a fresh instance: call {call} differs.",
                    numbers={"call": call, "row": gap.row, "gap": gap.size, "episode": more + 1},
                )
    return TestResult(
        name="reset",
        outcome="pass",
        sentence=f"{rounds} new episodes go on as with a fresh instance, for {length} calls each.",
        numbers={"episodes": rounds, "calls": length},
    )
