"""Looks: what a policy's own attributes are like at a moment, to see whether they change."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from .insides import attributes_of, get_quietly

# What is larger is not looked into, such as weights.
_MOST_BYTES = 1 << 20
_MOST_PARTS = 64
_DEEPEST = 8
_MOST_LOOKS = 5_000
_SHOWN = 3


def looks_of(policy: object) -> dict[str, object] | None:
    """Return what a policy's own attributes are like now, by name; None where they cannot be looked at.

    Objects inside are looked into as well. What cannot be is taken for what it is, not for what it holds.
    """
    try:
        look = _Look()
        return {name: look.at(value) for name, value in attributes_of(policy).items()}
    except Exception:  # an object of the user's may do anything when it is looked at
        return None


def changed(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return the names of what is not as it was, sorted."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def named(names: Sequence[str]) -> str:
    """Return the first names, such as `` `hidden`, `count` and 2 more ``."""
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


class _Look:
    """Looks at values, until it has seen very many."""

    def __init__(self) -> None:
        self._left = _MOST_LOOKS

    def at(self, value: Any, depth: int = 0) -> object:
        """Return something that is equal as long as the value is the same."""
        self._left -= 1
        if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)) or _is_path(value):
            return repr(value)
        if isinstance(value, np.ndarray):
            is_small = value.nbytes <= _MOST_BYTES and not value.dtype.hasobject
            return value.shape, zlib.crc32(np.ascontiguousarray(value).tobytes()) if is_small else id(value)
        is_seen = depth < _DEEPEST and self._left > 0
        if isinstance(value, (list, tuple, deque, dict, set, frozenset)):
            parts: Any = value.items() if isinstance(value, dict) else value
            is_small = is_seen and len(value) <= _MOST_PARTS
            return len(value), tuple(self.at(part, depth + 1) for part in parts) if is_small else id(value)
        if type(value).__name__ == "Tensor":
            # It counts how often it was written into.
            return id(value), get_quietly(value, "_version")
        if is_seen and not isinstance(value, (type, FunctionType, ModuleType)):
            inside = attributes_of(value)
            # What has none, such as a generator, is told by what it is alone.
            return (type(value), self.at(inside, depth + 1)) if inside else id(value)
        return id(value)


def _is_path(value: object) -> bool:
    # A path fills slots of its own when it is read.
    return hasattr(type(value), "__fspath__")
