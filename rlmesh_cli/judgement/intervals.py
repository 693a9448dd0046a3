"""Intervals: where a rate or a mean lies, and how sure that is."""

from __future__ import annotations

import msgspec


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """From low to high, both included.

    confidence: share of intervals made in this way that hold the true value, in (0, 1).
    method: `wilson`, `exact`, `blaker`, `bca`, `betting` or `tango`.
    """

    low: float
    high: float
    confidence: float
    method: str

    def reaching(self, value: float) -> Interval:
        """Return the interval, made longer where it does not hold `value`."""
        return msgspec.structs.replace(self, low=min(self.low, value), high=max(self.high, value))


def check_confidence(confidence: float) -> None:
    """Raise ValueError for a confidence that is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, not {confidence}")
