"""Batches: rows of one space, stacked along a leading axis.

A batch has the space's own structure. A leaf is an array (M, ...) where values stack, and a list of M
objects where they do not (text, Graph, Sequence, OneOf).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, cast

import numpy as np

from .spaces import SpaceView

#: A tree of (M, ...) arrays and lists of M objects, in the structure of its space.
Batch = Any


class BatchLayout:
    """How the rows of one space are laid out in memory; allocates batches and fills them row by row.

    view: the space of one row.
    """

    __slots__ = ("_children", "_is_array", "_is_dict", "_is_whole", "dtype", "shape", "view")

    def __init__(self, view: SpaceView) -> None:
        self.view = view
        self.shape = view.shape
        self.dtype = view.dtype
        self._is_array = view.is_array
        self._is_dict = view.kind == "dict"
        # A cast to whole numbers would cut off what does not fit, without a word.
        self._is_whole = view.dtype is not None and view.dtype.kind in "iub"
        self._children = tuple((name, BatchLayout(child)) for name, child in view.children)

    @property
    def is_array(self) -> bool:
        """Whether a batch is one single array, so that a row may be stored by plain indexing."""
        return self._is_array

    def allocate(self, rows: int) -> Batch:
        """Return a batch of `rows` rows whose contents are undefined until they are written."""
        if self._is_array:
            return np.empty((rows, *self.shape), self.dtype)
        if self._children:
            parts = [(name, child.allocate(rows)) for name, child in self._children]
            return dict(parts) if self._is_dict else tuple(part for _, part in parts)
        if self.view.kind in ("dict", "tuple"):
            return {} if self._is_dict else ()
        return [None] * rows

    def write(self, batch: Batch, row: int, value: Any) -> None:
        """Copy one value into row `row`.

        Raises ValueError, naming the leaf, where the value does not have the space's shape or structure:
        numpy alone would repeat a short value over the row.
        """
        if self._is_array:
            if getattr(value, "shape", None) != self.shape or (
                self._is_whole and getattr(value, "dtype", None) != self.dtype
            ):
                value = self._checked(value)
            batch[row] = value
        elif self._children:
            for name, child in self._children:
                try:
                    part = value[name]
                except (KeyError, IndexError, TypeError) as error:
                    raise ValueError(f"`{name}` is missing from a value of {self.view}") from error
                try:
                    child.write(batch[name], row, part)
                except ValueError as error:
                    raise ValueError(f"`{name}`: {error}") from error
        elif isinstance(batch, list):
            # Text cannot change; an object may be reused by the environment that made it.
            batch[row] = value if self.view.kind == "text" else deepcopy(value)

    def _checked(self, value: Any) -> Any:
        array = np.asarray(value)
        if array.shape != self.shape:
            raise ValueError(f"expected shape {self.shape}, got {array.shape}")
        wanted = cast("np.dtype[Any]", self.dtype)
        if array.dtype.kind not in "iubf" or (
            wanted.kind in "iub" and array.dtype != wanted and not np.array_equal(array.astype(wanted), array)
        ):
            raise ValueError(f"{value!r} does not fit into {wanted}")
        return array

    def casts(self, value: Any) -> str:
        """Return which leaf of `value` loses precision when it is stored, or an empty text.

        Such as `float64 is stored as float32`; for structured spaces with the leaf's name in front.
        """
        if self._is_array:
            given = np.asarray(value).dtype
            kept = cast("np.dtype[Any]", self.dtype)
            is_python_number = type(value) in (int, bool) or (type(value) is float and kept.kind == "f")
            return "" if is_python_number or np.can_cast(given, kept) else f"{given} is stored as {kept}"
        for name, child in self._children:
            found = child.casts(value[name])
            if found:
                return f"`{name}`: {found}"
        return ""


def map_leaves(function: Callable[..., Any], batch: Batch, *others: Batch) -> Batch:
    """Apply `function` to every leaf of a tree, and to the same leaf of the others; keep the structure."""
    if isinstance(batch, dict):
        return {
            name: map_leaves(function, part, *(other[name] for other in others)) for name, part in batch.items()
        }
    if isinstance(batch, tuple):
        return tuple(map_leaves(function, *parts) for parts in zip(batch, *others, strict=True))
    return function(batch, *others)


def leaves(batch: Batch) -> list[Any]:
    """Return the leaves of a tree, depth first."""
    if isinstance(batch, dict):
        return [leaf for part in batch.values() for leaf in leaves(part)]
    if isinstance(batch, tuple):
        return [leaf for part in batch for leaf in leaves(part)]
    return [batch]


def take_rows(batch: Batch, rows: Sequence[int]) -> Batch:
    """Return a new batch of the given rows, in that order; arrays are copied."""
    if isinstance(batch, np.ndarray):
        return batch.take(rows, 0)
    if isinstance(batch, list):
        return [batch[row] for row in rows]
    return map_leaves(lambda leaf: take_rows(leaf, rows), batch)


def row_of(batch: Batch, row: int) -> Any:
    """Return one row in the structure of its space: an array view, a numpy scalar, or the object."""
    if isinstance(batch, (np.ndarray, list)):
        return batch[row]
    return map_leaves(lambda leaf: leaf[row], batch)


def one_row(value: Any) -> Batch:
    """Return one value of a space that stacks as a batch of one."""
    if isinstance(value, dict):
        return {name: one_row(part) for name, part in value.items()}
    return tuple(one_row(part) for part in value) if isinstance(value, tuple) else np.asarray(value)[None]


def iterate_rows(batch: Batch, rows: int) -> Sequence[Any]:
    """Return the rows of a batch as a sequence; an array is its own sequence of rows."""
    if isinstance(batch, (np.ndarray, list)):
        return batch  # type: ignore[return-value]
    return [row_of(batch, row) for row in range(rows)]


def put_rows(batch: Batch, rows: Sequence[int], source: Batch) -> None:
    """Copy the rows of `source`, in order, over the given rows of `batch`."""

    def put(leaf: Any, source_leaf: Any) -> None:
        if isinstance(leaf, np.ndarray):
            leaf[rows] = source_leaf
            return
        for position, row in enumerate(rows):
            leaf[row] = source_leaf[position]

    map_leaves(put, batch, source)


def copy_batch(batch: Batch) -> Batch:
    """Return a batch whose arrays and lists are new."""
    return map_leaves(lambda leaf: leaf.copy(), batch)


def stack_rows(rows: Sequence[Any]) -> Batch:
    """Stack trees of arrays of one structure along a new leading axis."""
    return map_leaves(lambda *parts: np.stack(parts), *rows)


def signature(batch: Batch) -> str:
    """Return the types of the leaves of a batch or a row, such as `image: uint8[8, 64, 64, 3], step: int64[8]`."""
    if isinstance(batch, (np.ndarray, np.generic)):
        return f"{batch.dtype}[{', '.join(map(str, batch.shape))}]"
    if isinstance(batch, dict):
        return ", ".join(f"{name}: {signature(part)}" for name, part in batch.items())
    if isinstance(batch, tuple):
        return "(" + ", ".join(signature(part) for part in batch) + ")"
    return f"list of {len(batch)}" if isinstance(batch, list) else type(batch).__name__
