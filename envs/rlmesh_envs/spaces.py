"""Gymnasium spaces as the views the engine works with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_adapters.spaces import SpaceView, frozen_array

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def view_of(space: spaces.Space[Any]) -> SpaceView:
    """Return the view of a gymnasium space; what does not stack is `opaque` and passed on as objects."""
    if isinstance(space, spaces.Dict):
        children = tuple((name, view_of(child)) for name, child in space.spaces.items())
        return SpaceView(kind="dict", children=children, label=_label(space))
    if isinstance(space, spaces.Tuple):
        parts = tuple((position, view_of(child)) for position, child in enumerate(space.spaces))
        return SpaceView(kind="tuple", children=parts, label=_label(space))
    if isinstance(space, spaces.Box):
        return SpaceView(
            kind="box",
            shape=space.shape,
            dtype=np.dtype(space.dtype),
            low=frozen_array(space.low, shape=space.shape),
            high=frozen_array(space.high, shape=space.shape),
            label=_label(space),
        )
    if isinstance(space, spaces.Discrete):
        low = int(space.start)
        return _whole_numbers("discrete", space, low, low + int(space.n) - 1)
    if isinstance(space, spaces.MultiDiscrete):
        return _whole_numbers("multi_discrete", space, space.start, space.start + space.nvec - 1)
    if isinstance(space, spaces.MultiBinary):
        return _whole_numbers("multi_binary", space, 0, 1)
    # Spaces of texts that are no Text, such as a grid world's missions, say so by their dtype.
    is_text = isinstance(space, spaces.Text) or (space.dtype is not None and space.dtype.kind == "U")
    kind = "text" if is_text else "opaque"
    return SpaceView(kind=kind, contains=space.contains, label=_label(space))  # type: ignore[arg-type]


def _whole_numbers(kind: Any, space: spaces.Space[Any], low: Any, high: Any) -> SpaceView:
    shape = space.shape or ()
    dtype = np.dtype(space.dtype)
    return SpaceView(
        kind=kind,
        shape=shape,
        dtype=dtype,
        low=frozen_array(low, shape=shape, dtype=dtype),
        high=frozen_array(high, shape=shape, dtype=dtype),
        label=_label(space),
    )


def _label(space: spaces.Space[Any]) -> str:
    # An address is another one in each process, and says nothing.
    return _ADDRESS.sub("", repr(space))


def check_alike(known: Mapping[int, Any]) -> None:
    """Refuse lanes whose spaces differ from those of lane 0.

    known: lane -> whatever has its `observation_space` and `action_space`.

    Raises EnvironmentBuildError, naming the lane and both spaces, or the space that there is not.
    """
    for lane, one in known.items():
        for what in ("observation_space", "action_space"):
            first, found = getattr(known[0], what, None), getattr(one, what, None)
            if not isinstance(found, spaces.Space):
                raise EnvironmentBuildError(
                    f"the environment has no {what}" + ("" if found is None else f", but {found!r}"),
                    where="environment",
                    mend=f"set self.{what}, one of gymnasium.spaces, in its constructor",
                )
            if found != first:
                raise EnvironmentBuildError(
                    f"lanes differ: {what} of lane {lane} is {found}, of lane 0 {first}",
                    where="environment",
                    mend="make the environment's spaces the same each time it is built",
                )
