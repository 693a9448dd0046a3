"""Bars: what a run is held against - its gates, the rule that may end it early, and an earlier run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.errors import RouteError

from .episodes import Episode, EpisodeResult
from .gates import Gate, GateVerdict, judge
from .schema import Route
from .stats import Summary

if TYPE_CHECKING:  # most runs have neither
    from .baselining import Baseline
    from .comparing import Comparison
    from .run_reader import StoredRun
    from .stopping import StoppingRule


class Bars:
    """Holds a run against what its route asks for.

    gates: of the route. planned: its episodes. folders: where an earlier run is looked for.

    Raises HarnessError for an earlier run that cannot be read, and for a rule that cannot be meant.
    """

    def __init__(
        self, route: Route, gates: tuple[Gate, ...], planned: tuple[Episode, ...], folders: tuple[Path, ...]
    ) -> None:
        self._route, self._gates, self._planned = route, gates, planned
        self.baseline: Baseline | None = None
        self._rule: StoppingRule | None = None
        self._errored: set[int] = set()
        if route.baseline is not None:
            from .baselining import Baseline  # noqa: PLC0415 - most runs are not compared

            self.baseline = Baseline(route.baseline, folders)
        if route.until is not None:
            self._rule = self._made_rule(route.until)

    def _made_rule(self, text: str) -> StoppingRule:
        from .stopping import StoppingRule, parse_until  # noqa: PLC0415 - most runs play all

        until = parse_until(text)
        paired = None
        if self.baseline is not None and until.width is None:
            paired = self.baseline.paired(self._planned)
        return StoppingRule(until, self._gates, confidence=self._route.confidence, paired=paired)

    def look_at(self, rows: Sequence[EpisodeResult]) -> None:
        """Look at new rows, in any order; rows that are known already change nothing."""
        for row in rows:
            if row.error is not None:
                self._errored.add(row.index)
        if self._rule is not None:
            self._rule.take(rows)

    @property
    def stopped_at(self) -> int | None:
        """After how many episodes of the plan the run is over; None if all are to be played."""
        return None if self._rule is None else self._rule.stop_at

    @property
    def counted(self) -> float:
        """How many episodes of the plan are known to count; infinite where all do."""
        rule = self._rule
        return math.inf if rule is None else rule.looked_at

    @property
    def errors(self) -> int:
        """How many episodes errored; under a stopping rule, of those that it has looked at."""
        rule = self._rule
        return sum(rule is None or index < rule.looked_at for index in self._errored)

    def with_sequence(self, summary: Summary, book: AdvisoryBook) -> Summary:
        """Put the bounds that hold whenever one stops in the place of the interval that needs a fixed plan."""
        rule = self._rule
        if rule is None:
            return summary
        if rule.stop_at is not None and rule.stop_at < len(self._planned):
            book.add(
                "stopped-early",
                "info",
                f"{self._route.until} ended the run after {rule.stop_at} of {len(self._planned)} episodes; the "
                "interval of the success rate allows for that, the others do not",
            )
        if rule.stop_at is None and summary.success.rate is None:
            why = "no success was reported" if summary.success.unknown else summary.success.why_unknown
            book.add(
                "until-unmeasured",
                "info",
                f"{why}, so {self._route.until} had nothing to look at and ended nothing",
            )
        if rule.looked_at < summary.episodes:
            book.add(
                "early-rows",
                "info",
                f"the interval of the success rate is that of the first {rule.looked_at} episodes: those after "
                "them wait for one that was not finished",
            )
        interval = rule.interval if summary.success.interval is not None else None
        return msgspec.structs.replace(
            summary, success=msgspec.structs.replace(summary.success, interval=interval)
        )

    def verdicts(self, summary: Summary, *, cautions: int) -> list[GateVerdict]:
        """Return what came of each gate; cautions: how many advisories are cautions."""
        verdicts = [judge(gate, summary, cautions=cautions, on=self._route.gate_on) for gate in self._gates]
        rule = self._rule
        if rule is None or not rule.decides:
            return verdicts
        from .stopping import decide  # noqa: PLC0415 - it is loaded by then

        return decide(rule, self._gates, verdicts)

    def refuse_itself(self, folder: Path) -> None:
        """Raise RouteError if a run is to be held against itself."""
        if self.baseline is not None and self.baseline.run.folder.resolve() == folder.resolve():
            raise RouteError(
                f"{folder} is the run that is gone on with: it cannot be its own baseline",
                where="--baseline",
                mend="name another run",
            )

    def check_protocol(self, record: dict[str, Any], folder: Path) -> None:
        """Raise HarnessError if a run that begins so could not be held against the earlier one."""
        if self.baseline is not None:
            self.baseline.check(record, folder)

    def compare(self, new: StoredRun) -> Comparison | None:
        """Return what a run comes to beside the earlier one, None if there is none to compare with."""
        return None if self.baseline is None else self.baseline.judge(new, self._rule)
