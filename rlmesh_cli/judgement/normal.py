"""The standard normal distribution."""

from __future__ import annotations

import math

from .bisection import begins

# Beyond it a tail is smaller than any float.
_FARTHEST = 40.0


def below(z: float) -> float:
    """Return P(Z <= z), with its relative precision kept for z far below 0."""
    return math.erfc(-z / math.sqrt(2)) / 2


def quantile(probability: float) -> float:
    """Return z with P(Z <= z) = probability, which is in (0, 1).

    By bisection: the standard library's `statistics` has it too, and takes longer to import than this package.
    """
    if probability > 0.5:
        return -quantile(1 - probability)
    return begins(lambda z: below(z) >= probability, -_FARTHEST, 0.0)[1]


def two_sided(confidence: float) -> float:
    """Return z with P(-z <= Z <= z) = confidence, which is in (0, 1)."""
    # By way of the tail, which is exact for confidences near 1.
    return -quantile((1 - confidence) / 2)
