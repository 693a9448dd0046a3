"""Battery: all tests in order, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rlmesh_adapters.batches import Batch, leaves, take_rows
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.looks import looks_of

from .agreement import check_agreement
from .apart import check_apart
from .attributes import check_attributes
from .budget import Budget, Deadline, Spent
from .coupling import check_coupling
from .findings import Findings
from .guest import check_guest
from .history import (
    check_call_count,
    check_carry_over,
    check_first_input,
    check_hidden_noise,
    check_learning,
    check_order,
    check_repeat,
)
from .lab import Lab
from .mode import check_mode
from .noise import check_draws, check_noise
from .resets import check_reset
from .shape import check_shape
from .steps import check_steps
from .verdicts import ProbeVerdict, TestResult

#: Calls of the short form that a run makes before it begins; of a policy that is told of episodes, two more.
SHORT_CALLS = 25
_EARLY = (
    ("repeat", check_repeat),
    ("first-input", check_first_input),
    ("carry-over", check_carry_over),
    ("order", check_order),
)
_SHORT = (("repeat", check_repeat), ("order", check_order))
_LATE = (("call-count", check_call_count), ("learning", check_learning))


def run_battery(
    build: Callable[[], Any],
    contract: RouteContract,
    batches: Sequence[Batch],
    *,
    clock: Callable[[], float],
    is_short: bool = False,
    most_seconds: float | None = None,
    renew: Callable[[], Callable[[], Any]] | None = None,
    changes: Callable[[], list[str]] = list,
    deadline: Deadline | None = None,
    short_calls: int = SHORT_CALLS,
) -> ProbeVerdict:
    """Test a policy as a route would use it.

    build: returns a fresh policy. contract: of the route. batches: at least four different batches (M, ...) of
    observations, M at least 4. clock: returns seconds. is_short: few calls, as before a run.
    most_seconds: what is not checked within is listed as such. renew: see Lab. changes: see check_guest.
    deadline: see Lab. short_calls: that the short form may make.

    Raises HarnessError where no instance can be built or configured. Global random sources are put back.
    """
    budget = Budget(most_calls=short_calls if is_short else None, most_seconds=most_seconds, clock=clock)
    lab = Lab(build, contract, batches, budget, renew=renew, deadline=deadline)
    findings = Findings(lab, is_short=is_short)
    results: list[TestResult] = []
    try:
        findings.first = lab.fresh()
        plan = findings.first.plan
        is_batched = plan.corner.endswith("_batch")
        if not is_batched:
            # A lane at a time: several rows in one call would be several calls.
            lab.use(_single(batches))
        _run(findings, results, changes, is_batched=is_batched)
    finally:
        lab.close()
    if lab.overdue:
        results.append(TestResult(name="time", outcome="not checked", sentence=lab.overdue))
    return ProbeVerdict(
        **_overall(results, findings, passes_state=plan.passes_state),
        tests=tuple(results),
        is_unsure=findings.is_unsure or (findings.remembers and not _is_checked(results, "reset")),
        is_put_back=findings.is_put_back,
        is_lone=lab.is_lone,
        corner=plan.corner,
        calls=budget.calls,
        instances=budget.instances,
        seconds=budget.seconds,
    )


def _single(batches: Sequence[Batch]) -> list[Batch]:
    rows = len(leaves(batches[0])[0])
    # Rows of a batch lie far from one another, so those asked first differ much.
    return [take_rows(batch, [row]) for batch in batches for row in range(rows)]


def _run(
    findings: Findings, results: list[TestResult], changes: Callable[[], list[str]], *, is_batched: bool
) -> None:
    lab = findings.lab

    def check(name: str, test: Callable[[Findings], TestResult]) -> None:
        try:
            results.append(test(findings))
        except Spent:
            sentence = "There was no time, or no call, left for it."
            if findings.is_unsure:
                # What is known so far is no reason to refuse a policy.
                sentence = "Answers differed, and no call was left to tell chance from memory."
            results.append(TestResult(name=name, outcome="not checked", sentence=sentence))

    assert findings.first is not None
    try:
        findings.firsts[0] = findings.first.ask(lab.batches[0])
        findings.first_moved = findings.first.moved
        findings.looks = looks_of(findings.first.policy)
    except Spent:
        results.append(TestResult(name="fresh", outcome="not checked", sentence="There was no time for one call."))
        return
    if any(answer.failure for answer in findings.firsts[0]):
        results.append(check_shape(findings))
        return
    check("fresh", check_hidden_noise)
    for name, test in _early(findings):
        check(name, test)
        if findings.remembers and findings.is_short:
            break
    if not findings.is_short:
        for name, test in [("steps", check_steps), *_LATE] if _goes_by_step(findings) else _LATE:
            if not findings.remembers:
                check(name, test)
    if findings.remembers and findings.shares is not None:
        results.append(check_apart(findings))
    if not findings.remembers:
        check("noise", check_noise)
    if findings.remembers:
        check("reset", check_reset)
    if is_batched:
        check("lane-coupling", check_coupling)
    if all(result.name != "noise" for result in results):
        check("noise", check_draws)
    if not findings.is_short:
        check("corners", check_agreement)
        check("guest", lambda known: check_guest(known, changes))
        check("mode", check_mode)
    check("attributes", check_attributes)
    check("shape", check_shape)


def _early(findings: Findings) -> Sequence[tuple[str, Callable[[Findings], TestResult]]]:
    """Return the first tests of history.

    Of few calls, episodes that go on take the place of another order where the policy asks for its step.
    """
    if not findings.is_short:
        return _EARLY
    return [*_SHORT[:1], ("steps", check_steps)] if _goes_by_step(findings) else _SHORT


def _goes_by_step(findings: Findings) -> bool:
    """Tell whether the policy asks for its step; one that passes its state is asked for the first alone."""
    assert findings.first is not None
    return "step" in findings.lab.read and not findings.first.plan.passes_state


def _is_checked(results: Sequence[TestResult], name: str) -> bool:
    return any(result.name == name and result.outcome != "not checked" for result in results)


def _overall(results: Sequence[TestResult], findings: Findings, *, passes_state: bool) -> dict[str, str]:
    outcome = {result.name: result.outcome for result in results}
    if outcome.get("shape") == "fail":
        return {"verdict": "broken", "recommended": "nothing"}
    if outcome.get("lane-coupling") == "fail" and findings.is_hiding and not findings.remembers:
        # Rows that share what was chosen for an episode change one another's; with an instance each they cannot.
        return {"verdict": "episode_clean", "recommended": "lane"}
    if outcome.get("lane-coupling") == "fail":
        return {"verdict": "couples", "recommended": "one lane"}
    if findings.shares and outcome.get("reset") != "fail":
        return {"verdict": "couples", "recommended": "one lane"}
    if findings.remembers:
        if outcome.get("reset") == "pass" and not findings.outlives:
            return {"verdict": "episode_clean", "recommended": "lane"}
        if not _is_checked(results, "reset") and not findings.outlives:
            return {"verdict": "unchecked", "recommended": "lane"}
        return {
            "verdict": "leaks",
            "recommended": "nothing" if findings.outlives or findings.shares else "episode",
        }
    if outcome.get("guest") == "fail":
        return {"verdict": "broken", "recommended": "nothing"}
    is_unsure = findings.is_unsure or bool(findings.lab.overdue)
    if is_unsure or "not checked" in (outcome.get("repeat", "not checked"), outcome.get("fresh")):
        return {"verdict": "unchecked", "recommended": "lane"}
    is_noisy = findings.hidden_floor > 0 or outcome.get("noise") == "noted"
    return {
        "verdict": "stochastic" if is_noisy else "stateless",
        "recommended": "state" if passes_state else "lane" if findings.is_hiding else "shared",
    }


def verdict_record(verdict: ProbeVerdict) -> dict[str, Any]:
    """Return a verdict as it is written."""
    record: dict[str, Any] = msgspec.to_builtins(verdict)
    return {**record, "meaning": verdict.meaning}
