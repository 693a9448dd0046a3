"""Two runs over the same episodes: is the new one worse than the base?

Pairs are episodes of the same seed. gained: pairs in which only the new one succeeded; lost: in which only the
base did; n: all pairs. A difference is new - base, for rates (gained - lost) / n.
The interval of a mean difference is `bootstrap.bca(differences)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from .bisection import begins
from .intervals import Interval, check_confidence
from .normal import below, two_sided
from .signflips import p_value
from .tails import at_least
from .tango import score


def mcnemar(gained: int, lost: int) -> float:
    """Return the exact two-sided p-value of "both rates are equal".

    Source: McNemar 1947, by the binomial distribution. 1 if no pair differs.
    Raises ValueError for counts below 0.
    """
    _check_counts(gained, lost)
    return min(1.0, 2 * at_least(max(gained, lost), gained + lost, 0.5))


def p_worse_rate(gained: int, lost: int) -> float:
    """Return the exact one-sided p-value of "the new rate is not below the base's"; small: the new one is worse.

    1 if no pair was lost.
    Raises ValueError for counts below 0.
    """
    _check_counts(gained, lost)
    return at_least(lost, gained + lost, 0.5)


def p_not_worse_rate(gained: int, lost: int, n: int, margin: float) -> float:
    """Return the one-sided p-value of "the difference is -margin or lower"; small: not worse by so much.

    margin: in [0, 1), as a rate: 0.05 is five points.
    Asymptotic: for margins from 0.05 to 0.2 a new one worse by exactly the margin has a p-value of 0.05 or below
    in up to 7 % of runs of 20 pairs, and 5.4 % of 50.
    Source: Tango 1998, the score at -margin.
    Raises ValueError for counts below 0 or above n, n below 1, a margin outside [0, 1).
    """
    _check_pairs(gained, lost, n)
    if not 0 <= margin < 1:
        raise ValueError(f"margin must be in [0, 1), not {margin}")
    return below(-score(gained, lost, n, -margin))


def rate_difference(gained: int, lost: int, n: int, confidence: float = 0.95) -> Interval:
    """Return the interval of the difference of the rates, within [-1, 1].

    The differences that Tango's score test does not reject. At 95 % it holds a true difference of up to 0.2 in no
    less than 94 % of runs of 10 to 50 pairs.
    Source: Tango 1998.
    Raises ValueError for counts below 0 or above n, n below 1, confidence outside (0, 1).
    """
    _check_pairs(gained, lost, n)
    check_confidence(confidence)
    z = two_sided(confidence)
    high = -_lowest_difference(lost, gained, n, z)
    return Interval(low=_lowest_difference(gained, lost, n, z), high=high, confidence=confidence, method="tango")


def _lowest_difference(gained: int, lost: int, n: int, z: float) -> float:
    # The score falls as the supposed difference grows, and is 0 at the observed one.
    return begins(lambda difference: score(gained, lost, n, difference) <= z, -1.0, (gained - lost) / n)[0]


def permutation(differences: Sequence[float], *, resamples: int = 9_999) -> float:
    """Return the two-sided p-value of "the differences lie evenly about 0", by their mean.

    Every pattern of signs up to 13 differences that are not 0; above that random ones, always the same, of which
    there are fewer than `resamples` above 4,000 differences, but at least 999. 1 if no pair differs.
    Source: Fisher 1935; Phipson and Smyth 2010 for (b + 1) / (m + 1).
    Raises ValueError for a difference that is not finite, resamples below 1.
    """
    return p_value(differences, resamples, two_sided=True)


def p_worse_mean(differences: Sequence[float], *, resamples: int = 9_999) -> float:
    """Return the one-sided p-value of "the differences lie evenly about 0 or above"; small: the new one is worse.

    Sign patterns as in `permutation`.
    Raises ValueError for a difference that is not finite, resamples below 1.
    """
    return p_value(differences, resamples, two_sided=False)


def _check_counts(gained: int, lost: int) -> None:
    if gained < 0 or lost < 0:
        raise ValueError(f"counts of pairs must not be below 0: gained {gained}, lost {lost}")


def _check_pairs(gained: int, lost: int, n: int) -> None:
    _check_counts(gained, lost)
    if n < 1:
        raise ValueError(f"a difference needs at least one pair, but n is {n}")
    if gained + lost > n:
        raise ValueError(f"gained {gained} and lost {lost} are more than all pairs, {n}")
