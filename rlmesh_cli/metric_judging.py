"""One metric of two runs: its difference, how sure that is, and what may be said of it.

A difference is always NEW - BASE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from .estimating import Estimator, paired_rate
from .judgement.intervals import Interval, within_floats
from .judgement.paired import (
    mcnemar,
    p_not_worse_rate,
    p_worse_mean,
    p_worse_rate,
    permutation,
)
from .judgement.power import (
    detectable_mean_difference,
    detectable_rate_difference,
    pairs_needed_mean,
    pairs_needed_rate,
)
from .margins import SUCCESS, MarginError, Margins
from .pairing import Measured
from .repeats import one_each, scaled
from .stats import spread

Verdict = Literal["not_worse", "worse", "inconclusive"]

POWER = 0.8


class Flip(msgspec.Struct, frozen=True):
    """A pair in which only one side succeeded: its seed, and its index in BASE and in NEW."""

    seed: int | None
    base_index: int
    new_index: int


class MetricComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the pairs that have it on both sides.

    verdict: None if it is only shown. effective: how many of the pairs tests count, fewer where some only repeat
    others. errored, unreported: pairs that are left out.
    base, new: over the pairs that are not.
    interval: of the difference, at 1 - 2 alpha, so that its lower end is what the margin is held against.
    margin: None where it is a share of nothing. p: two-sided (McNemar's exact test; sign flips for means).
    p_worse: one-sided; p_worse_adjusted: for the number of judged metrics (Holm), None if only shown.
    p_not_worse: with the pairs that NEW alone did not finish as lost; None for means, where the interval decides,
    and none is shown to be as good while there are such pairs.
    gained, lost: success in NEW alone, in BASE alone; None for means.
    bounds: the difference over all pairs, if what is left out were all lost, and all gained; None for means.
    detectable: smallest true drop that so many pairs find with a power of 80 %, None where they find none.
    pairs_needed: to show with that power that there is no drop by the margin, if there is no difference. Of means
    both are None where nothing varies.
    """

    metric: str
    verdict: Verdict | None
    pairs: int
    effective: int
    errored: int
    unreported: int
    base: float
    new: float
    difference: float
    interval: Interval | None
    margin: float | None
    p: float
    p_worse: float
    p_worse_adjusted: float | None
    p_not_worse: float | None
    gained: list[Flip] | None
    lost: list[Flip] | None
    bounds: tuple[float, float] | None
    detectable: float | None
    pairs_needed: int | None


def p_worse_of(measured: Measured) -> float:
    """Return the one-sided p-value of "NEW is not below BASE"."""
    if measured.metric != SUCCESS:
        return p_worse_mean(_weighed(measured))
    (_, gained), (lost, _) = _scaled_flips(measured)
    return p_worse_rate(gained, lost)


def judge_metric(
    measured: Measured, margins: Margins, alpha: float, *, p_worse: float, adjusted: float | None, same: bool
) -> MetricComparison:
    """Return a metric's numbers and what they come to.

    adjusted: its Holm p-value, None if it is only shown. same: whether both runs did the same in every pair.
    Raises MarginError if it is judged by a share of nothing.
    """
    base, new = (_mean([pair[side] for pair in measured.values]) for side in (0, 1))
    is_same = same and not any(measured.differences)
    margin = margins.of(measured.metric, base) or None
    if margin is None and adjusted is not None and not is_same:
        raise MarginError(f"the margin of {measured.metric} is a share of what BASE has, which is 0")
    numbers = (_of_rates if measured.metric == SUCCESS else _of_means)(measured, alpha, margin)
    verdict: Verdict | None = None
    if adjusted is not None:
        verdict = "not_worse" if is_same or numbers.is_not_worse else "inconclusive"
        if verdict == "inconclusive" and adjusted <= alpha:
            verdict = "worse"
    return MetricComparison(
        metric=measured.metric,
        verdict=verdict,
        pairs=len(measured.pairs),
        effective=measured.effective,
        errored=measured.errored,
        unreported=measured.unreported,
        base=base,
        new=new,
        difference=_mean(measured.differences),
        interval=numbers.interval,
        margin=margin,
        p=numbers.p,
        p_worse=p_worse,
        p_worse_adjusted=adjusted,
        p_not_worse=numbers.p_not_worse,
        gained=numbers.gained,
        lost=numbers.lost,
        bounds=_bounds(measured) if measured.metric == SUCCESS else None,
        detectable=numbers.detectable,
        pairs_needed=numbers.pairs_needed,
    )


