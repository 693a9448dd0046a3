"""The runs of a folder, a line each, damaged ones among them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError, shortened

from .run_reader import StoredRun, list_runs, read_run
from .store import state_of
from .stored_evaluation import COUNTING, summary_of


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in a few words.

    status: as in `run.json`, or `killed` where nobody is at a run that is said to be running.
    episodes: rows that count. success_rate, mean_return: of them; None if not measured.
    damage: why it cannot be read, in which case all but name and folder is None.
    """

    name: str
    folder: str
    env: str | None = None
    policy: str | None = None
    status: str | None = None
    started_at: str | None = None
    episodes: int | None = None
    planned: int | None = None
    success_rate: float | None = None
    mean_return: float | None = None
    damage: dict[str, str] | None = None


def listed_runs(parent: Path) -> list[ListedRun]:
    """Return the runs in a folder, newest first; one that cannot be read hides no other."""
    return [_listed(path) for path in list_runs(parent)]


def _listed(path: Path) -> ListedRun:
    try:
        return _in_words(read_run(path))
    except HarnessError as error:
        damage = {"cause": error.cause, "where": error.where, "mend": error.mend}
        return ListedRun(name=path.name, folder=str(path), damage=damage)


def _in_words(run: StoredRun) -> ListedRun:
    summary = summary_of(run, COUNTING)
    return ListedRun(
        name=run.name,
        folder=str(run.folder),
        env=run.record["route"]["env"]["id"],
        policy=policy_name(run.record),
        status=state_of(run.record, run.folder),
        started_at=run.record["started_at"],
        episodes=summary.episodes,
        planned=summary.planned,
        success_rate=summary.success.rate,
        mean_return=summary.returns.mean if summary.returns is not None else None,
    )


def policy_name(record: dict[str, Any]) -> str:
    """Return what `run.json` calls the policy."""
    label = record.get("policy", {}).get("label")
    return str(label or record["route"].get("policy", {}).get("source", ""))


def policy_with_params(record: dict[str, Any]) -> str:
    """Return what `run.json` calls the policy, with the arguments that it was made with, such as `p (gain=2)`."""
    params = record["route"].get("policy", {}).get("params") or {}
    given = ", ".join(f"{name}={value}" for name, value in params.items())
    return f"{policy_name(record)} ({shortened(given)})" if given else policy_name(record)


def list_record(parent: Path, runs: list[ListedRun]) -> dict[str, Any]:
    """Return what `runs --json` prints."""
    return {"schema": "rlmesh.runs.v1", "folder": str(parent), "runs": msgspec.to_builtins(runs)}
