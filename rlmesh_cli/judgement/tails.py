"""Tails of the binomial distribution: X successes in n trials that each succeed with probability p."""

from __future__ import annotations

import math

#: A term below this share of the sum is lost in the rounding of the sum.
_NEGLIGIBLE = 1e-17


def at_least(k: int, n: int, p: float) -> float:
    """Return P(X >= k), p in [0, 1]. Relative error about 1e-16 * n, for small tails too."""
    if k <= 0 or k > n:
        return float(k <= 0)
    if p <= 0 or p >= 1:
        return float(p >= 1)
    if k > n * p:
        return min(1.0, _falling_terms(k, n, p))
    return max(0.0, 1 - _falling_terms(n - k + 1, n, 1 - p))


def at_most(k: int, n: int, p: float) -> float:
    """Return P(X <= k), p in [0, 1]."""
    return at_least(n - k, n, 1 - p)


def exactly(k: int, n: int, p: float) -> float:
    """Return P(X = k), k in 0..n, p in [0, 1]."""
    if k == n:
        return float(p**n)  # to the last bit for p = 0.5, which significances such as 1 in 64 are held against
    if p <= 0 or p >= 1:
        return float(p <= 0 and k == 0)
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choices + k * math.log(p) + (n - k) * math.log1p(-p))


def _falling_terms(k: int, n: int, p: float) -> float:
    # Above the mean each term is smaller than the one before, so that few of them count.
    term = exactly(k, n, p)
    odds = p / (1 - p)
    total = term
    for j in range(k, n):
        term *= (n - j) / (j + 1) * odds
        total += term
        if term <= _NEGLIGIBLE * total:
            break
    return total
