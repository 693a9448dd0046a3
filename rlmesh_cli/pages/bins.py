"""Bins: many numbers as few, by a rule that gives the same ones every time."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import msgspec

_MOST = 30
_NICE = (1.0, 2.0, 5.0, 10.0)
#: Floats that a bin holds at least.
_LEAST_FLOATS = 16


class Bins(msgspec.Struct, frozen=True):
    """Bins of one width: bin k holds from start + k width to below start + (k + 1) width."""

    start: float
    width: float
    count: int

    def of(self, value: float) -> int:
        """Return the bin of a value, in [0, count)."""
        place = min(max(math.floor(value / self.width - self.start / self.width), 0), self.count - 1)
        # A quotient may be rounded to the other side of an end; `span` is what bars and filters go by.
        if place > 0 and value < self.span(place)[0]:
            return place - 1
        return place + 1 if place < self.count - 1 and value >= self.span(place)[1] else place

    def span(self, place: int) -> tuple[float, float]:
        """Return both ends of a bin."""
        return self._end(place), self._end(place + 1)

    def _end(self, place: int) -> float:
        # Below 1 a width is 1/2, 1/5, 1/10, ...: a quotient of whole numbers is 0.3, a sum 0.30000000000000004.
        parts = 1 / self.width
        if self.width >= 1 or not math.isfinite(parts):
            return self.start + place * self.width
        return (round(self.start / self.width) + place) / round(parts)


def bins_of(values: Sequence[float], most: int = _MOST) -> Bins:
    """Return some `most` bins of a round width that hold all values; those are finite, one at least.

    Where both ends stick out of a round number of bins, there are two more. Whole numbers get bins of a whole
    width, and none is narrower than floats of that size can be told apart.
    """
    low, high = min(values), max(values)
    least = _LEAST_FLOATS * math.ulp(max(abs(low), abs(high)))
    width = round_up(max(high / most - low / most, least)) if low < high else 0.0
    if all(map(float.is_integer, map(float, values))):
        width = max(1.0, width)
    if not width or not math.isfinite(low / width) or not math.isfinite(high / width):
        width = max(1.0, abs(low))
    start = math.floor(low / width) * width
    if not math.isfinite(start):  # the round number below has no float
        start = low
    bins = Bins(start, width, min(most + 1, math.floor(high / width - start / width) + 1))
    # Quotients may have been rounded past an end.
    if bins.span(0)[0] > low:
        bins = Bins(start - width, width, bins.count)
    return Bins(bins.start, width, bins.count + 1) if bins.span(bins.count - 1)[1] <= high else bins


def round_up(width: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, ... and their tenths; 0 for 0, and the greatest float where none is."""
    if width <= 0:
        return 0.0
    most = sys.float_info.max
    power = 10.0 ** math.floor(math.log10(min(width, most)))
    return min(most, next((nice * power for nice in _NICE if nice * power >= width), 10 * power))


def block_size(count: int, most: int) -> int:
    """Return how many neighbours make a block, so that there are at most `most`: 1, 2, 5, 10, 20, ..."""
    return max(1, round(round_up(count / most))) if count > most else 1
