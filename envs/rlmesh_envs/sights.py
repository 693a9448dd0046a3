"""What all lanes of a foreign vector environment see, as a batch that may be kept.

Axes: N lanes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlmesh_adapters.batches import Batch
from rlmesh_adapters.spaces import SpaceView


def as_batch(view: SpaceView, observations: Any, num_lanes: int, name: str = "") -> Batch:
    """Return the vector environment's observations (N, ...) as a batch in memory of its own.

    Raises ValueError, naming the leaf, for a structure or shape that is not the space's.
    """
    if view.children or view.kind in ("dict", "tuple"):
        parts = {}
        for key, child in view.children:
            path = f"{name}.{key}" if name else str(key)
            try:
                part = observations[key]
            except (KeyError, IndexError, TypeError) as error:
                inside = f"`{name}` of the observations" if name else "the observations"
                raise ValueError(f"`{key}` is missing from {inside}") from error
            parts[key] = as_batch(child, part, num_lanes, path)
        return parts if view.kind == "dict" else tuple(parts.values())
    where = f"`{name}` of the observations" if name else "the observations"
    if not view.is_array:
        if len(observations) != num_lanes:
            raise ValueError(f"{where}: {len(observations)} for {num_lanes} lanes")
        return list(observations)
    # In the memory order that the environment chose: to turn a large array around costs more than to read it.
    given = np.asarray(observations)
    batch = np.array(given, view.dtype, order="K")
    if batch.dtype.kind in "iub" and given.dtype != batch.dtype and np.any(batch != given):
        raise ValueError(f"{where}: {given.dtype} numbers do not fit into {view.dtype}")
    if batch.shape != (num_lanes, *view.shape):
        raise ValueError(f"{where}: expected shape {(num_lanes, *view.shape)}, got {batch.shape}")
    return batch


def first_row(view: SpaceView, observations: Any) -> Any:
    """Return the first lane's observation, as far as it has the structure of the space."""
    if view.children:
        return {key: first_row(child, observations[key]) for key, child in view.children}
    return observations[0]
