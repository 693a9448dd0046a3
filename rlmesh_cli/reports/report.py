"""Report: how a run ended, which bars it was held against, and where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from rlmesh_adapters.errors import shortened
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.exits import Exit
from rlmesh_cli.gates import GateVerdict
from rlmesh_cli.run_reader import read_run
from rlmesh_cli.stored_evaluation import evaluation_of
from rlmesh_cli.tables import verification_text
from rlmesh_cli.wording import exact

#: What an exit code means, for readers who do not know it.
MEANINGS = {
    Exit.DONE: "the run finished and no stated bar was missed",
    Exit.MISSED: "the run finished and a stated bar was missed",
    Exit.USAGE: "the run could not be made as asked, which you can mend",
    Exit.INCONCLUSIVE: "the run finished and decides nothing",
    Exit.ERRORED: "the run finished and some episodes errored",
    Exit.BUG: "a bug of rlmesh",
    Exit.INTERRUPTED: "the run was interrupted, finished episodes are saved",
}


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What is told of a run.

    evaluation: None if nothing was played. strict: whether cautions count as a missed bar.
    cause: why there is no whole run, empty if there is one. command: as it was typed.
    record: of `run.json`, empty if there is none.
    """

    code: Exit
    evaluation: Evaluation | None
    strict: bool
    command: str
    cause: str = ""
    record: dict[str, Any] = {}

    @property
    def rows(self) -> list[EpisodeResult]:
        """The episodes that were played."""
        return self.evaluation.rows if self.evaluation is not None else []

    @property
    def errored(self) -> list[EpisodeResult]:
        """The episodes that could not be finished."""
        return [row for row in self.rows if row.is_error]

    @property
    def env(self) -> str | None:
        """The environment's id."""
        return self._named("env", "id")

    @property
    def policy(self) -> str | None:
        """The policy's label."""
        return self._named("policy", "label")

    def _named(self, section: str, key: str) -> str | None:
        value = self.record.get(section, {}).get(key)
        return None if value is None else str(value)


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One bar that a run was held against. text: what was measured, and what the bar is."""

    name: str
    state: Literal["met", "missed", "undecided"]
    text: str


_BASELINE_STATES: dict[str, Literal["met", "missed", "undecided"]] = {
    "not_worse": "met",
    "worse": "missed",
    "inconclusive": "undecided",
}


def ending(report: Report) -> str:
    """Return why a run is not whole; empty if it is."""
    if report.cause:
        return report.cause
    run = report.evaluation
    if run is not None and run.broken_off:
        return f"{run.broken_off} was broken off; all episodes were played"
    if run is None or run.status == "finished":
        return ""
    return f"{run.status} after {run.summary.episodes} of {run.summary.planned} episodes"


def bars(report: Report) -> list[Bar]:
    """Return the bars of a run: gates, `--strict`, `--baseline` and `--verify-lanes`, where there are such."""
    run = report.evaluation
    if run is None:
        return []
    part = "" if run.status == "finished" else f", over {run.summary.episodes} of {run.summary.planned} episodes"
    found = [_gate_bar(verdict, part) for verdict in run.verdicts]
    if report.strict:
        cautions = run.cautions
        text = "".join(f"\n{caution.message}" for caution in cautions)
        state: Literal["met", "missed", "undecided"] = "undecided" if part else "missed" if cautions else "met"
        counted = "1 caution" if len(cautions) == 1 else f"{len(cautions)} cautions"
        found.append(Bar(name="--strict", state=state, text=f"{counted}, bar 0{part}{text}"))
    if run.baseline is not None:
        found.append(
            Bar(
                name="--baseline",
                state=_BASELINE_STATES[run.baseline_verdict],
                text=run.baseline["claim"]["sentence"],
            )
        )
    if run.verification is not None:
        differs = run.verification.verdict == "differs"
        found.append(
            Bar(
                name="--verify-lanes",
                state="missed" if differs else "met",
                text=verification_text(run.verification),
            )
        )
    return found


def _gate_bar(verdict: GateVerdict, part: str) -> Bar:
    what = verdict.metric if verdict.held == "value" else f"the {verdict.held} end of {verdict.metric}"
    if verdict.value is not None:
        measured = f"{what} is {exact(verdict.value)}"
    elif verdict.point is not None:
        measured = f"{verdict.metric} is {exact(verdict.point)}, of which there is no interval"
    else:
        measured = f"{verdict.metric} was not measured"
    bar = verdict.gate.removeprefix(verdict.metric).strip()
    return Bar(
        name=f"gate {verdict.gate}",
        state="undecided" if part or verdict.is_open else "met" if verdict.passed else "missed",
        text=f"{measured}, bar {bar}{part}",
    )


def seeds_text(seeds: list[int]) -> str:
    """Return seeds as they can be typed: `0..49` where they count up, else one by one."""
    if len(seeds) > 1 and seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]}..{seeds[-1]}"
    return shortened(",".join(map(str, seeds)), 200)


def read_record(folder: Path) -> dict[str, Any]:
    """Return a run folder's `run.json`; empty if it cannot be read."""
    try:
        record = msgspec.json.decode((folder / "run.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def read_broken_run(folder: Path) -> Evaluation:
    """Return what a run left that was broken off: its rows, and what they add up to so far.

    Raises HarnessError if it cannot be read, or holds no row.
    """
    evaluation = evaluation_of(read_run(folder))
    if evaluation.status in ("running", "killed"):
        evaluation.status = "interrupted"
    return evaluation
