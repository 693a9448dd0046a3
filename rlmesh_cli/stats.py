"""What the rows of a run add up to. Counted first, divided last, rounded nowhere."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence

import msgspec

from .episodes import EpisodeResult
from .estimating import DEFAULT_ESTIMATOR, Estimator
from .judgement.bootstrap import interquartile_mean
from .judgement.intervals import Interval
from .ledgers import ChunkLedger, Meaning, StartLedger, chunk_ledger, effective, meanings, start_ledger, starts_of
from .outcomes import SuccessRule


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """One number over n episodes. std is the sample's (n - 1), None below two episodes.

    iqm: mean of the middle half. interval, iqm_interval: of the mean and of the iqm; None where none was made.
    """

    n: int
    mean: float
    std: float | None
    median: float
    min: float
    max: float
    iqm: float
    interval: Interval | None = None
    iqm_interval: Interval | None = None

    @property
    def is_alike(self) -> bool:
        """Whether several values are all the same, which says nothing of what others would be."""
        return self.n > 1 and self.min == self.max

    @property
    def told_interval(self) -> Interval | None:
        """The interval of the mean, None where it has no width."""
        return self.interval if self.interval is not None and self.interval.low < self.interval.high else None


class SuccessCount(msgspec.Struct, frozen=True, kw_only=True):
    """Successes, counted.

    successes: of the finished episodes that reported. failures: the others of them.
    unknown: finished, nothing reported. errored: not finished.
    rate: successes over all whose outcome is known, an errored episode being a failure; None if nothing was
    reported. rate_completed: without the errored ones. interval: of `rate`; of fewer episodes where they only
    repeat one another, see rlmesh_cli.repeats.
    worst, best: the rate if every episode that errored or did not report had failed, and if each had succeeded.
    any, at_reset: episodes in which success was true at some step, and at the reset already.
    """

    rule: str
    sources: tuple[str, ...]
    successes: int
    failures: int
    unknown: int
    errored: int
    rate: float | None
    rate_completed: float | None
    interval: Interval | None
    worst: float | None
    best: float | None
    any: int
    at_reset: int

    @property
    def why_unknown(self) -> str:
        """Why there is no rate, where there is none: what errored had no time to report."""
        return "not reported" if self.unknown else "no episode was finished"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What a run's rows add up to.

    returns, lengths: over finished episodes, None if there is none.
    ends: how episodes ended -> how many. metrics: info key -> its spread over the episodes that reported it.
    retried: episodes that were played again after their environment failed.
    meanings, starts, chunks: see rlmesh_cli.ledgers.
    """

    episodes: int
    planned: int
    errors: int
    returns: Spread | None
    lengths: Spread | None
    ends: dict[str, int]
    success: SuccessCount
    policy_calls: int
    clipped_actions: int
    clipped_episodes: int
    steps: int
    retried: int
    metrics: dict[str, Spread | None]
    meanings: tuple[Meaning, ...]
    starts: StartLedger
    chunks: ChunkLedger


def summarise(
    rows: Sequence[EpisodeResult],
    *,
    planned: int,
    rule: SuccessRule,
    metrics: Sequence[str],
    estimator: Estimator = DEFAULT_ESTIMATOR,
) -> Summary:
    """Add up rows.

    planned: episodes that were asked for. metrics: info keys to report. estimator: makes the intervals.
    """
    finished = [row for row in rows if not row.is_error]
    ends = Counter(row.end for row in rows)
    starts = start_ledger(rows)

    def rate(successes: int, among: Sequence[EpisodeResult]) -> Interval:
        return estimator.rate(successes, len(among), effective(among, starts))

    def judged_spread(value_of: Callable[[EpisodeResult], float | None]) -> Spread | None:
        known = [(row, value) for row in finished if (value := value_of(row)) is not None]
        begun = starts_of([row for row, _ in known], starts)
        return spread([value for _, value in known], estimator=estimator, starts=begun)

    return Summary(
        episodes=len(rows),
        planned=planned,
        errors=len(rows) - len(finished),
        returns=judged_spread(lambda row: row.return_),
        lengths=spread([float(row.length) for row in finished]),
        ends=dict(sorted(ends.items(), key=lambda item: -item[1])),
        success=_success(rows, rule, rate),
        policy_calls=sum(row.policy_calls for row in rows),
        clipped_actions=sum(row.clipped_actions for row in rows),
        clipped_episodes=sum(row.clipped_actions > 0 for row in rows),
        steps=sum(row.length for row in rows),
        retried=sum(row.attempts > 1 for row in rows),
        metrics={name: judged_spread(_reader(name)) for name in metrics},
        meanings=meanings(finished, rule, interval=rate),
        starts=starts,
        chunks=chunk_ledger(rows),
    )


