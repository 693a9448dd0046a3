"""Intervals: where a rate or a mean lies, and how sure that is."""

from __future__ import annotations

import sys

import msgspec

#: More than bounds of interest have, and fewer than floats are wrong in.
_DIGITS = 12


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """From low to high, both included.

    confidence: share of intervals made in this way that hold the true value, in (0, 1).
    method: `wilson`, `exact`, `blaker`, `bca`, `betting` or `tango`.
    """

    low: float
    high: float
    confidence: float
    method: str

    @property
    def width(self) -> float:
        """How far it reaches: 0.1 of 0.105 to 0.205, though their floats are less than that apart."""
        return decimal(self.high - self.low)

    def reaching(self, value: float) -> Interval:
        """Return the interval, made longer where it does not hold `value`."""
        return msgspec.structs.replace(self, low=min(self.low, value), high=max(self.high, value))


def decimal(number: float) -> float:
    """Return what was reckoned from numbers of few decimals, without what floats have added to it."""
    return round(number, _DIGITS)


def within_floats(number: float) -> float:
    """Return a number, or the largest float of its sign where it is beyond that."""
    return max(-sys.float_info.max, min(sys.float_info.max, number))


def check_confidence(confidence: float) -> None:
    """Raise ValueError for a confidence that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, not {confidence}")
