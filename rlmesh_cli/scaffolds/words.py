"""Words: spaces and values as a comment says them, in one line of printable text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from rlmesh_adapters.errors import shortened
from rlmesh_adapters.paths import NodePath
from rlmesh_adapters.spaces import SpaceView
from rlmesh_cli.documents import printable

_MOST_NUMBERS = 8
_LONGEST = 100
_SIMPLE = re.compile(r"[ !#-\[\]-~]*")
_UNBOUNDED = 1e30


def one_line(text: str, most: int = 200) -> str:
    """Return text in one printable line, its beginning if it is longer than `most`."""
    return shortened(printable(text).replace("\n", "\\n"), most)


def place(path: NodePath, name: str = "obs") -> str:
    """Return the expression for a part, such as `obs["image"]`."""
    segments = (quoted(segment) if isinstance(segment, str) else repr(segment) for segment in path)
    return one_line(name + "".join(f"[{segment}]" for segment in segments))


def quoted(text: str) -> str:
    """Return text as Python in double quotes, escaped where it must be."""
    return f'"{text}"' if _SIMPLE.fullmatch(text) else ascii(text)


def title(path: NodePath) -> str:
    """Return the name of a part in prose, such as `hand[0].pos`."""
    text = ""
    for segment in path:
        text += f"[{segment}]" if isinstance(segment, int) else f"{'.' if text else ''}{segment}"
    return one_line(text, 60)


def kind(view: SpaceView, rows: str = "") -> str:
    """Return dtype and shape, such as `uint8 (96, 96, 3)`.

    rows: letter of a leading axis, such as `M`.
    """
    if view.kind == "text":
        return "text"
    if not view.is_array:
        return one_line(str(view), _LONGEST)
    if view.kind == "discrete":
        return f"a whole number ({view.dtype})" if not rows else f"{rows} whole numbers ({view.dtype})"
    sizes = [*([rows] if rows else []), *map(str, view.shape)]
    if not sizes:
        return f"{view.dtype}, one number"
    return f"{view.dtype} ({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"


def bounds(view: SpaceView) -> str:
    """Return the range of an array space, such as `0 to 255`; empty for others and for spaces without numbers."""
    if view.low is None or view.high is None or not view.size:
        return ""
    low, high = view.low.reshape(-1).tolist(), view.high.reshape(-1).tolist()
    if len({*map(number, low)}) == len({*map(number, high)}) == 1:
        ends = number(low[0]), number(high[0])
        return "without bounds" if ends == ("-inf", "inf") else f"{ends[0]} to {ends[1]}"
    if view.size <= _MOST_NUMBERS:
        return f"from {_listed(low)} to {_listed(high)}"
    return f"{number(min(low))} to {number(max(high))}, each number with bounds of its own"


def number(value: Any) -> str:
    """Return a number in at most six digits."""
    if isinstance(value, (bool, np.bool_)) or np.asarray(value).dtype.kind in "iu":
        return str(value)
    plain = float(value)
    # The largest number of a type is as good as no bound.
    if abs(plain) >= _UNBOUNDED:
        return "inf" if plain > 0 else "-inf"
    return f"{plain:.6g}"


def sample(view: SpaceView, value: Any) -> str:
    """Return a value of a space in a few words: its numbers, or their spread where they are many."""
    if not view.is_array:
        try:
            return one_line(repr(value), _LONGEST)
        except Exception:  # a user's __repr__ may raise anything
            return f"a {type(value).__name__}"
    array = np.asarray(value)
    if not array.size:
        return "no numbers"
    if array.size <= _MOST_NUMBERS:
        return _listed(array.tolist())
    spread = f"{number(array.min())} to {number(array.max())}"
    return f"{spread}, on average {number(array.astype(np.float64).mean())}"


def _listed(plain: Any) -> str:
    if isinstance(plain, list):
        return "[" + ", ".join(map(_listed, plain)) + "]"
    return number(plain)
