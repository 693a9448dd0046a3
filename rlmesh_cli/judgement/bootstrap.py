"""Bootstrap intervals for the mean and the interquartile mean.

Axes: B resamples, n values. Values are sorted first, so that their order changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from .intervals import Interval, check_confidence
from .normal import below, quantile

STATISTICS = ("mean", "iqm")

_SEED = 20_200_301
#: Values that are drawn in all, unless the fewest resamples need more, and at a time.
_DRAWS, _BLOCK = 20_000_000, 1_000_000
_FEWEST = 999
#: Values are scaled to [-1, 1]: two sums of the same ones differ by less than this.
_ROUNDING = 1e-12

_Floats = npt.NDArray[np.float64]


def interquartile_mean(values: Iterable[float]) -> float:
    """Return the mean of the middle half: a quarter of the values, n // 4, is left out at each end.

    nan if a value is, or if infinities of both signs are left. Source: Agarwal et al. 2021.
    Raises ValueError for no values.
    """
    ordered = sorted(map(float, values))
    if not ordered:
        raise ValueError("an interquartile mean needs at least one value")
    if any(map(math.isnan, ordered)):
        return math.nan
    quarter = len(ordered) // 4
    kept = ordered[quarter : len(ordered) - quarter]
    if math.isinf(kept[0]) or math.isinf(kept[-1]):
        return kept[0] + kept[-1]
    # Scaled by a power of two, which is exact, so that no sum overflows.
    exponent = _exponent(kept)
    return math.ldexp(math.fsum(math.ldexp(value, -exponent) for value in kept) / len(kept), exponent)


def bca(
    values: Iterable[float], *, statistic: str = "mean", confidence: float = 0.95, resamples: int = 9_999
) -> Interval | None:
    """Return the bias-corrected and accelerated interval; None below two values or if one is not finite.

    statistic: `mean` or `iqm`, the interquartile mean. resamples: above 2,000 values fewer are drawn, for 20
    million draws in all, but at least 999. The draws are always the same.
    The interval always reaches to the statistic itself. If all values are equal it is that value. If all resamples
    are on one side of the statistic then its bias is unknown, and the interval is that of the percentiles.
    Below about 20 values, or for skewed ones, it holds the true value less often than the confidence says.
    Source: Efron 1987; Efron and Tibshirani 1993, equations 14.10, 14.14 and 14.15; ties count half to each side.
    Raises ValueError for another statistic, confidence outside (0, 1), resamples below 1.
    """
    check_confidence(confidence)
    if statistic not in STATISTICS:
        raise ValueError(f"`{statistic}` is not a statistic: {', '.join(STATISTICS)}")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    ordered = sorted(map(float, values))
    if len(ordered) < 2 or not all(map(math.isfinite, ordered)):
        return None
    low, high = ordered[0], ordered[-1]
    if low < high:
        exponent = _exponent(ordered)
        bounds = _bounds(np.ldexp(np.array(ordered), -exponent), _cut(statistic), confidence, resamples)
        low, high = (math.ldexp(bound, exponent) for bound in bounds)
    return Interval(low=low, high=high, confidence=confidence, method="bca")


def _exponent(ordered: list[float]) -> int:
    return math.frexp(max(abs(ordered[0]), abs(ordered[-1])))[1]


def _cut(statistic: str) -> int:
    # One value in so many is left out at each end: none of a mean.
    return 4 if statistic == "iqm" else 2**62


def _bounds(ordered: _Floats, cut: int, confidence: float, resamples: int) -> tuple[float, float]:
    estimate = float(_trimmed_means(ordered[None], cut)[0])
    resampled = _resampled(ordered, cut, resamples)
    share_below = float(np.mean(resampled < estimate - _ROUNDING))
    share_upto = float(np.mean(resampled <= estimate + _ROUNDING))
    bias = (share_below + share_upto) / 2
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    if 0 < bias < 1:
        acceleration = _acceleration(ordered, cut)
        tails = _level(tails[0], bias, acceleration), _level(tails[1], bias, acceleration)
    low, high = np.quantile(resampled, tails).tolist()
    return min(low, estimate), max(high, estimate)


def _level(tail: float, bias: float, acceleration: float) -> float:
    # Equation 14.10.
    correction = quantile(bias)
    shifted = correction + quantile(tail)
    damping = 1 - acceleration * shifted
    if damping <= 0:
        return float(shifted > 0)
    return below(correction + shifted / damping)


def _trimmed_means(rows: _Floats, cut: int) -> _Floats:
    quarter = rows.shape[1] // cut
    means: _Floats = rows[:, quarter : rows.shape[1] - quarter].mean(axis=1)
    return means


def _resampled(ordered: _Floats, cut: int, resamples: int) -> _Floats:
    """Return the statistic of each resample, (B,)."""
    n = len(ordered)
    generator = np.random.default_rng(_SEED)
    count = min(resamples, max(_DRAWS // n, _FEWEST))
    rows = max(1, _BLOCK // n)
    found = np.empty(count)
    for start in range(0, count, rows):
        # The same draws for every statistic; places sort faster than values do.
        places = generator.integers(
            n, size=(min(rows, count - start), n), dtype=np.uint16 if n <= 2**16 else np.int64
        )
        if n >= cut:
            places.sort(axis=1)
        found[start : start + rows] = _trimmed_means(ordered[places], cut)
    return found


def _acceleration(ordered: _Floats, cut: int) -> float:
    # Equation 14.15: each value left out in turn.
    n = len(ordered)
    quarter = (n - 1) // cut
    last = n - 1 - quarter
    # Without a value outside the window from quarter to last, one end of the window falls out of the middle half.
    left_out = ordered[np.clip(np.arange(n), quarter, last)]
    # The window's sum is the same for all, so that only what is left out counts; its scale cancels.
    influences = left_out - left_out.mean()
    squares = float(np.sum(influences**2))
    return float(np.sum(influences**3)) / (6 * squares**1.5) if squares > 0 else 0.0
