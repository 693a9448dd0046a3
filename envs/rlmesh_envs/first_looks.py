"""First looks: do lanes show what they see in one and the same array, such as one that a class keeps?

All lanes are stepped before what they see is put together, so the last one's would stand in every row.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from rlmesh_adapters.batches import leaves


class FirstLooks:
    """Compares the arrays of the lanes' first observations; num_lanes: N."""

    def __init__(self, num_lanes: int) -> None:
        self._missing = set(range(num_lanes))
        # Kept, so that no other array comes to lie at the same place meanwhile.
        self._seen: dict[int, tuple[int, Any]] = {}

    def is_shared(self, lane: int, observation: Any) -> bool:
        """Tell whether a lane's first observation lies where another lane's does."""
        if lane not in self._missing:
            return False
        arrays = [leaf for leaf in leaves(observation) if isinstance(leaf, np.ndarray) and leaf.size]
        places = [array.__array_interface__["data"][0] for array in arrays]
        is_shared = any(self._seen.get(place, (lane, None))[0] != lane for place in places)
        self._seen.update((place, (lane, array)) for place, array in zip(places, arrays, strict=True))
        self._missing.discard(lane)
        if not self._missing:
            self._seen.clear()
        return is_shared


def copying(step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a step whose observation is its own."""

    def stepped(action: Any) -> Any:
        observation, *rest = step(action)
        return (deepcopy(observation), *rest)

    return stepped
