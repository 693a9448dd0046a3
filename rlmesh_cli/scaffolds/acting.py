"""Acting: a line of Python that draws a member of an action space, from nothing but a generator `rng`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.spaces import SpaceView

from .words import quoted

_LARGEST = 2**63 - 1


def drawing(view: SpaceView) -> str:
    """Return an expression that draws a member of an action space with `rng` and `np`.

    Floats without a bound on both sides are drawn near zero and clipped.

    Raises TypeError for text and opaque spaces.
    """
    if view.kind == "dict":
        return "{" + ", ".join(f"{quoted(str(name))}: {drawing(child)}" for name, child in view.children) + "}"
    if view.kind == "tuple":
        parts = [drawing(child) for _, child in view.children]
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    if not view.is_array or view.dtype is None:
        raise TypeError(f"{view} cannot be drawn from")
    kind = f"np.{view.dtype.name}" if view.dtype != np.bool_ else "np.bool_"
    if not view.size:
        return f"np.zeros({view.shape}, {kind})"
    low, high = _common(view.low), _common(view.high)
    if view.dtype.kind in "iub":
        return _whole(view, low, high, kind)
    if _is_narrow(view):
        return (
            f"rng.uniform({low}, {high}, {view.shape}).astype({kind})"
            if view.shape
            else (f"{kind}(rng.uniform({low}, {high}))")
        )
    drawn = f"rng.standard_normal({view.shape})" if view.shape else "rng.standard_normal()"
    if not (np.isinf(view.low).all() and np.isinf(view.high).all()):  # type: ignore[arg-type]
        drawn = f"np.clip({drawn}, {low}, {high})"
    return f"{drawn}.astype({kind})" if view.shape else f"{kind}({drawn})"


def _whole(view: SpaceView, low: str, high: str, kind: str) -> str:
    if view.kind == "discrete" and view.high is not None and int(view.high) < _LARGEST:
        least = "" if low == "0" else f"{low}, "
        return f"rng.integers({least}{int(view.high) + 1})"
    size = f", {view.shape}" if view.shape else ""
    return f"rng.integers({low}, {high}{size}, {kind}, endpoint=True)"


def _is_narrow(view: SpaceView) -> bool:
    """Tell whether all numbers have two bounds whose distance a float holds."""
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.asarray(view.high, np.float64) - np.asarray(view.low, np.float64)
    return bool(np.isfinite(width).all())


def _common(ends: npt.NDArray[Any] | None) -> str:
    """Return one end of a space as Python: a number where all are alike, else an array."""
    array = np.asarray(ends)
    flat = array.reshape(-1)
    if (flat == flat[0]).all():
        return literal(flat[0].item())
    return f"np.array({_nested(array.tolist())})"


def _nested(plain: Any) -> str:
    return "[" + ", ".join(map(_nested, plain)) + "]" if isinstance(plain, list) else literal(plain)


def literal(value: Any) -> str:
    """Return a number as Python reads it; infinity is numpy's."""
    if isinstance(value, float) and np.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(value)
