"""Evaluation: a run that was played, and what `summary.json` says of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rlmesh_adapters.advisories import Advisory

from .control_results import ControlResult
from .episodes import EpisodeResult
from .gates import GateVerdict
from .stats import Summary
from .tallies import Tally
from .times import TimeLedger, how_to_batch, time_ledger

if TYPE_CHECKING:
    from .verifying import Verification

#: Folder in that of a run -> the files that count.
_RECORDED = {"videos": "ep-*.mp4", "steps": "ep-*.parquet"}


class RunInterruptedError(Exception):
    """A run was broken off at once; what had finished is in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder


class Evaluation(msgspec.Struct, kw_only=True):
    """A run that was played, whole or in part.

    folder: where it was written. status: `finished`, `interrupted` or `stopped` (by too many errors).
    in_flight: episodes broken off. lanes: N, of each of the workers.
    discarded: episodes that were played and do not count.
    seconds: wall-clock seconds of the loop. seeded: whether single episodes started from their own seed.
    corner: of the policy, that was called. is_builtin: whether it is one of ours, such as `random`.
    instances: `shared`, `lane` if each lane had a policy object of its own, `episode` if each episode had.
    verification: of some episodes on one lane, None if none was asked for.
    probe: what was found before the run; None if nothing was looked for.
    stopped_at: episodes that count, where a stopping rule ended the run; None if all were to be played.
    baseline: what came of the comparison with it, see claims.comparison_record; None without one.
    broken_off: what was to be done after the episodes and was interrupted, empty if nothing was.
    controls: what built-in policies made of the same episodes. is_chunked: whether planned actions were replayed.
    """

    folder: Path
    status: str
    rows: list[EpisodeResult]
    summary: Summary
    verdicts: list[GateVerdict]
    advisories: tuple[Advisory, ...]
    tally: Tally
    seconds: float
    in_flight: int
    seeded: bool
    lanes: int = 1
    sittings: int = 1
    workers: int = 1
    discarded: int = 0
    is_chunked: bool = False
    corner: str = ""
    is_builtin: bool = False
    instances: str = "shared"
    probe: dict[str, Any] | None = None
    verification: Verification | None = None
    stopped_at: int | None = None
    baseline: dict[str, Any] | None = None
    broken_off: str = ""
    controls: tuple[ControlResult, ...] = ()

    @property
    def cautions(self) -> list[Advisory]:
        """Advisories that put the number, or what the policy saw, in doubt."""
        return [advisory for advisory in self.advisories if advisory.severity == "caution"]

    @property
    def times(self) -> TimeLedger:
        """Where the time went."""
        return time_ledger(
            self.tally,
            self.seconds,
            lanes=self.lanes,
            workers=self.workers,
            alone=how_to_batch(self.corner, self.instances, is_builtin=self.is_builtin),
        )

    @property
    def recorded(self) -> dict[str, int]:
        """How many files were recorded, of `videos` and `steps`; what there is none of is left out."""
        counts = {name: len(list((self.folder / name).glob(kind))) for name, kind in _RECORDED.items()}
        return {name: count for name, count in counts.items() if count}

    @property
    def errors_are_allowed(self) -> bool:
        """Whether a gate on `errors` that passed says how many there may be."""
        return any(
            verdict.passed and verdict.metric == "errors" and verdict.op in ("<=", "<", "==")
            for verdict in self.verdicts
        )

    @property
    def baseline_verdict(self) -> str:
        """`worse`, `not_worse` or `inconclusive`; a run without a baseline is not worse."""
        return "not_worse" if self.baseline is None else str(self.baseline["claim"]["verdict"])


def summary_record(evaluation: Evaluation) -> dict[str, Any]:
    """Return what `summary.json` and `--json` say of a run."""
    summary = evaluation.summary
    returns = summary.returns
    return {
        "schema": "rlmesh.summary.v1",
        "run": str(evaluation.folder),
        "status": evaluation.status,
        "seeded": evaluation.seeded,
        "instances": evaluation.instances,
        "probe": evaluation.probe,
        "verification": msgspec.to_builtins(evaluation.verification),
        "success_rate": summary.success.rate,
        "mean_return": returns.mean if returns is not None else None,
        **msgspec.to_builtins(summary),
        "queue": {
            "planned": summary.planned,
            "started": summary.episodes + evaluation.discarded + evaluation.in_flight,
            "counted": summary.episodes,
            "discarded": evaluation.discarded + evaluation.in_flight,
        },
        "in_flight": evaluation.in_flight,
        "recorded": evaluation.recorded,
        "stopped_at": evaluation.stopped_at,
        "baseline": evaluation.baseline,
        "controls": msgspec.to_builtins(evaluation.controls),
        "gates": msgspec.to_builtins(evaluation.verdicts),
        "advisories": advisory_records(evaluation.advisories),
        "time": msgspec.to_builtins(evaluation.times),
    }


def advisory_records(advisories: Iterable[Advisory]) -> list[dict[str, Any]]:
    """Return advisories as they are written; a subject only where the message is another text."""
    return [
        {
            "code": advisory.code,
            "severity": advisory.severity,
            "message": advisory.message,
            "count": advisory.count,
            **({} if advisory.subject in ("", advisory.message) else {"subject": advisory.subject}),
        }
        for advisory in advisories
    ]
