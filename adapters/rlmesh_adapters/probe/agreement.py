"""Agreement: do the policy's corners say the same?"""

from __future__ import annotations

import msgspec

from rlmesh_adapters.corners import CORNER_NAMES

from .answers import Answer, differ, difference
from .findings import Findings
from .lab import Lab
from .verdicts import TestResult


class _Only:
    """A policy with one of its corners."""

    def __init__(self, policy: object, corner: str) -> None:
        setattr(self, corner, getattr(policy, corner))
        for name in ("reset", "close", "spec", "batch_rows"):
            if hasattr(policy, name):
                setattr(self, name, getattr(policy, name))


def check_agreement(findings: Findings) -> TestResult:
    """The first action of every corner, for the same observation, from fresh instances."""
    lab = findings.lab
    session = findings.first
    assert session is not None
    names = [name for name in CORNER_NAMES if name in session.plan.corners]
    if len(names) < 2:
        return TestResult(name="corners", outcome="pass", sentence=f"It has one corner, {names[0]}.")
    first = {name: _first_action(lab, name) for name in names}
    wanted = first[session.plan.corner]
    for name, answer in first.items():
        if answer.failure or differ(wanted, answer, findings.scale):
            return TestResult(
                name="corners",
                outcome="noted",
                sentence=f"{name} cannot be asked by itself ({answer.failure})."
                if answer.failure
                else f"{session.plan.corner} and {name} give different first actions.",
                numbers={"gap": difference(wanted, answer)},
            )
    return TestResult(
        name="corners", outcome="pass", sentence=f"{', '.join(names)} give the same first action.", numbers={}
    )


def _first_action(lab: Lab, corner: str) -> Answer:
    alone = Lab(
        lambda: _Only(lab.build(), corner),
        msgspec.structs.replace(lab.contract, horizon=1),
        [lab.batches[0]],
        lab.budget,
    )
    try:
        return alone.fresh().ask(lab.batches[0], rows=[0])[0]
    finally:
        for session in alone.sessions:
            session.close()
