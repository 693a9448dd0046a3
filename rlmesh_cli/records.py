"""Strict JSON: no NaN, no numpy, no key lost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from rlmesh_adapters.errors import describe_error

#: Paths of what was not finite, each with what stood there.
_Found = list[tuple[str, float]]


class _Flags(msgspec.Struct, frozen=True):
    """What a record says of its numbers that are not finite: their paths, and of infinities which each was."""

    nonfinite: list[str] = []
    infinite: dict[str, Literal["inf", "-inf"]] = {}


def strict_json(value: Any) -> bytes:
    """Return any record as one line of JSON that every parser reads.

    numpy values become numbers and lists. NaN and infinities become null, and the mapping that is written names
    their paths under `nonfinite`, and under `infinite` which infinity each was, `inf` or `-inf`; a bare list or
    value cannot be flagged and is refused.

    Raises ValueError where two keys are written alike, such as 0 and "0", or nothing could carry the flags.
    """
    found: _Found = []
    plain = _plain(value, "", found)
    if found:
        paths = [path for path, _ in found]
        if not isinstance(plain, dict):
            raise ValueError(f"not finite: {', '.join(paths)}")
        infinite = {path: str(number) for path, number in found if math.isinf(number)}
        flags = {"nonfinite": paths, **({"infinite": infinite} if infinite else {})}
        for name in flags:
            if name in plain:
                raise ValueError(f"not finite: {', '.join(paths)}, and the key `{name}` is taken")
        plain |= flags
    return msgspec.json.encode(plain)


def restored(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as it was before strict_json wrote it: each null that is flagged is its number again.

    What is flagged as not finite alone, as older versions did with infinities too, is nan.
    Raises msgspec.ValidationError where the flags are not as strict_json writes them.
    """
    flags = msgspec.convert(record, _Flags)
    if not flags.nonfinite:
        return record
    # One object, so that two records that hold it at one place are equal.
    numbers = dict.fromkeys(flags.nonfinite, math.nan)
    numbers |= {path: float(text) for path, text in flags.infinite.items()}
    back: dict[str, Any] = _restored(record, "", numbers)
    return back


def _restored(value: Any, path: str, numbers: Mapping[str, float]) -> Any:
    if value is None:
        return numbers.get(path)
    if isinstance(value, dict):
        return {key: _restored(part, _inside(path, key), numbers) for key, part in value.items()}
    if isinstance(value, list):
        return [_restored(part, f"{path}[{position}]", numbers) for position, part in enumerate(value)]
    return value


def readable_json(value: Any) -> str:
    """Return whatever somebody's environment gave as one line of JSON; it is never refused.

    Where strict_json would, values of a mapping that cannot be written are described, and of two keys that are
    written alike the later one has its type behind it.
    """
    try:
        return msgspec.json.encode(to_plain(value)[0]).decode()
    except Exception as error:  # what holds itself, or whatever somebody's own `repr` raises
        if not isinstance(value, Mapping):
            return msgspec.json.encode(_described(value, error)).decode()
    parts: dict[str, msgspec.Raw] = {}
    for key, part in value.items():
        try:
            name = _text(str(key))
        except Exception as error:
            name = _described(key, error)
        while name in parts:
            name = f"{name} ({type(key).__name__})"
        try:
            text = msgspec.json.encode(to_plain(part)[0])
        except Exception as error:
            text = msgspec.json.encode(_described(part, error))
        parts[name] = msgspec.Raw(text)
    return msgspec.json.encode(parts).decode()


def _described(value: Any, error: Exception) -> str:
    return f"{type(value).__name__}, which cannot be written: {_text(describe_error(error))}"


def to_plain(value: Any) -> tuple[Any, list[str]]:
    """Return a record as dicts, lists, text, numbers, bools and None; and the paths of what was not finite."""
    found: _Found = []
    plain = _plain(value, "", found)
    return plain, [path for path, _ in found]


def _plain(value: Any, path: str, found: _Found) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return _text(value) if isinstance(value, str) else value
    if isinstance(value, (float, np.floating)):
        number = float(value)
        if math.isfinite(number):
            return number
        found.append((path, number))
        return None
    if isinstance(value, np.generic):
        item = value.item()
        return repr(item) if isinstance(item, np.generic) else _plain(item, path, found)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), path, found)
    if isinstance(value, Mapping):
        return _plain_mapping(value, path, found)
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        if all(part.__class__ is int for part in items):  # such as the seeds of a plan
            return list(items)
        return [_plain(part, f"{path}[{position}]", found) for position, part in enumerate(items)]
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return _plain_mapping({name: getattr(value, field) for name, field in names}, path, found)
    return _text(str(value) if isinstance(value, Path) else repr(value))


def _plain_mapping(value: Mapping[Any, Any], path: str, found: _Found) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for key, part in value.items():
        name = _text(str(key.item()) if isinstance(key, np.generic) else str(key))
        if name in plain:
            raise ValueError(f"two keys are written alike in JSON: {name!r}{f' in {path}' if path else ''}")
        plain[name] = _plain(part, _inside(path, name), found)
    return plain


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _text(value: str) -> str:
    """Return text that can be written: bytes of a file name that are no UTF-8 are shown as escapes."""
    return value.encode("utf-8", "backslashreplace").decode()
