"""Shape: are the answers of the form, length and range that the route needs?"""

from __future__ import annotations

from .findings import Findings
from .verdicts import TestResult


def check_shape(findings: Findings) -> TestResult:
    """Look at every answer that was given: none may be missing, not finite, or of another shape."""
    lab = findings.lab
    if lab.complaints:
        count = len(lab.complaints)
        return TestResult(
            name="shape",
            outcome="fail",
            sentence=f"{count} answer{'s' if count > 1 else ''} cannot be used: {lab.complaints[0]}",
            numbers={"failures": count, "answers": len(lab.answers)},
        )
    shapes = {answer.numbers.shape for answer in lab.answers}
    if len(shapes) > 1:
        # A chunk may be shorter than another, and is then asked for earlier; anything else has one length.
        is_chunked = findings.first is not None and findings.first.plan.is_chunked
        return TestResult(
            name="shape",
            outcome="noted" if is_chunked else "fail",
            sentence=f"Answers have {len(shapes)} different lengths: {sorted(size for (size,) in shapes)}.",
            numbers={"lengths": sorted(size for (size,) in shapes)},
        )
    return TestResult(
        name="shape",
        outcome="pass",
        sentence=f"{len(lab.answers)} answers have the form that the action space asks for.",
        numbers={"answers": len(lab.answers)},
    )