def _reader(name: str) -> Callable[[EpisodeResult], float | None]:
    return lambda row: row.metrics.get(name)


def spread(
    values: Sequence[float],
    *,
    estimator: Estimator | None = None,
    starts: Sequence[Hashable | None] | None = None,
) -> Spread | None:
    """Return mean, standard deviation, median and extremes; None for no values, nan where a value is.

    estimator: makes the intervals. starts: of the values, as of Estimator.mean.
    """
    if not values:
        return None
    if any(map(math.isnan, values)):  # it has no place in an order: nothing is known of the rest either
        unknown = math.nan
        return Spread(
            n=len(values),
            mean=unknown,
            std=unknown if len(values) > 1 else None,
            median=unknown,
            min=unknown,
            max=unknown,
            iqm=unknown,
        )
    interval = None if estimator is None else estimator.mean(values, starts)
    wants_iqm = estimator is not None and estimator.wants_iqm
    iqm_interval = estimator.iqm(values, starts) if estimator is not None and wants_iqm else None
    return Spread(
        n=len(values),
        mean=_mean(values),
        std=_deviation(values) if len(values) > 1 else None,
        median=_median(values),
        min=min(values),
        max=max(values),
        iqm=interquartile_mean(values),
        interval=interval,
        iqm_interval=iqm_interval,
    )


# Sums of fewer than 2**64 numbers that are made smaller by it are finite.
_SCALE = 2.0**-64


def _mean(values: Sequence[float]) -> float:
    # Before anything is summed: a sum may have no float on the way, or meet infinities of both signs.
    unbounded = {value for value in values if math.isinf(value)}
    if unbounded:
        return unbounded.pop() if len(unbounded) == 1 else math.nan
    try:
        return math.fsum(values) / len(values)
    except OverflowError:  # the sum has no float, but the mean has
        return math.fsum(value * _SCALE for value in values) / len(values) / _SCALE


def _deviation(values: Sequence[float]) -> float:
    if not all(map(math.isfinite, values)):
        return math.nan
    centre = _mean(values)
    try:
        # Exact sums, so that the order of the episodes changes nothing.
        return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))
    except OverflowError:
        return math.inf


def _median(values: Sequence[float]) -> float:
    # Of infinities of both signs numpy would warn; halves first, for the sum of two may have no float.
    ordered = sorted(values)
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return below if below == above else below / 2 + above / 2


def _success(
    rows: Sequence[EpisodeResult],
    rule: SuccessRule,
    interval: Callable[[int, Sequence[EpisodeResult]], Interval],
) -> SuccessCount:
    finished = [row for row in rows if not row.is_error]
    successes = sum(row.success is True for row in finished)
    failures = sum(row.success is False for row in finished)
    errored = len(rows) - len(finished)
    known = successes + failures
    judged = [row for row in rows if row.is_error or row.success is not None]
    return SuccessCount(
        rule=rule.describe(),
        sources=tuple(sorted({row.success_source for row in finished if row.success_source})),
        successes=successes,
        failures=failures,
        unknown=len(finished) - known,
        errored=errored,
        rate=successes / (known + errored) if known else None,
        rate_completed=successes / known if known else None,
        interval=interval(successes, judged) if known else None,
        worst=successes / len(rows) if known else None,
        best=(successes + len(rows) - known) / len(rows) if known else None,
        any=sum(row.success_any is True for row in finished),
        at_reset=sum(row.success_at_reset is True for row in rows),
    )
