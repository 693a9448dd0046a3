"""Looks: what a policy's own attributes are like at a moment, to see whether they change."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .insides import get_quietly

# What is larger is not looked into, such as weights.
_MOST_BYTES = 1 << 20
_MOST_PARTS = 64
_DEEPEST = 5
_SHOWN = 3


def looks_of(policy: object) -> dict[str, object] | None:
    """Return what a policy's own attributes are like now, by name; None where they cannot be looked at.

    Values that cannot be looked into are taken for what they are, not for what they hold.
    """
    try:
        return {name: _look(value) for name, value in dict(get_quietly(policy, "__dict__") or {}).items()}
    except Exception:  # an object of the user's may do anything when it is looked at
        return None


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return the names of what is not as it was, sorted."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def named(names: Sequence[str]) -> str:
    """Return the first names, such as `` `hidden`, `count` and 2 more ``."""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _look(value: Any, depth: int = 0) -> object:
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        return repr(value)
    if isinstance(value, np.ndarray):
        is_small = value.nbytes <= _MOST_BYTES and not value.dtype.hasobject
        return value.shape, zlib.crc32(np.ascontiguousarray(value).tobytes()) if is_small else id(value)
    if isinstance(value, (list, tuple, deque, dict, set, frozenset)):
        parts: Any = value.items() if isinstance(value, dict) else value
        is_small = len(value) <= _MOST_PARTS and depth < _DEEPEST
        return len(value), tuple(_look(part, depth + 1) for part in parts) if is_small else id(value)
    # A tensor counts how often it was written into.
    return id(value), getattr(value, "_version", None) if type(value).__name__ == "Tensor" else None
