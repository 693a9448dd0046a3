"""Guest: does the policy leave alone what is not its own?"""

from __future__ import annotations

from collections.abc import Callable

from .findings import Findings
from .verdicts import TestResult


def check_guest(findings: Findings, changes: Callable[[], list[str]]) -> TestResult:
    """Input edited in place, a buffer returned twice, a global generator reseeded, other changes around it.

    changes: returns what else is different from before the first call, in words.
    """
    lab = findings.lab
    session = findings.first
    assert session is not None
    faults = changes()
    if session.reseeds(lab.batches[0]):
        faults.append("it reseeds a global random generator at every call")
    edits = sum(side.edited for side in lab.sides)
    if edits:
        faults.append("it writes into the observations it is given")
    reuses = sum(side.reused for side in lab.sides)
    if reuses:
        faults.append("it returns a buffer that it changes later")
    if not faults:
        return TestResult(
            name="guest",
            outcome="pass",
            sentence="It leaves its input, its answers, the random generators and the working folder alone.",
            numbers={"calls": len(lab.sides)},
        )
    return TestResult(
        name="guest",
        outcome="noted" if faults == ["it started threads"] else "fail",
        sentence=f"As a guest: {', '.join(faults)}.",
        numbers={"edits": edits, "reuses": reuses},
    )
