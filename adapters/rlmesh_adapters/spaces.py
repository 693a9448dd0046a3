"""SpaceView: what the engine must know of a space, without the library that made it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

Kind = Literal["box", "discrete", "multi_discrete", "multi_binary", "dict", "tuple", "text", "opaque"]

#: Kinds whose values are arrays that stack along a new leading axis.
ARRAY_KINDS = frozenset({"box", "discrete", "multi_discrete", "multi_binary"})
#: Kinds whose values are whole numbers.
INTEGER_KINDS = frozenset({"discrete", "multi_discrete", "multi_binary"})


class SpaceView(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One space, as arrays and names.

    kind: see `Kind`. `opaque` is everything that does not stack (Graph, Sequence, OneOf, ...).
    shape: of one value; `()` for `discrete`; empty for containers, text and opaque.
    dtype: of one value, None for containers, text and opaque.
    low, high: inclusive bounds of array kinds, broadcast to `shape`, read-only; None otherwise.
        A `discrete` space of n values from `start` has low `start` and high `start + n - 1`.
    children: for `dict` (name, view) in the space's own order, for `tuple` (position, view).
    contains: membership test of `text` and `opaque` values; None for the others.
    label: the space as its library prints it, for messages.
    """

    kind: Kind
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None
    low: npt.NDArray[Any] | None = None
    high: npt.NDArray[Any] | None = None
    children: tuple[tuple[str | int, SpaceView], ...] = ()
    contains: Callable[[Any], bool] | None = None
    label: str = ""

    @property
    def is_array(self) -> bool:
        """Whether values are arrays that stack."""
        return self.kind in ARRAY_KINDS

    @property
    def size(self) -> int:
        """Count of numbers in one value of an array kind."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __str__(self) -> str:
        """Return a short form such as `float32[4]`, `Discrete(2)` or `{image: uint8[8, 8, 3]}`."""
        if self.kind == "dict":
            return "{" + ", ".join(f"{name}: {child}" for name, child in self.children) + "}"
        if self.kind == "tuple":
            return "(" + ", ".join(str(child) for _, child in self.children) + ")"
        if self.kind == "box":
            return f"{self.dtype}[{', '.join(map(str, self.shape))}]"
        return self.label or self.kind


def is_choice(view: SpaceView) -> bool:
    """Whether every leaf of a space holds whole numbers to choose from."""
    if view.children:
        return all(is_choice(child) for _, child in view.children)
    return view.kind in INTEGER_KINDS


def frozen_array(values: npt.ArrayLike, *, shape: tuple[int, ...], dtype: Any = None) -> npt.NDArray[Any]:
    """Return a read-only copy of `values`, broadcast to `shape`."""
    array = np.array(np.broadcast_to(np.asarray(values, dtype=dtype), shape))
    array.setflags(write=False)
    return array


def zero_value(view: SpaceView) -> Any:
    """Return the member of a space that is nearest to zero: zeros, clipped into the bounds.

    Raises TypeError for text and opaque spaces, which have no zero.
    """
    if view.kind == "dict":
        return {name: zero_value(child) for name, child in view.children}
    if view.kind == "tuple":
        return tuple(zero_value(child) for _, child in view.children)
    if not view.is_array:
        raise TypeError(f"{view} has no zero")
    value = np.clip(np.zeros(view.shape, view.dtype), view.low, view.high).astype(view.dtype)
    return value[()] if view.shape == () else value


def sample_value(view: SpaceView, rng: np.random.Generator) -> Any:
    """Draw one member of a space from `rng`.

    Bounded numbers are uniform over their range; a float that is bounded on one side is exponential from
    that bound, an unbounded one is standard normal (the distributions that Gymnasium's `sample` uses).

    Raises TypeError for text and opaque spaces.
    """
    if view.kind == "dict":
        return {name: sample_value(child, rng) for name, child in view.children}
    if view.kind == "tuple":
        return tuple(sample_value(child, rng) for _, child in view.children)
    if not view.is_array or view.low is None or view.high is None or view.dtype is None:
        raise TypeError(f"{view} cannot be sampled")
    if view.dtype.kind in "iub":
        drawn = rng.integers(view.low, view.high, size=view.shape, dtype=view.dtype, endpoint=True)
        return view.dtype.type(drawn) if view.shape == () else drawn.astype(view.dtype)
    return _sample_floats(view.low, view.high, rng).astype(view.dtype)


def _sample_floats(
    low: npt.NDArray[Any], high: npt.NDArray[Any], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    lower, upper = low.astype(np.float64), high.astype(np.float64)
    has_low, has_high = np.isfinite(lower), np.isfinite(upper)
    both = has_low & has_high
    drawn = rng.standard_normal(lower.shape)
    share = rng.random(int(both.sum()))
    least, most = lower[both], upper[both]
    with np.errstate(over="ignore", invalid="ignore"):
        drawn[both] = np.where(
            np.isfinite(most - least), least + (most - least) * share, least * (1 - share) + most * share
        )
    only_low, only_high = has_low & ~has_high, has_high & ~has_low
    drawn[only_low] = lower[only_low] + rng.exponential(size=int(only_low.sum()))
    drawn[only_high] = upper[only_high] - rng.exponential(size=int(only_high.sum()))
    return drawn
