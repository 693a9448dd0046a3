"""The standard normal distribution."""

from __future__ import annotations

import math
from statistics import NormalDist

_STANDARD = NormalDist()


def below(z: float) -> float:
    """Return P(Z <= z), with its relative precision kept for z far below 0."""
    return math.erfc(-z / math.sqrt(2)) / 2


def quantile(probability: float) -> float:
    """Return z with P(Z <= z) = probability, which is in (0, 1)."""
    return _STANDARD.inv_cdf(probability)


def two_sided(confidence: float) -> float:
    """Return z with P(-z <= Z <= z) = confidence, which is in (0, 1)."""
    # By way of the tail, which is exact for confidences near 1.
    return -quantile((1 - confidence) / 2)
