"""Reset: does a new episode begin as with a fresh instance?"""

from __future__ import annotations

from itertools import cycle, islice

from .budget import Spent
from .findings import Findings
from .verdicts import TestResult


def check_reset(findings: Findings) -> TestResult:
    """After a past, a new episode must go on as with a fresh instance, for several calls.

    More than once, with pasts of different lengths: what counts in circles may by chance stand where it began.
    """
    failed = _again_after_reset(findings)
    if failed is not None:
        return failed
    try:
        return _as_fresh(findings)
    except Spent:
        if not findings.is_short or len(findings.shown) < 2:
            raise
    return TestResult(
        name="reset", outcome="pass", sentence="What showed a memory does not show it in a new episode."
    )


def _as_fresh(findings: Findings) -> TestResult:
    """New episodes, each to be answered as by a fresh instance."""
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


def _again_after_reset(findings: Findings) -> TestResult | None:
    """Where the very past that showed a memory is followed by a reset, the memory must not show again.

    Of a choice between few actions most inputs show nothing, but this one did.
    """
    lab, shown = findings.lab, findings.shown
    if len(shown) < 2:
        return None
    number = next(place for place, batch in enumerate(lab.batches) if batch is shown[-1])
    wanted = findings.fresh_answer(number)
    answers, gaps = [], []
    # Twice, because what differs by chance will hardly differ in one way.
    for _ in range(2):
        with lab.visit() as session:
            for batch in shown[:-1]:
                session.ask(batch)
            session.next_episode()
            answers.append(session.ask(shown[-1]))
        gap = findings.gap(0, wanted, answers[-1])
        if gap is None:
            return None
        gaps.append(gap)
        findings.is_unsure = len(answers) < 2 or findings.gap(0, *answers) is not None
    if findings.is_unsure:
        raise Spent
    return TestResult(
        name="reset",
        outcome="fail",
        sentence="A new episode does not begin as with a fresh instance: what showed a memory shows it still.",
        numbers={"call": 0, "row": gaps[0].row, "gap": gaps[0].size, "episode": 1},
    )
