"""Plans: what resolving a route gives, frozen records that say exactly which array operations run.

Nothing in a plan refers to documents or spaces any more. Axes: M rows, D numbers of a flat value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from .paths import NodePath

#: Inclusive ends of a value's range, one number each, or one a dimension.
Ends = tuple[float | tuple[float, ...], float | tuple[float, ...]]


class Affine(msgspec.Struct, frozen=True):
    """`value * scale + offset`, in float64; one number for all dimensions, or one each."""

    scale: float | tuple[float, ...]
    offset: float | tuple[float, ...]


class ImagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One camera image of the model's input.

    placement: where it goes in the model's input. source: where it comes from, None if it is made up.
    role: that the model asked for. bound_role: that the source has; another one where the only camera was taken.
    src_layout, dst_layout: `hwc` or `chw`. src_shape: (height, width, channels) of the source.
    flip_rows, flip_columns: reverse top and bottom, left and right; both are a turn by 180 degrees.
    swap_channels: reverse the three channels (rgb and bgr).
    size: (height, width) after resizing, None leaves it as it is. fit: `stretch`, `crop` or `pad`; empty without
        a size. resample: `bilinear` or `bilinear_aa`.
    src_range: the source's floats that become 0 and 255; None if they are in 0..1 or it holds bytes.
    is_float: whether floats stay floats, without being rounded to 8 bits on the way.
    dtype: of the result. normalize: (lo, hi) that 0 and 255 become, None leaves 0..255.
    mean, std: one number a channel, subtracted and divided by after `normalize`; empty for none.
    lead_dims: axes of size 1 in front of one image. stack: frames on a further axis in front, oldest first.
    zero_fill: (height, width, channels) of an image without a source. fill: its value, 0 to 255.
    """

    placement: NodePath
    source: NodePath | None
    role: str
    bound_role: str
    src_layout: str = "hwc"
    dst_layout: str = "hwc"
    src_shape: tuple[int, int, int] = (0, 0, 0)
    flip_rows: bool = False
    flip_columns: bool = False
    swap_channels: bool = False
    size: tuple[int, int] | None = None
    fit: str = ""
    resample: str = "bilinear"
    src_range: tuple[float, float] | None = None
    is_float: bool = False
    dtype: str = "uint8"
    normalize: tuple[float, float] | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    lead_dims: int = 0
    stack: int = 1
    zero_fill: tuple[int, int, int] | None = None
    fill: int = 0


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a concatenated state.

    role: that the model asked for. source: where it comes from, None for zeros.
    src_width: numbers of the whole source. offset, src_dim: the slice of it that is this role's.
    src_encoding, dst_encoding: rotation names; empty where none is declared. keeps_sign: whether a rotation keeps
        the sign of its quaternion instead of the shortest form.
    decode: from dst_encoding to an encoding of the user's own, (D,) -> (D,).
    dim: keep so many in front. index: keep only this one. width: numbers that are left.
    src_range, dst_range: as declared; they are mapped where both are there and differ.
    affine: what they, or statistics, come to; None for nothing.
    """

    role: str
    source: NodePath | None
    width: int
    src_width: int = 0
    offset: int = 0
    src_dim: int = 0
    is_field: bool = False
    src_encoding: str = ""
    dst_encoding: str = ""
    keeps_sign: bool = False
    decode: Callable[[Any], Any] | None = None
    dim: int | None = None
    index: int | None = None
    src_range: Ends | None = None
    dst_range: Ends | None = None
    statistics: str = ""
    affine: Affine | None = None


class StatePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One flat state of the model's input: its pieces in a row.

    width: numbers after concatenation and padding. pad_to: zeros are appended up to this many.
    reshape: shape of the result, without -1; None for (width,). container: `array` or `list`.
    stack: frames on an axis in front, oldest first.
    """

    placement: NodePath
    pieces: tuple[Piece, ...]
    width: int
    pad_to: int | None = None
    dtype: str = "float32"
    reshape: tuple[int, ...] | None = None
    container: str = "array"
    stack: int = 1


class TextPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One text of the model's input.

    source: where it comes from, None for `fill` alone. container: `str` or `list` (of one text).
    """

    placement: NodePath
    source: NodePath | None
    role: str
    container: str = "str"
    fill: str | None = None


class CustomPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One input made by a function of the user's own, from one raw observation.

    transform: observation -> value. reference: how it was named.
    """

    placement: NodePath
    transform: Callable[[Any], Any]
    reference: str


ObservationPlan = ImagePlan | StatePlan | TextPlan | CustomPlan


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """What one component of the environment's action is made of.

    role: empty for a component that nobody drives. width: numbers of the environment's action.
    start, stop: the slice of the model's output. fill: the constant that is sent instead, None if none is.
    src_encoding, dst_encoding, keeps_sign: as in Piece. encode: the model's own encoding -> its base.
    src_range, dst_range: as declared, None where the two are the same. affine: what they, or statistics, come to.
    model_scale, model_invert, model_threshold, scale, invert, threshold: applied in this order, first the model's.
    is_binary: snap to -1 and +1. clip: ends of its own.
    select: `argmax`, `index` or `threshold` for a discrete action. low, count: its first value, and how many.
    reference: piece of the observation that is added (`sign` 1) or subtracted (-1); None for neither.
    """

    role: str
    width: int
    start: int = 0
    stop: int = 0
    fill: float | None = None
    src_encoding: str = ""
    dst_encoding: str = ""
    keeps_sign: bool = False
    encode: Callable[[Any], Any] | None = None
    src_range: Ends | None = None
    dst_range: Ends | None = None
    statistics: str = ""
    affine: Affine | None = None
    model_scale: float | None = None
    model_invert: bool = False
    model_threshold: float | None = None
    scale: float | None = None
    invert: bool = False
    threshold: float | None = None
    is_binary: bool = False
    clip: Ends | None = None
    select: str = ""
    low: int = 0
    count: int = 0
    reference: Piece | None = None
    sign: int = 0


class ActionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How the model's flat output becomes an action of the environment.

    segments: in the environment's order. in_dim: numbers the model gives. clip: ends of the whole vector.
    shape, dtype: of one action of the environment.
    """

    segments: tuple[Segment, ...]
    in_dim: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    clip: tuple[float, float] | None = None
