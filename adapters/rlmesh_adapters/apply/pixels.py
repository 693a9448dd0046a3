"""Pixels: values of 0 to 255 made of what a camera gives, and whole numbers made of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.plans import ImagePlan

from .buffers import Buffers

Array = npt.NDArray[Any]


def to_pixels(source: Array, plan: ImagePlan, buffers: Buffers) -> Array:
    """Return values of 0 to 255: uint8, or float32 where the plan's floats stay floats.

    source: of any shape and numeric dtype; never modified. The result may be a view of it, or one of the buffers.
    """
    kind = source.dtype.kind
    if source.dtype == np.uint8:
        return source
    pixels = buffers.take("pixels", source.shape, np.float32 if plan.is_float else np.uint8)
    if kind == "b" or (plan.is_float and kind != "f"):
        pixels[...] = source
        return pixels
    if kind != "f":
        info = np.iinfo(source.dtype)
        np.clip(source, max(info.min, 0), min(info.max, 255), out=pixels, casting="unsafe")
        return pixels
    values = buffers.take("values", source.shape, np.float64)
    low, high = plan.src_range or (0.0, 1.0)
    # A float that is too large becomes infinite here, and 255 below.
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(source, low, out=values, dtype=np.float64)
        np.divide(values, high - low, out=values)
        np.multiply(values, 255.0, out=values)
        if not plan.is_float:
            round_into(values, 0.0, 255.0)
        pixels[...] = values
    return pixels


def round_into(values: Array, low: float, high: float) -> None:
    """Round half to even in place, into the inclusive ends; NaN becomes 0."""
    np.rint(values, out=values)
    if low != 0:
        values[np.isnan(values)] = 0
    # Unlike maximum and minimum, these prefer a number to NaN.
    np.fmax(values, low, out=values)
    np.fmin(values, high, out=values)


def float_ends(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the least and the greatest float32 that can be cast to a whole-number dtype."""
    info = np.iinfo(dtype)
    high = np.float32(info.max)
    if int(high) > info.max:
        high = np.nextafter(high, np.float32(0))
    return float(info.min), float(high)
