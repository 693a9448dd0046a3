"""Estimating: which intervals a run's numbers get."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from .judgement.binomial import blaker, exact, wilson
from .judgement.bootstrap import bca
from .judgement.intervals import Interval
from .judgement.paired import rate_difference
from .repeats import scaled, thinned
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

    def mean(self, values: Sequence[float], effective: int | None = None) -> Interval | None:
        """Return the bootstrap interval of a mean, None where there is none; effective: as for rates."""
        return self._bootstrap(values, "mean", effective)

    def iqm(self, values: Sequence[float], effective: int | None = None) -> Interval | None:
        """Return the bootstrap interval of the interquartile mean, None where there is none."""
        return self._bootstrap(values, "iqm", effective)

    def _bootstrap(self, values: Sequence[float], statistic: str, effective: int | None) -> Interval | None:
        is_whole = effective is None or effective == len(values)
        sample = values if is_whole else thinned(values, effective or 0)
        return bca(sample, statistic=statistic, confidence=self.confidence)


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
