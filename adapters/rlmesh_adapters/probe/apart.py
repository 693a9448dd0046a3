"""Apart: does each instance keep what it keeps to itself?"""

from __future__ import annotations

from .findings import Findings
from .verdicts import TestResult


def check_apart(findings: Findings) -> TestResult:
    """What was found when the past that showed a memory was played while another instance played an episode.

    A `reset` or a constructor that clears what stands on the class or in the module clears it for all instances.
    """
    if findings.shares:
        return TestResult(
            name="apart",
            outcome="fail",
            sentence="Two instances that are asked in turn change one another's answers: what they keep is "
            "outside of them, on the class or in the module.",
        )
    return TestResult(
        name="apart", outcome="pass", sentence="Two instances that are asked in turn leave one another alone."
    )
