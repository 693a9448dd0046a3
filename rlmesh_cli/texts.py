"""Numbers as text."""

from __future__ import annotations


def exact(number: float) -> str:
    """Return the shortest text that is read as the same number; whole numbers without a point."""
    is_whole = number.is_integer() and abs(number) < 1e16
    return str(int(number)) if is_whole else repr(number)
