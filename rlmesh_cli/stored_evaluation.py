"""A stored run as the evaluation it was: its rows added up again, and what its files disagree about."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec

from rlmesh_adapters.advisories import Advisory
from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.contract import answers_for_all
from rlmesh_adapters.errors import HarnessError

from .control_results import ControlResult
from .estimating import Estimator, recorded_estimator
from .evaluation import Evaluation, summary_record
from .gates import GateVerdict, info_metrics, judge, left_open, parse_gate
from .run_reader import StoredRun
from .schema import recorded_rule
from .stats import Summary, summarise
from .stopping import decide, rule_of
from .store import state_of
from .tallies import Tally
from .verifying import Verification
from .wording import exact

#: Numbers that rows add up to may differ from the stored ones by this share: sums in another order.
_ROUNDING = 1e-9


class NoEpisodeError(HarnessError):
    """A run holds nothing that could be shown or judged."""

    def __init__(self, run: StoredRun) -> None:
        super().__init__(
            f"run {run.name} holds no finished episode",
            where=str(run.folder / "episodes.jsonl"),
            mend="name a run that got further, or run the evaluation again",
        )


def evaluation_of(run: StoredRun) -> Evaluation:
    """Return what `eval` said when the run was over, or would have said, by adding up the rows again.

    Without `summary.json` the times and the number of calls are not known, and are 0.
    Raises NoEpisodeError for a run without rows.
    """
    if not run.rows:
        raise NoEpisodeError(run)
    summary = summary_of(run)
    stored = run.summary or {}
    time = stored.get("time", {})
    policy = run.record.get("policy", {})
    corner = policy.get("corner", "")
    instances = stored.get("instances") or policy.get("instances") or "shared"
    verification = stored.get("verification")
    advisories = tuple(
        msgspec.convert({"count": 1, **known}, Advisory) for known in run.record.get("advisories", ())
    )
    cautions = sum(advisory.severity == "caution" for advisory in advisories)
    return Evaluation(
        folder=run.folder,
        status=state_of(run.record, run.folder),
        rows=run.rows,
        summary=summary,
        verdicts=left_open(_verdicts_of(run, summary, cautions), run.record["status"]),
        advisories=advisories,
        tally=_tally_of(stored, summary, is_batched=not corner or answers_for_all(corner, instances)),
        seconds=time.get("total", 0.0),
        in_flight=stored.get("in_flight", 0),
        lanes=run.record.get("env", {}).get("lanes", 1),
        sittings=len(run.record.get("sessions") or ()) or 1,
        workers=time.get("workers", 1),
        discarded=run.discarded,
        is_chunked="_chunk" in corner and run.record["route"].get("ensemble") is None,
        seeded=run.is_seeded,
        corner=corner,
        is_builtin=run.record["route"].get("policy", {}).get("source") in BASELINES,
        instances=instances,
        probe=run.record.get("probe"),
        stopped_at=run.record.get("stopped_at"),
        baseline=stored.get("baseline"),
        controls=tuple(msgspec.convert(known, ControlResult) for known in stored.get("controls") or ()),
        verification=None if verification is None else msgspec.convert(verification, Verification),
    )


def _verdicts_of(run: StoredRun, summary: Summary, cautions: int) -> list[GateVerdict]:
    """Return what came of the gates."""
    route = run.record["route"]
    gates = [parse_gate(gate) for gate in route.get("gates", ())]
    on = route.get("gate_on", "value")
    verdicts = [judge(gate, summary, cautions=cautions, on=on) for gate in gates]
    if route.get("until") != "decided":
        return verdicts
    return decide(rule_of(run.every_row, recorded_estimator(route).confidence), gates, verdicts)


def _tally_of(stored: Mapping[str, Any], summary: Summary, *, is_batched: bool) -> Tally:
    """Return what was counted and measured while the run was played.

    Older runs kept counts beside the times, and counted calls of single rows as if one had answered for all.
    """
    time = stored.get("time", {})
    counts = {name: time.get(name, stored.get(name, 0)) for name in ("vector_steps", "calls", "call_rows")}
    return Tally(
        steps=time.get("steps", summary.steps),
        vector_steps=counts["vector_steps"],
        calls=counts["calls"] if is_batched else counts["call_rows"],
        rows=counts["call_rows"],
        frames_skipped=time.get("frames_skipped", 0),
        step_seconds=time.get("env_step", 0.0),
        reset_seconds=time.get("env_reset", 0.0),
        policy_seconds=time.get("policy", 0.0),
        adapter_seconds=time.get("adapter", 0.0),
        recording_seconds=time.get("recording", 0.0),
    )


def summary_of(run: StoredRun, estimator: Estimator | None = None) -> Summary:
    """Return what the rows of a run add up to; estimator: makes the intervals, if not as the run's route says."""
    route = run.record["route"]
    gates = tuple(parse_gate(gate) for gate in route.get("gates", ()))
    metrics = dict.fromkeys((*route.get("metrics", ()), *info_metrics(gates), *run.record.get("metrics", ())))
    estimator = estimator or recorded_estimator(route)
    summary = summarise(
        run.rows, planned=run.planned, rule=recorded_rule(route), metrics=tuple(metrics), estimator=estimator
    )
    if route.get("until") is None or summary.success.interval is None:
        return summary
    interval = rule_of(run.rows, estimator.confidence).interval
    return msgspec.structs.replace(summary, success=msgspec.structs.replace(summary.success, interval=interval))


