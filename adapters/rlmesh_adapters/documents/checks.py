"""Checks of single fields: take a raw value, return it as the document means it, or say what was expected."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from rlmesh_adapters.errors import nearest
from rlmesh_adapters.plans import Ends

from .schema import Check, DocumentError, kind_name, short

#: Largest width, height, count or position that a document may name.
MOST = 2**24
_MOST_STACK = 64
_MOST_DIMS = 4096
# Ends and statistics beyond it are as good as none.
_LARGEST = 1e30


def text(value: Any) -> str:
    """Check a text that is not empty."""
    if not isinstance(value, str):
        raise DocumentError(f"must be text, got {kind_name(value)}")
    if not value.strip():
        raise DocumentError("is empty", mend="name it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DocumentError(
            "holds half a letter, which nothing can be written with", mend="write whole text"
        ) from None
    return value


def any_text(value: Any) -> str:
    """Check a text, empty or not."""
    if not isinstance(value, str):
        raise DocumentError(f"must be text, got {kind_name(value)}")
    return value


def flag(value: Any) -> bool:
    """Check true or false."""
    if not isinstance(value, bool):
        raise DocumentError(f"must be true or false, got {kind_name(value)}")
    return value


def number(value: Any) -> float:
    """Check a finite number."""
    value = _python(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DocumentError(f"must be a number, got {kind_name(value)}")
    try:
        finite = float(value)
    except OverflowError:
        finite = float("inf")
    if not isfinite(finite):
        raise DocumentError(
            f"must be a finite number, got {value if isinstance(value, float) else 'a larger one'}"
        )
    return finite


def count(least: int = 0, most: int = MOST) -> Check:
    """Check a whole number from `least` to `most`; 3.0 and true are none."""

    def check(value: Any) -> int:
        value = _python(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise DocumentError(f"must be a non-negative integer, got {_brief(value)}")
        if not least <= value <= most:
            raise DocumentError(f"must be from {least} to {most}, got {_brief(value)}")
        return value

    return check


stack_depth = count(1, _MOST_STACK)


def one_of(*choices: str) -> Check:
    """Check one of a few words."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            near = nearest(value, choices, limit=1) if isinstance(value, str) else []
            mend = f"did you mean `{near[0]}`?" if near else ""
            raise DocumentError(f"must be one of {', '.join(choices)}, got {_brief(value)}", mend=mend)
        return value

    return check


def nullable(check: Check) -> Check:
    """Check a value that may be null."""
    return lambda value: None if value is None else check(value)


def accept_set(value: Any) -> tuple[str, ...]:
    """Check a name, or names in order of preference; unknown ones are kept and passed over when one is chosen."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names:
        raise DocumentError(f"must be a name or a list of names, got {_brief(value)}")
    return tuple(dict.fromkeys(text(name) for name in names))


def pair(value: Any) -> tuple[float, float]:
    """Check a range: two finite numbers, the smaller one first."""
    value = _python(value)
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise DocumentError(f"range must be a pair of numbers [min, max], got {_brief(value)}")
    low, high = _usable(number(value[0])), _usable(number(value[1]))
    if low > high:
        raise DocumentError(f"range [min, max] must have min <= max, got [{low:g}, {high:g}]")
    return low, high


def ends(value: Any) -> Ends:
    """Check a range of one number each, or of one number a dimension: [[0, -1], [1, 1]]."""
    value = _python(value)
    if not isinstance(value, (list, tuple)) or not any(isinstance(end, (list, tuple)) for end in value):
        return pair(value)
    if len(value) != 2:
        raise DocumentError(f"range must be a pair [min, max], got {len(value)} parts")
    low, high = (numbers(end) for end in value)
    if len(low) != len(high):
        raise DocumentError(f"range has {len(low)} lower and {len(high)} upper ends")
    for least, most in zip(low, high, strict=True):
        if least > most:
            raise DocumentError(f"range [min, max] must have min <= max, got [{least:g}, {most:g}]")
    return low, high


def numbers(value: Any) -> tuple[float, ...]:
    """Check a list of finite numbers that is not empty."""
    value = _python(value)
    if not isinstance(value, (list, tuple)) or not value:
        raise DocumentError(f"must be a list of numbers, got {_brief(value)}")
    if len(value) > _MOST_DIMS:
        raise DocumentError(f"has {len(value):,} numbers, at most {_MOST_DIMS:,} are read")
    return tuple(_usable(number(part)) for part in value)


def shape(value: Any) -> tuple[int, ...]:
    """Check a shape; one axis may be -1."""
    value = _python(value)
    if not isinstance(value, (list, tuple)):
        raise DocumentError(f"must be a list of axes, got {_brief(value)}")
    for axis in value:
        if isinstance(axis, bool) or not isinstance(axis, int) or not -1 <= axis <= MOST:
            raise DocumentError(f"has the axis {_brief(axis)}, expected -1 or a count")
    if list(value).count(-1) > 1:
        raise DocumentError(f"has more than one -1: {list(value)}", mend="leave one axis open")
    return tuple(value)


def _usable(value: float) -> float:
    if abs(value) >= _LARGEST:
        raise DocumentError(f"{value:g} is as good as infinite", mend="leave the range out, or give real ends")
    return value


def _python(value: Any) -> Any:
    """Return numbers and arrays of numpy as those of Python; parts of a pair one by one."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if not isinstance(value, (list, tuple)):
        return value
    return [part.tolist() if isinstance(part, (np.generic, np.ndarray)) else part for part in value]


def _brief(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else short(value)
