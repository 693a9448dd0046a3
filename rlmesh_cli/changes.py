"""Changes: where two plain values differ, path by path, and what stands there in both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import msgspec

from rlmesh_adapters.errors import shortened

#: Letters of a value that are shown.
_MOST = 60
#: Letters before the first that differs.
_BEFORE = 12
#: Whole numbers that are listed; more are told as a range.
_LISTED = 6
_DIGITS = 12
_HASH = re.compile(r"[0-9a-f]{64}")


class Change(msgspec.Struct, frozen=True):
    """A path, such as `model_spec.input.pos.normalize.std`, and what two values say there; UNSET: nothing."""

    path: str
    one: Any
    other: Any

    @property
    def texts(self) -> tuple[str, str]:
        """Both values in a few letters; long ones from shortly before the first letter that differs."""
        one, other = _shown(self.one), _shown(self.other)
        if max(len(one), len(other)) <= _MOST:
            return one, other
        start = max(0, _common(one, other) - _BEFORE)
        lead = "..." if start else ""
        return shortened(lead + one[start:], _MOST), shortened(lead + other[start:], _MOST)


def changes_of(path: str, one: Any, other: Any) -> Iterator[Change]:
    """Yield where two values differ; nothing only if they are equal.

    Mappings, and lists of (name, text), are compared by name; lists between what they begin and end with alike.
    """
    if one == other:
        return
    if (found := _by_name(one, other)) is not None:
        one, other, form = found
        for key in dict.fromkeys((*one, *other)):
            yield from changes_of(
                path + form.format(key), one.get(key, msgspec.UNSET), other.get(key, msgspec.UNSET)
            )
    elif isinstance(one, list) and isinstance(other, list) and not _is_readable(one, other):
        yield from _changes_of_lists(path, one, other)
    else:
        yield Change(path, one, other)


def _changes_of_lists(path: str, one: list[Any], other: list[Any]) -> Iterator[Change]:
    head = _common(one, other)
    tail = _common(one[head:][::-1], other[head:][::-1])
    left, right = one[head : len(one) - tail], other[head : len(other) - tail]
    if len(left) == len(right):
        for at, (before, after) in enumerate(zip(left, right, strict=True), head):
            yield from changes_of(f"{path}[{at}]", before, after)
    else:
        yield Change(f"{path}[{head}:]", left, right)


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return with how many equal values, or letters, both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _by_name(one: Any, other: Any) -> tuple[Mapping[str, Any], Mapping[str, Any], str] | None:
    """Return two values as mappings, and how a key stands in a path; None if they are none, or alike as such."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one, other, ".{}"
    first, second = _named(one), _named(other)
    return None if first is None or second is None or first == second else (first, second, "[{}]")


def _named(value: Any) -> dict[str, str] | None:
    """Return a list of (name, text) as a mapping, None if it is none, or has two texts of one name."""
    if not isinstance(value, list):
        return None
    pairs = [part for part in value if isinstance(part, list) and [type(end) for end in part] == [str, str]]
    found: dict[str, str] = dict(pairs)
    return found if pairs == value and all(found[name] == text for name, text in pairs) else None


def _is_readable(one: list[Any], other: list[Any]) -> bool:
    """Tell whether two lists of single values are short enough to be shown whole, and are not shown alike."""
    if any(isinstance(part, (list, Mapping)) for part in (*one, *other)):
        return False
    texts = _shown(one), _shown(other)
    return max(map(len, texts)) <= _MOST and texts[0] != texts[1]


def _shown(value: Any) -> str:
    if value is msgspec.UNSET:
        return "not there"
    if value is None:
        return "none"
    if isinstance(value, list) and len(value) > _LISTED and all(type(part) is int for part in value):
        return f"{len(value):,} from {value[0]} to {value[-1]}"
    if isinstance(value, str):
        if _HASH.fullmatch(value):
            return f"{value[:_DIGITS]}.."
        return value if value.isprintable() and value else repr(value)
    return str(value)