class Counting(Estimator, frozen=True, kw_only=True):
    """Leaves out the intervals that take time."""

    method: str = "wilson"

    def mean(self, values: Sequence[float], starts: Sequence[Hashable | None] | None = None) -> None:
        """Return nothing."""

    def iqm(self, values: Sequence[float], starts: Sequence[Hashable | None] | None = None) -> None:
        """Return nothing."""


#: Where rows are only counted.
COUNTING = Counting()


def notes_on(run: StoredRun, summary: Summary) -> list[str]:
    """Return what a reader should know of how a run was read, a sentence each."""
    notes = []
    if run.summary is None:
        states = {"running": "it goes on", "killed": "it was killed"}
        state = states.get(state_of(run.record, run.folder), "it did not come to its end")
        notes.append(f"no summary.json: {state}; {len(run.rows)} of {run.planned} episodes are added up here")
    if run.is_torn:
        notes.append("the last line of episodes.jsonl is half written and left out")
    if run.discarded:
        stopped = run.record["stopped_at"]
        notes.append(f"stopped after {stopped} episodes; {run.discarded} that were played beyond are not counted")
    contradiction = contradiction_of(run, summary)
    if contradiction is not None:
        notes.append(contradiction)
    return notes


def contradiction_of(run: StoredRun, summary: Summary) -> str | None:
    """Return where `summary.json` and the rows disagree, or None; then one of them was edited."""
    if run.summary is None:
        return None
    found = {
        "episodes": summary.episodes,
        "errors": summary.errors,
        "success_rate": summary.success.rate,
        "mean_return": summary.returns.mean if summary.returns is not None else None,
    }
    for name, value in found.items():
        if name in run.summary and not _agree(run.summary[name], value):
            told, added = _shown(run.summary[name]), _shown(value)
            return f"summary.json says {name} {told}, but its rows add up to {added}: one of them was edited"
    return None


def _agree(told: Any, value: float | None) -> bool:
    if value is None or told is None:
        return told is value
    if not math.isfinite(value):
        # An older run does not say which infinity it was.
        return told == value or (isinstance(told, float) and math.isnan(told))
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return is_number and math.isclose(told, value, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _shown(value: Any) -> str:
    return exact(float(value)) if isinstance(value, int | float) else str(value)


def stored_record(run: StoredRun, evaluation: Evaluation, notes: list[str]) -> dict[str, Any]:
    """Return what `show --json` prints: that of `eval --json`, and how the run was read."""
    record = {
        **summary_record(evaluation),
        "started_at": run.record["started_at"],
        "is_torn": run.is_torn,
        "discarded": run.discarded,
        "notes": notes,
    }
    if run.summary is None:  # nobody measured them
        record["time"] = None
    return record
