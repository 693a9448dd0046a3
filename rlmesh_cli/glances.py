"""Glances: how a run stands while it goes on, from sums that grow with its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from .episodes import EpisodeResult
from .estimating import estimator_of
from .gates import SUCCESS_RATE, Gate, parse_gate
from .judgement.binomial import wilson
from .judgement.normal import two_sided
from .plays import Company
from .schema import Route

#: Most episodes for which an exact interval takes no time that could be noticed.
_EXACT = 300
#: Fewest episodes whose mean gets an interval here.
_LEAST = 5


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A number so far.

    low, high: its interval, None where there is none. confidence: of the interval, in (0, 1).
    is_rough: whether the interval is made by a quicker formula than that of the run's result.
    """

    value: float
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    is_rough: bool = False


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """How a run stands.

    title: what is played on what. until: the rule that may end it early, or None.
    returns: mean over finished episodes, None before the first; least, most: their ends.
    success: rate over episodes whose outcome is known, an errored one being a failure; None if none was reported.
    successes, judged: its counts. errored: episodes that could not be finished. unknown: finished, not reported.
    gates: each bar, and whether it would be met by what there is; None if that shows at the end.
    """

    title: str = ""
    until: str | None = None
    returns: Estimate | None = None
    least: float = 0.0
    most: float = 0.0
    success: Estimate | None = None
    successes: int = 0
    judged: int = 0
    errored: int = 0
    unknown: int = 0
    gates: Sequence[tuple[str, bool | None]] = ()
    company: Company = Company()


class Standings:
    """Adds up the rows of a run that goes on; each is looked at once.

    route: what is played. policy: its name.
    """

    def __init__(self, route: Route, policy: str) -> None:
        self._route, self._title = route, f"{policy} on {route.env.id}"
        self._estimator = estimator_of(route)
        self._z = two_sided(route.confidence)
        self._gates = [parse_gate(text) for text in route.gates]
        self._taken = self._finished = 0
        # Of returns, about the first of them, so that no digits are lost to a common height.
        self._first = self._sum = self._squares = 0.0
        self._least, self._most = math.inf, -math.inf
        self._successes = self._failures = self._errored = 0
        self._rate: Estimate | None = None
        self._rated = (0, 0)

    def glance(self, rows: Sequence[EpisodeResult], company: Company) -> Glance:
        """Return how a run stands. rows: all there are, new ones at the end."""
        for row in rows[self._taken :]:
            self._take(row)
        self._taken = len(rows)
        returns, success = self._mean(), self._success()
        return Glance(
            title=self._title,
            until=self._route.until,
            returns=returns,
            least=self._least,
            most=self._most,
            success=success,
            successes=self._successes,
            judged=self._judged,
            errored=self._errored,
            unknown=self._finished - self._successes - self._failures,
            gates=[(str(gate), self._is_met(gate, returns, success)) for gate in self._gates],
            company=company,
        )

    @property
    def _judged(self) -> int:
        return self._successes + self._failures + self._errored

    def _take(self, row: EpisodeResult) -> None:
        if row.is_error:
            self._errored += 1
            return
        if not self._finished:
            self._first = row.return_ if math.isfinite(row.return_) else 0.0
        self._finished += 1
        beyond = row.return_ - self._first
        self._sum += beyond
        self._squares += beyond * beyond
        self._least, self._most = min(self._least, row.return_), max(self._most, row.return_)
        self._successes += row.success is True
        self._failures += row.success is False

    def _mean(self) -> Estimate | None:
        n = self._finished
        if not n:
            return None
        mean = self._first + self._sum / n
        spread = self._squares - self._sum * self._sum / n
        if n < _LEAST or not math.isfinite(spread):
            return Estimate(value=mean)
        half = _student(self._z, n - 1) * math.sqrt(max(0.0, spread) / (n - 1) / n)
        return Estimate(
            value=mean, low=mean - half, high=mean + half, confidence=self._route.confidence, is_rough=True
        )

    def _success(self) -> Estimate | None:
        if not self._successes + self._failures:
            return None
        counts = self._successes, self._judged
        if self._rate is None or counts != self._rated:
            is_exact = self._judged <= _EXACT
            confidence = self._route.confidence
            found = self._estimator.rate(*counts) if is_exact else wilson(*counts, confidence)
            self._rated, self._rate = (
                counts,
                Estimate(
                    value=counts[0] / counts[1],
                    low=found.low,
                    high=found.high,
                    confidence=confidence,
                    # A rule that may stop early has bounds of its own.
                    is_rough=self._route.until is not None or not (is_exact or self._estimator.method == "wilson"),
                ),
            )
        return self._rate

    def _is_met(self, gate: Gate, returns: Estimate | None, success: Estimate | None) -> bool | None:
        if gate.metric == "errors":
            return gate.holds(self._errored)
        if gate.metric not in (SUCCESS_RATE, "mean_return"):
            return None
        found = success if gate.metric == SUCCESS_RATE else returns
        if found is None:
            return None
        if self._route.gate_on == "value":
            return gate.holds(found.value)
        end = found.low if gate.op in (">=", ">") else found.high
        return None if end is None else gate.holds(end)


def _student(z: float, freedom: int) -> float:
    """Return the quantile of Student's t for that of the normal distribution, to 1 % from 4 degrees on.

    The first terms of its expansion in 1 / freedom (Abramowitz and Stegun 26.7.5).
    """
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
