"""Membership of whole batches in the bounds of an array space, as cheaply as it can be told."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from .spaces import SpaceView

Array = npt.NDArray[Any]

# A set lookup of whole numbers beats array comparisons up to about this many of them.
_FEW_NUMBERS = 48
_FEW_VALUES = 1024
# One row of up to this many floats is compared fastest in Python.
_FEW_FLOATS = 8


class Bounds:
    """The inclusive bounds of an array space, ready to be compared with batches.

    view: an array space.
    finite: also refuse infinities where the space has no bound, as actions must.

    `all_inside` takes a batch (..., *shape) and tells whether every number is inside; NaN never is.
    `is_free` says that no value of the dtype can be outside, as with uint8 pixels in 0..255.
    """

    __slots__ = ("all_inside", "high", "is_free", "low", "shape")

    def __init__(self, view: SpaceView, *, finite: bool = False) -> None:
        if view.low is None or view.high is None or view.dtype is None:
            raise TypeError(f"{view} has no bounds")
        self.low, self.high, self.shape = view.low, view.high, view.shape
        self.is_free = _covers(view.low, view.high, view.dtype)
        self.all_inside: Callable[[Array], bool] = _tester(view.low, view.high, view.dtype, finite=finite)

    def outside(self, batch: Array) -> npt.NDArray[np.bool_]:
        """Return which values of a batch (..., *shape) are outside, as a mask over the leading axes."""
        inside = (batch >= self.low) & (batch <= self.high)
        axes = tuple(range(batch.ndim - len(self.shape), batch.ndim))
        return np.asarray(~inside.all(axis=axes))


def _tester(low: Array, high: Array, dtype: np.dtype[Any], *, finite: bool) -> Callable[[Array], bool]:
    if _covers(low, high, dtype):
        anywhere = _comparer(low, high)
        # What does not fit into the type comes in another one.
        return lambda batch: batch.dtype == dtype or anywhere(batch)
    if finite and dtype.kind == "f":
        largest = np.finfo(dtype).max
        low, high = np.maximum(low, -largest), np.minimum(high, largest)
    compare = _comparer(low.astype(dtype), high.astype(dtype))
    if dtype.kind == "i" and dtype.isnative and not low.any() and (high >= 0).all():
        compare = _count_tester(high.astype(dtype), compare)
    if dtype.kind in "iu" and low.shape == () and int(high) - int(low) < _FEW_VALUES:
        return _whole_number_tester(int(low), int(high), compare)
    return compare


def _covers(low: Array, high: Array, dtype: np.dtype[Any]) -> bool:
    if dtype.kind not in "iu":
        return False
    info = np.iinfo(dtype)
    return bool((low <= info.min).all() and (high >= info.max).all())


def _comparer(low: Array, high: Array) -> Callable[[Array], bool]:
    # Bounds are repeated to the batch's size, for broadcasting over a short last axis loops over rows; and
    # bytes are compared, for `all` of a small array takes longer than the comparison that made it.
    at_least, at_most = np.greater_equal, np.less_equal
    form: Any = None
    lows, highs, yes = low, high, b""
    ends = list(zip(low.ravel().tolist(), high.ravel().tolist(), strict=True))
    bounded = [(place, least, most) for place, (least, most) in enumerate(ends) if (least, most) != (-inf, inf)]
    few = len(ends) if len(ends) <= _FEW_FLOATS else -1

    def all_inside(batch: Array) -> bool:
        nonlocal form, lows, highs, yes
        if batch.size == few:
            # One row is taken out of its list faster than it is flattened.
            values = batch.tolist()[0] if batch.ndim == 2 and len(batch) == 1 else batch.ravel().tolist()
            for position, lowest, highest in bounded:
                if not lowest <= values[position] <= highest:
                    return False
            total = sum(values)
            # NaN spoils the sum; infinities that cancel out do so too, and are told apart one by one.
            return total == total or all(value == value for value in values)
        if (batch.shape, batch.strides) != form:
            form = (batch.shape, batch.strides)
            # In the memory order of the batch, rows first or columns first.
            lows, highs = np.empty_like(batch, low.dtype), np.empty_like(batch, low.dtype)
            lows[...], highs[...] = low, high
            yes = b"\x01" * batch.size
        return at_least(batch, lows).tobytes("A") == yes and at_most(batch, highs).tobytes("A") == yes

    return all_inside


def _count_tester(high: Array, compare: Callable[[Array], bool]) -> Callable[[Array], bool]:
    """Compare numbers from zero on with one bound alone: read without their sign, negative ones are too large.

    compare: for batches of other types than the space's.
    """
    dtype, unsigned = high.dtype, np.dtype(f"u{high.dtype.itemsize}")
    at_most = np.less_equal
    form: Any = None
    highs, yes = high, b""

    def all_inside(batch: Array) -> bool:
        nonlocal form, highs, yes
        if batch.dtype != dtype:
            return compare(batch)
        if (batch.shape, batch.strides) != form:
            form = (batch.shape, batch.strides)
            highs = np.empty_like(batch)
            highs[...] = high
            highs, yes = highs.view(unsigned), b"\x01" * batch.size
        inside: Array = at_most(batch.view(unsigned), highs)
        return inside.tobytes("A") == yes

    return all_inside


def _whole_number_tester(low: int, high: int, compare: Callable[[Array], bool]) -> Callable[[Array], bool]:
    includes = frozenset(range(low, high + 1)).issuperset

    def all_inside(batch: Array) -> bool:
        if batch.ndim == 1 and len(batch) <= _FEW_NUMBERS:
            return includes(batch.tolist())
        return compare(batch)

    return all_inside
