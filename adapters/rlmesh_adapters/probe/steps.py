"""Steps: a policy that goes by the step it is told, in episodes that go on.

What such a policy answers later in an episode cannot be held against a fresh instance's first answer: at another
step it may rightly say something else, and where step 0 clears what it keeps, it shows no memory at step 0.
"""

from __future__ import annotations

from .chance import result
from .findings import Findings, Gap
from .verdicts import TestResult

#: Steps that the two episodes last.
_STEPS = 40
# Of few calls some must be left to look into a difference: a first part is compared before the rest is asked.
_FEW_STEPS = (5, 9)
#: At every third step, and so at the first, the two episodes differ.
_APART = 3


def check_steps(findings: Findings) -> TestResult:
    """Two instances play an episode each, whose different pasts meet in common inputs: each has one answer."""
    lab = findings.lab
    lab.counts_steps = True
    try:
        gap, compared = _meet(findings, _FEW_STEPS if findings.is_short else (_STEPS,))
        found = result(findings, "steps", gap, compared, "After other inputs in its episode, one")
    finally:
        # What was found in episodes that go on is looked into in such.
        lab.counts_steps = findings.remembers
    if gap is not None:
        return found
    return TestResult(
        name="steps",
        outcome="pass",
        sentence=f"In two episodes with different pasts, {compared} common inputs are answered alike.",
        numbers={"compared": compared},
    )


def _meet(findings: Findings, parts: tuple[int, ...]) -> tuple[Gap | None, int]:
    lab, compared, begun = findings.lab, 0, 0
    one, other = lab.fresh(), lab.fresh()
    count = len(lab.batches)
    for end in parts:
        wanted = [one.ask(lab.batches[step % count]) for step in range(begun, end)]
        for step in range(begun, end):
            is_apart = step % _APART == 0
            given = other.ask(lab.batches[(step + count // 2 if is_apart else step) % count])
            if is_apart:
                continue
            compared += 1
            gap = findings.gap(step, wanted[step - begun], given)
            if gap is not None:
                findings.accuse(other, other.asked, given, rival=one.asked[: step + 1])
                return gap, compared
        begun = end
    return None, compared
