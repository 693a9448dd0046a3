"""Hashes of what an episode started from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

# 64 bits tell a run's episodes apart; the whole digest would only make rows longer.
HEX_DIGITS = 16
# Containers inside one another that are looked into.
_DEEPEST = 64


def start_hash(observation: Any, info: Mapping[str, Any]) -> str:
    """Return 16 hex digits of an episode's first observation and info.

    Values that have no canonical bytes (objects of other types) count by their type only.
    """
    parts: list[bytes] = []
    _collect(parts, observation, ())
    if info:
        _collect(parts, info, ())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:HEX_DIGITS]


def _collect(parts: list[bytes], value: Any, within: tuple[int, ...]) -> None:
    """Append bytes that no other value has: each begins with its kind, and says or shows where it ends.

    within: ids of the containers around the value.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        parts.append(_header(value.dtype, value.shape))
        parts.append(value.tobytes())
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        parts.append(b"s%d:%b" % (len(text), text))
    elif isinstance(value, (dict, list, tuple, np.ndarray, Mapping)):
        if id(value) in within or len(within) >= _DEEPEST:
            parts.append(b"^")
        else:
            _collect_inside(parts, value, (*within, id(value)))
    elif isinstance(value, np.generic) and value.dtype.kind in "biuf":
        # Environments that merge infos turn plain numbers into those of numpy.
        parts.append(_scalar_bytes(value.item()))
    elif isinstance(value, np.generic) and not value.dtype.hasobject:
        parts.append(_header(value.dtype, ()))
        parts.append(value.tobytes())
    else:
        parts.append(_scalar_bytes(value))


def _collect_inside(parts: list[bytes], value: Any, within: tuple[int, ...]) -> None:
    if isinstance(value, (list, tuple, np.ndarray)):
        parts.append(b"[")
        for part in value.tolist() if isinstance(value, np.ndarray) else value:
            _collect(parts, part, within)
        parts.append(b"]")
        return
    parts.append(b"{")
    try:
        keys = sorted(value)
    except TypeError:  # keys of several types
        keys = sorted(value, key=_key_order)
    for key in keys:
        _collect(parts, key, within)
        _collect(parts, value[key], within)
    parts.append(b"}")


def _key_order(key: Any) -> tuple[str, str]:
    return str(key), type(key).__name__


def _scalar_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return b"b%d:%b" % (len(value), value)
    if value is None or isinstance(value, bool):
        return f"{value};".encode()
    if isinstance(value, int):
        return f"i{int(value):x};".encode()
    if isinstance(value, float):
        return f"f{float(value).hex()};".encode()
    return f"o{type(value).__name__};".encode()


@lru_cache(maxsize=256)
def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return f"{dtype.str}{shape}".encode()
