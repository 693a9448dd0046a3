"""Strict JSON: no NaN, no numpy, no key lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np


def strict_json(value: Any) -> bytes:
    """Return any record as one line of JSON that every parser reads.

    numpy values become numbers and lists. NaN and infinities become null, and the mapping that is written names
    their paths under `nonfinite`; a bare list or value cannot be flagged and is refused.

    Raises ValueError where two keys are written alike, such as 0 and "0", or nothing could carry the flag.
    """
    plain, paths = to_plain(value)
    if paths:
        if not isinstance(plain, dict):
            raise ValueError(f"not finite: {', '.join(paths)}")
        plain = {**plain, "nonfinite": paths}
    return msgspec.json.encode(plain)


def to_plain(value: Any) -> tuple[Any, list[str]]:
    """Return a record as dicts, lists, text, numbers, bools and None; and the paths of what was not finite."""
    paths: list[str] = []
    return _plain(value, "", paths), paths


def _plain(value: Any, path: str, paths: list[str]) -> Any:
    if isinstance(value, (str, bool, int, type(None))):
        return value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if math.isfinite(number):
            return number
        paths.append(path)
        return None
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), path, paths)
    if isinstance(value, Mapping):
        return _plain_mapping(value, path, paths)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [_plain(part, f"{path}[{position}]", paths) for position, part in enumerate(items)]
    if isinstance(value, msgspec.Struct):
        return _plain(msgspec.to_builtins(value, builtin_types=(float,)), path, paths)
    if isinstance(value, Path):
        return str(value)
    return repr(value)


def _plain_mapping(value: Mapping[Any, Any], path: str, paths: list[str]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, part in value.items():
        name = str(key.item()) if isinstance(key, np.generic) else str(key)
        if name in plain:
            raise ValueError(f"two keys are written alike in JSON: {name!r}{f' in {path}' if path else ''}")
        plain[name] = _plain(part, f"{path}.{name}" if path else name, paths)
    return plain
