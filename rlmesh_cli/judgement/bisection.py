"""Where something begins to hold, by halving."""

from __future__ import annotations

from collections.abc import Callable

#: Halvings that separate any two numbers of [-1, 1] which differ by more than rounding, or lie below 1e-30.
_HALVINGS = 150


def begins(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return the last number where it does not hold yet, and the first where it does.

    holds: false up to some number between low and high, true from there on. It is asked about neither end: at low
    it is taken to be false, at high to be true.
    The two numbers are neighbours, or differ by less than 1e-30.
    """
    for _ in range(_HALVINGS):
        middle = low + (high - low) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
