"""Spaces written short, as the engine sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rlmesh_adapters.spaces import SpaceView, frozen_array


def array_view(kind: Any, shape: tuple[int, ...], low: Any, high: Any, dtype: Any) -> SpaceView:
    return SpaceView(
        kind=kind,
        shape=shape,
        dtype=np.dtype(dtype),
        low=frozen_array(low, shape=shape, dtype=dtype),
        high=frozen_array(high, shape=shape, dtype=dtype),
    )


def box_view(*shape: int, low: Any = -np.inf, high: Any = np.inf, dtype: Any = np.float32) -> SpaceView:
    return array_view("box", shape, low, high, dtype)


def discrete_view(count: int, start: int = 0) -> SpaceView:
    return array_view("discrete", (), start, start + count - 1, np.int64)


def text_view() -> SpaceView:
    return SpaceView(kind="text", contains=lambda value: isinstance(value, str))


def dict_view(children: dict[str, SpaceView]) -> SpaceView:
    return SpaceView(kind="dict", children=tuple(children.items()))


def tuple_view(*children: SpaceView) -> SpaceView:
    return SpaceView(kind="tuple", children=tuple(enumerate(children)))
