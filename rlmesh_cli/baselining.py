"""Baselining: an evaluation that judges itself against an earlier run, as `rlmesh compare` does."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import RouteError

from .comparing import Comparison, Judging, compare
from .episodes import Episode, EpisodeResult
from .margins import RETURN, SUCCESS, MarginError, full_name, parse_margins
from .pairing import PairingError
from .protocols import agree, check_allowed
from .run_reader import StoredRun, find_in, read_run
from .schema import BaselineRoute
from .stats import spread
from .stopping import PairedBar, StoppingRule
from .stored_evaluation import NoEpisodeError


class Baseline:
    """A run that a new one must not be worse than.

    declared: as in the route. folders: where the run is looked for, in order.

    Raises HarnessError for a run that cannot be read, and for margins or fields that cannot be meant.
    """

    def __init__(self, declared: BaselineRoute, folders: tuple[Path, ...]) -> None:
        given = declared.margin
        margins = parse_margins((str(given),) if isinstance(given, (str, float)) else given)
        self.judging = Judging(
            margins=margins,
            alpha=declared.alpha,
            # Whoever gives a metric a margin means it to be judged.
            metrics=declared.metrics or tuple(margins.own),
            allowed=declared.allow,
        )
        check_allowed(self.judging.allowed)
        self.run = read_run(find_in(declared.run, folders))

    def check(self, record: dict[str, Any], folder: Path) -> None:
        """Raise HarnessError if a run that begins so could not be held against this one."""
        agree(self.run, StoredRun(folder=folder, record=record, rows=[]), self.judging.allowed)
        seeds = {row.seed for row in self.run.rows}
        if not seeds:
            raise NoEpisodeError(self.run)
        if self.run.is_seeded and seeds.isdisjoint(record["seeds"]):
            raise PairingError(
                f"this run and its baseline {self.run.name} have no seed in common",
                where="--baseline",
                mend="play the seeds of the baseline: --seed and --episodes, or --seeds",
            )
        returns = spread([row.return_ for row in self.run.rows if not row.is_error])
        is_judged = RETURN in map(full_name, self.judging.metrics)
        if is_judged and returns is not None and not self.judging.margins.of(RETURN, returns.mean):
            raise MarginError(f"the margin of {RETURN} is a share of what the baseline has, which is 0")

    def paired(self, planned: tuple[Episode, ...]) -> PairedBar:
        """Return what a stopping rule needs of the run.

        Raises RouteError where what is judged has no known bounds.
        """
        if any(metric not in (SUCCESS, "success") for metric in self.judging.metrics):
            raise RouteError(
                "only the success rate can be decided early: other metrics have no known bounds",
                where="until: decided",
                mend="judge success_rate alone, or play all episodes",
            )
        waiting: dict[int | None, list[EpisodeResult]] = defaultdict(list)
        for row in reversed(self.run.rows):
            waiting[row.seed].append(row)
        found = {}
        for episode in planned:
            row_of_seed = waiting[episode.seed].pop() if waiting[episode.seed] else None
            if row_of_seed is not None and not row_of_seed.is_error and row_of_seed.success is not None:
                found[episode.index] = row_of_seed
        margin = self.judging.margins.of(SUCCESS, 0.0)
        return PairedBar(rows=found, margin=margin, alpha=self.judging.alpha)

    def judge(self, new: StoredRun, stopping: StoppingRule | None) -> Comparison:
        """Return what the new run comes to beside this one.

        stopping: the rule that may have ended it, whose bounds then decide.
        """
        found = compare(self.run, new, self.judging)
        if stopping is None or stopping.difference is None:
            return found
        if found.is_identical:  # which is what it is, whenever one looks
            return msgspec.structs.replace(found, is_sequential=True)
        verdict = stopping.paired_verdict
        metrics = [
            msgspec.structs.replace(metric, interval=stopping.difference, verdict=verdict)
            if metric.metric == SUCCESS
            else metric
            for metric in found.metrics
        ]
        return msgspec.structs.replace(found, verdict=verdict, metrics=metrics, is_sequential=True)
