"""Wording: how numbers are written where people read them."""

from __future__ import annotations

import math

from .episodes import EpisodeResult
from .judgement.intervals import Interval


def number(value: float) -> str:
    """Return a number for the screen: whole ones whole, others with two decimals or four digits, `nan`, `inf`."""
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value)}"
    return f"{value:.2f}" if 0.1 <= abs(value) < 1e6 else f"{value:.4g}"


def signed(value: float) -> str:
    """Return a number with its sign, such as `+1.50`; 0 has none."""
    return f"+{number(value)}" if value > 0 else number(value)


def counted(count: int, noun: str) -> str:
    """Return `1 pair`, `2 pairs`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(parts: list[str]) -> str:
    """Return `a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def exact(number: float) -> str:
    """Return the shortest text that is read as the same number; whole numbers without a point."""
    is_whole = number.is_integer() and abs(number) < 1e16
    return str(int(number)) if is_whole else repr(number)


def percent(text: str) -> float:
    """Return a number of percent as a share: the float next to it, as `57.6` is 0.576; raises ValueError."""
    from decimal import Decimal  # noqa: PLC0415 - few bars are given in percent

    value = float(text)  # which takes and refuses what it does everywhere else
    return float(f"{Decimal(text.strip()).scaleb(-2)}") if math.isfinite(value) else value


def level(interval: Interval) -> str:
    """Return the confidence of an interval, such as `90 %`."""
    return f"{round(interval.confidence * 100, 6):g} %"


def error_text(row: EpisodeResult) -> str:
    """Return phase, step and message of an error; empty if there is none."""
    error = row.error
    if error is None:
        return ""
    step = "" if error.step is None else f" {error.step}"
    return f"{error.phase}{step}: {error.message}"
