"""Mode: is the policy ready to be judged, or still in training?"""

from __future__ import annotations

from rlmesh_adapters.instances import close_quietly
from rlmesh_adapters.modes import EvalMode

from .findings import Findings
from .verdicts import TestResult


def check_mode(findings: Findings) -> TestResult:
    """Modules that were left in training mode; a run puts them into eval mode, and back afterwards."""
    modes = EvalMode()
    policy = findings.lab.build()
    modes.enter(policy)
    left = modes.count_training
    modes.leave()
    close_quietly(policy)
    if not left:
        return TestResult(name="mode", outcome="pass", sentence="No module is in training mode.")
    return TestResult(
        name="mode",
        outcome="noted",
        sentence=f"{left} module{'s' if left > 1 else ''} stood in training mode; a run puts them into eval mode.",
        numbers={"training": left},
    )