class _Numbers(msgspec.Struct, frozen=True, kw_only=True):
    interval: Interval | None
    is_not_worse: bool
    p: float
    p_not_worse: float | None = None
    gained: list[Flip] | None = None
    lost: list[Flip] | None = None
    detectable: float | None = None
    pairs_needed: int | None = None


def _of_rates(measured: Measured, alpha: float, margin: float | None) -> _Numbers:
    lists = _flips(measured)
    gained, lost = map(len, lists)
    n, effective = len(measured.values), measured.effective
    # Rounded against what is to be shown, and as if NEW had lost what it alone did not finish.
    (fewest_gained, most_gained), (fewest_lost, most_lost) = _scaled_flips(measured)
    broken = measured.broken
    p_not_worse = None
    if margin is not None:
        p_not_worse = p_not_worse_rate(fewest_gained, most_lost + broken, effective + broken, margin)
    differing = (gained + lost) / n
    return _Numbers(
        interval=paired_rate(gained, lost, n, confidence=1 - 2 * alpha, effective=effective),
        is_not_worse=p_not_worse is not None and p_not_worse <= alpha,
        p=max(mcnemar(fewest_gained, most_lost), mcnemar(most_gained, fewest_lost)),
        p_not_worse=p_not_worse,
        gained=lists[0],
        lost=lists[1],
        detectable=detectable_rate_difference(effective, differing, alpha=alpha, power=POWER),
        pairs_needed=None if margin is None else _pairs_needed(pairs_needed_rate, margin, differing, alpha),
    )


def _of_means(measured: Measured, alpha: float, margin: float | None) -> _Numbers:
    n = measured.effective
    interval = Estimator(confidence=1 - 2 * alpha).mean(measured.differences, measured.starts)
    found = spread(measured.differences)
    std = found.std if found is not None and found.std and math.isfinite(found.std) else None
    # Fewer pairs say nothing even if all of them agree, which leaves an interval without width.
    is_shown = 0.5**n <= alpha and not measured.broken
    return _Numbers(
        interval=interval,
        is_not_worse=is_shown and interval is not None and margin is not None and interval.low > -margin,
        p=permutation(_weighed(measured)),
        detectable=None if std is None else detectable_mean_difference(std, n, alpha=alpha, power=POWER),
        pairs_needed=None
        if std is None or margin is None
        else _pairs_needed(pairs_needed_mean, std, margin, alpha),
    )


def _pairs_needed(count: Callable[..., int], one: float, other: float, alpha: float) -> int | None:
    try:
        return count(one, other, alpha=alpha, power=POWER)
    except OverflowError:  # more than there are numbers for
        return None


def _weighed(measured: Measured) -> list[float]:
    """Return what a test of signs is made of: one difference a start, times how often it came more than others."""
    if measured.starts is None:
        return measured.differences
    counted = one_each(measured.differences, measured.starts)
    least = math.gcd(*(count for _, count in counted))
    # As often as all others is once; a sum that no float holds is no test.
    return [within_floats(value * (count // least)) for value, count in counted]


def _scaled_flips(measured: Measured) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many gained and how many lost pairs tests count, each rounded down and up."""
    gained, lost = (scaled(len(flips), len(measured.values), measured.effective) for flips in _flips(measured))
    return gained, lost


def _flips(measured: Measured) -> tuple[list[Flip], list[Flip]]:
    """Return the pairs that only NEW, and that only BASE won."""
    found: dict[float, list[Flip]] = {1.0: [], -1.0: [], 0.0: []}
    for pair, difference in zip(measured.pairs, measured.differences, strict=True):
        found[difference].append(Flip(pair.base.seed, pair.base.index, pair.new.index))
    return found[1.0], found[-1.0]


def _bounds(measured: Measured) -> tuple[float, float] | None:
    """Return the lowest and highest difference over all pairs, whatever the pairs left out would have been."""
    if not measured.half:
        return None
    count = len(measured.values) + len(measured.half)
    known = sum(measured.differences)
    worst = sum((new or 0.0) - (1.0 if base is None else base) for base, new in measured.half)
    best = sum((1.0 if new is None else new) - (base or 0.0) for base, new in measured.half)
    return (known + worst) / count, (known + best) / count


def _mean(values: Sequence[float]) -> float:
    found = spread(values)
    return math.nan if found is None else found.mean
