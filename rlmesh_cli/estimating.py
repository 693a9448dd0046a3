"""Estimating: which intervals a run's numbers get."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from .judgement.binomial import blaker, exact, wilson
from .judgement.bootstrap import bca
from .judgement.intervals import Interval
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

    def rate(self, successes: int, n: int) -> Interval:
        """Return the interval of k successes among n episodes, n at least 1."""
        return RATE_INTERVALS[self.method](successes, n, self.confidence)

    def mean(self, values: Sequence[float]) -> Interval | None:
        """Return the bootstrap interval of a mean, None where there is none."""
        return bca(values, confidence=self.confidence)

    def iqm(self, values: Sequence[float]) -> Interval | None:
        """Return the bootstrap interval of the interquartile mean, None where there is none."""
        return bca(values, statistic="iqm", confidence=self.confidence)


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
