"""Attributes: does the policy change, although its answers do not show it?"""

from __future__ import annotations

from rlmesh_adapters.insides import get_quietly
from rlmesh_adapters.looks import changed, looks_of, named
from rlmesh_adapters.spaces import is_choice

from .findings import Findings
from .verdicts import TestResult


def check_attributes(findings: Findings) -> TestResult:
    """What the first instance is like after its first call, and after all that it was asked.

    A choice between few actions hides what is kept; what changes and has a `reset` is then given to each lane.
    """
    assert findings.first is not None
    before, after = findings.looks, looks_of(findings.first.policy)
    if before is None or after is None:
        return TestResult(name="attributes", outcome="not checked", sentence="They cannot be looked at.")
    names = changed(before, after)
    if not names:
        return TestResult(
            name="attributes", outcome="pass", sentence="None of its attributes changed with its calls."
        )
    is_choosing = is_choice(findings.lab.contract.action)
    findings.is_hiding = is_choosing and callable(get_quietly(findings.first.policy, "reset"))
    shown = "" if findings.remembers else "; no answer that was compared shows it"
    return TestResult(
        name="attributes",
        outcome="noted",
        sentence=f"{named(names)} of it changed with its calls{shown}.",
        numbers={"changed": names},
    )
