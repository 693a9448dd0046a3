"""Tango's score: how far a difference of paired rates is from a supposed one, in standard deviations."""

from __future__ import annotations

import math


def score(gained: int, lost: int, n: int, difference: float) -> float:
    """Return the score of n pairs under a supposed difference of rates (new - base).

    gained, lost: pairs in which only the new one, only the base succeeded. difference: in [-1, 1].
    Above 0 where the pairs speak for a larger difference; infinite where the supposed one could not have led to
    them; 0 where nothing speaks against it.
    Source: Tango 1998.
    """
    gap = gained - lost - n * difference
    if gap == 0:
        return 0.0
    variance = n * restricted_variance(gained, lost, n, difference)
    return gap / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, gap)


def restricted_variance(gained: float, lost: float, n: float, difference: float) -> float:
    """Return the variance of a pair's difference where the rates differ by exactly `difference`.

    The share of the lost pairs is the one of the highest likelihood under that restriction.
    Source: Tango 1998: the larger root of a quadratic equation.
    """
    if difference < 0:
        return restricted_variance(lost, gained, n, -difference)
    linear = (2 * n - gained + lost) * difference - gained - lost
    constant = lost * difference * (1 - difference)
    root = math.sqrt(linear * linear + 8 * n * constant)
    # Of the two forms of the root the one that cancels nothing.
    share = (root - linear) / (4 * n) if linear <= 0 else 2 * constant / (linear + root)
    return 2 * share + difference * (1 - difference)
