"""Ranges: of spaces, of tags, what they come to together, and the map from one to another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.plans import Affine, Ends
from rlmesh_adapters.spaces import SpaceView

_TOLERANCE = 1e-6
_UNBOUNDED = 1e30


def uniform_range(view: SpaceView) -> tuple[float, float] | None:
    """Return the bounds that all numbers of a space share, None where they differ or are not finite."""
    found = slice_range(view, 0, view.size)
    return found if found is not None and not isinstance(found[0], tuple) else None  # type: ignore[return-value]


def slice_range(view: SpaceView, offset: int, width: int) -> Ends | None:
    """Return the finite bounds of a run of a space's numbers: two where all share them, else two a number."""
    if view.low is None or view.high is None or width == 0 or view.kind != "box":
        return None
    low = _floats(view.low)[offset : offset + width]
    high = _floats(view.high)[offset : offset + width]
    # The largest numbers of a type are as good as no bounds.
    if not ((np.abs(low) < _UNBOUNDED).all() and (np.abs(high) < _UNBOUNDED).all()):
        return None
    if (low == low[0]).all() and (high == high[0]).all():
        return float(low[0]), float(high[0])
    return tuple(low.tolist()), tuple(high.tolist())


def _floats(bounds: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    return bounds.astype(np.float64).ravel()


def agree(space: Ends, tag: Ends, width: int) -> bool:
    """Tell whether two ranges are the same but for what float32 rounds away."""
    for one, other in zip(space, tag, strict=True):
        first, second = np.broadcast_to(one, width), np.broadcast_to(other, width)
        scale = np.maximum(np.maximum(np.abs(first), np.abs(second)), 1.0)
        if (np.abs(first - second) > _TOLERANCE * scale).any():
            return False
    return True


def show_ends(ends: Ends) -> str:
    """Return a range as `(0.0, 1.0)`, or with a list a side."""
    low, high = ([*end] if isinstance(end, tuple) else end for end in ends)
    return f"({low}, {high})"


def widths_fit(ends: Ends | None, width: int) -> bool:
    """Tell whether a range has one number a side, or as many as there are dimensions."""
    return ends is None or not isinstance(ends[0], tuple) or len(ends[0]) == width


def is_zero_width(ends: Ends) -> bool:
    """Tell whether some dimension of a range has no width."""
    return bool(np.any(np.asarray(ends[0]) == np.asarray(ends[1])))


def is_usable(affine: Affine) -> bool:
    """Tell whether the numbers of a map are ones that float32 holds, so that nothing becomes infinite by it."""
    numbers = np.abs(np.concatenate((np.ravel(affine.scale), np.ravel(affine.offset))))
    return bool((numbers < _UNBOUNDED).all())


def map_range(source: Ends, target: Ends) -> Affine:
    """Return the straight map that takes one range to another; the source must have a width."""
    low, high = np.asarray(source[0], float), np.asarray(source[1], float)
    least, most = np.asarray(target[0], float), np.asarray(target[1], float)
    scale = (most - least) / (high - low)
    return affine(scale, least - low * scale)


def affine(scale: npt.ArrayLike, offset: npt.ArrayLike) -> Affine:
    """Return a straight map of one number each, or one a dimension."""
    slope, shift = np.broadcast_arrays(np.asarray(scale, float), np.asarray(offset, float))
    if slope.ndim == 0:
        return Affine(float(slope), float(shift))
    return Affine(tuple(slope.tolist()), tuple(shift.tolist()))
