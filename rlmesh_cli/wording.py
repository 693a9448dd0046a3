"""Numbers and quantities in words, for screens."""

from __future__ import annotations


def number(value: float) -> str:
    """Return a number for the screen: whole ones whole, others with two decimals or four digits."""
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value)}"
    return f"{value:.2f}" if 0.1 <= abs(value) < 1e6 else f"{value:.4g}"
