"""Weights: how much memory an instance of a policy holds, as far as it can be seen from outside."""

from __future__ import annotations

from typing import Any

from .errors import faults_suppressed
from .insides import get_quietly, is_array, objects_inside

#: From so many bytes of all instances together on, it is said.
LARGE_BYTES = 1_000_000_000


def held_bytes(policy: object) -> int:
    """Return the bytes of the arrays, tensors and module parameters that a policy holds; each counts once."""
    counted: set[int] = set()
    total = 0
    for item in objects_inside(policy):
        for array in (item,) if is_array(item) else _parameters(item):
            if id(array) not in counted:
                counted.add(id(array))
                total += _bytes_of(array)
    return total


def _parameters(item: object) -> list[Any]:
    parameters = get_quietly(item, "parameters")
    # A class attribute of that name may be anything; modules are told by their flag.
    if not callable(parameters) or not isinstance(get_quietly(item, "training"), bool):
        return []
    found: list[Any] = []
    with faults_suppressed():
        found.extend(parameters())
    return found


def _bytes_of(array: Any) -> int:
    size = get_quietly(array, "nbytes")
    return size if isinstance(size, int) else 0
