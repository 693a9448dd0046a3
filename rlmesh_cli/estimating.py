"""Estimating: which intervals a run's numbers get."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import msgspec

from .judgement.binomial import blaker, exact, wilson
from .judgement.bootstrap import bca, interquartile_mean
from .judgement.intervals import Interval, within_floats
from .judgement.paired import rate_difference
from .repeats import inflation, one_each, scaled
from .schema import Route

#: How the interval of a rate is made, by name.
RATE_INTERVALS: dict[str, Callable[[int, int, float], Interval]] = {
    "exact": exact,
    "wilson": wilson,
    "blaker": blaker,
}


class Estimator(msgspec.Struct, frozen=True, kw_only=True):
    """Makes intervals.

    confidence: of each, in (0, 1). method: of rates, `exact`, `wilson` or `blaker`.
    wants_iqm: whether the interquartile mean gets one too, which takes as long as all others together.
    """

    confidence: float = 0.95
    method: str = "exact"
    wants_iqm: bool = False

    def rate(self, successes: int, n: int, effective: int | None = None) -> Interval:
        """Return the interval of k successes among n episodes, n at least 1.

        effective: how many of them say as much as all, see rlmesh_cli.repeats; None is all. Their successes are
        rounded down for the lower end and up for the upper one.
        """
        make = RATE_INTERVALS[self.method]
        if effective is None or effective == n:
            return make(successes, n, self.confidence)
        low, high = (make(k, effective, self.confidence) for k in scaled(successes, n, effective))
        return msgspec.structs.replace(low, high=high.high)

    def mean(self, values: Sequence[float], starts: Sequence[Hashable | None] | None = None) -> Interval | None:
        """Return the bootstrap interval of a mean, None where there is none.

        starts: of the values, where they only repeat one another, see rlmesh_cli.repeats; None if they do not. The
        interval is then that of one value of each start, about the mean of all, and as much longer as that varies
        more where some starts came more often than others.
        """
        return self._bootstrap(values, "mean", starts)

    def iqm(self, values: Sequence[float], starts: Sequence[Hashable | None] | None = None) -> Interval | None:
        """Return the bootstrap interval of the interquartile mean, None where there is none; starts: see mean."""
        return self._bootstrap(values, "iqm", starts)

    def _bootstrap(
        self, values: Sequence[float], statistic: str, starts: Sequence[Hashable | None] | None
    ) -> Interval | None:
        counted = [(value, 1) for value in values] if starts is None else one_each(values, starts)
        sample = [value for value, _ in counted]
        found = bca(sample, statistic=statistic, confidence=self.confidence)
        if found is None or starts is None or len({count for _, count in counted}) == 1:
            return found
        centre_of = _mean if statistic == "mean" else interquartile_mean
        old, new, factor = centre_of(sample), centre_of(values), inflation(starts)
        return msgspec.structs.replace(
            found,
            low=within_floats(new - (old - found.low) * factor),
            high=within_floats(new + (found.high - old) * factor),
        )


def _mean(values: Sequence[float]) -> float:
    # Of parts, whose sum always has a float.
    return math.fsum(value / len(values) for value in values)


def paired_rate(gained: int, lost: int, n: int, *, confidence: float, effective: int | None = None) -> Interval:
    """Return the interval of (gained - lost) / n, a difference of two rates; effective: as of Estimator.rate."""
    count = n if effective is None else effective
    (fewest_gained, most_gained), (fewest_lost, most_lost) = (scaled(k, n, count) for k in (gained, lost))
    low = rate_difference(fewest_gained, most_lost, count, confidence)
    if count == n:
        return low
    return msgspec.structs.replace(low, high=rate_difference(most_gained, fewest_lost, count, confidence).high)


DEFAULT_ESTIMATOR = Estimator()
#: A bar of the interquartile mean; gates.parse_gate reads the whole of it.
_IQM_GATE = re.compile(r"\s*iqm_return\s*[<>=!]")


def estimator_of(route: Route) -> Estimator:
    """Return what makes the intervals that a route asks for."""
    return recorded_estimator({"gates": route.gates, "confidence": route.confidence, "interval": route.interval})


def recorded_estimator(route: Mapping[str, Any]) -> Estimator:
    """Return what makes the intervals of a run, from its route as `run.json` holds it."""
    return Estimator(
        confidence=route.get("confidence", DEFAULT_ESTIMATOR.confidence),
        method=route.get("interval", DEFAULT_ESTIMATOR.method),
        wants_iqm=any(_IQM_GATE.match(gate) for gate in route.get("gates", ())),
    )
