"""Intervals for a rate: k successes in n episodes.

Whatever the method, the interval of the failures is the mirror image of that of the successes.
"""

from __future__ import annotations

import math

from .bisection import begins
from .intervals import Interval, check_confidence
from .normal import two_sided
from .tails import at_least, at_most


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the rates that a score test does not reject, without continuity correction.

    Its coverage is near the confidence on the average over rates, but falls below it for some rates near 0 and 1:
    at 95 % to 92.2 % for a rate of 0.98 and n = 50, and to 84 % for rates nearer to 1.
    Source: Wilson 1927; Brown, Cai and DasGupta 2001, equation 4.
    Raises ValueError for n below 1, successes outside 0..n, confidence outside (0, 1).
    """
    _check(successes, n, confidence)
    z = two_sided(confidence)
    high = 1 - _wilson_low(n - successes, n, z)
    return Interval(low=_wilson_low(successes, n, z), high=high, confidence=confidence, method="wilson")


def _wilson_low(successes: int, n: int, z: float) -> float:
    failures = n - successes
    # The smaller root of the quadratic by way of the larger one, so that nothing is cancelled near 0.
    larger = successes + z * z / 2 + z * math.sqrt(successes * failures / n + z * z / 4)
    return successes * successes / n / larger


def exact(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the rates at which neither tail is below (1 - confidence) / 2.

    Its coverage is never below the confidence, and often well above.
    Source: Clopper and Pearson 1934. Bounds to 1e-10.
    Raises ValueError for n below 1, successes outside 0..n, confidence outside (0, 1).
    """
    _check(successes, n, confidence)
    tail = (1 - confidence) / 2
    high = 1 - _exact_low(n - successes, n, tail)
    return Interval(low=_exact_low(successes, n, tail), high=high, confidence=confidence, method="exact")


def _exact_low(successes: int, n: int, tail: float) -> float:
    if successes == 0:
        return 0.0
    # The median of n trials at rate k / n is k, so that this tail is at least 1/2 there.
    return begins(lambda rate: at_least(successes, n, rate) >= tail, 0.0, successes / n)[0]


def blaker(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the range of the rates that Blaker's test does not reject.

    Its coverage is never below the confidence; the interval lies within that of `exact` and is most often shorter.
    Source: Blaker 2000. The p-value of a rate is the smaller tail, and of the other tail as much as is
    not larger. Bounds to 1e-10.
    Raises ValueError for n below 1, successes outside 0..n, confidence outside (0, 1).
    """
    _check(successes, n, confidence)
    high = 1 - _blaker_low(n - successes, n, 1 - confidence)
    return Interval(
        low=_blaker_low(successes, n, 1 - confidence), high=high, confidence=confidence, method="blaker"
    )


def _blaker_low(successes: int, n: int, significance: float) -> float:
    if successes == 0:
        return 0.0
    # Below the exact bound twice the tail is too small. At this bound `other` outcomes make up the other tail; at
    # the rate where one more joins them the p-value is twice the tail, which is enough by then. In between the
    # p-value is 1 - P(other <= X < successes), which falls at most once and then rises: it gets to the
    # significance in one place.
    start = _exact_low(successes, n, significance / 2)
    other = _outcomes_within(significance / 2, successes, n, start)

    def is_accepted(rate: float) -> bool:
        tail = at_least(successes, n, rate)
        return tail >= at_most(other, n, rate) or tail + at_most(other - 1, n, rate) >= significance

    return begins(is_accepted, start, successes / n)[0]


def _outcomes_within(tail: float, successes: int, n: int, rate: float) -> int:
    # How many of the outcomes 0, 1, 2 ... together are not above the tail.
    low, high = 0, successes
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if at_most(middle, n, rate) > tail else (middle + 1, high)
    return low


def _check(successes: int, n: int, confidence: float) -> None:
    if n < 1:
        raise ValueError(f"a rate needs at least one episode, but n is {n}")
    if not 0 <= successes <= n:
        raise ValueError(f"successes must be in 0..{n}, not {successes}")
    check_confidence(confidence)
