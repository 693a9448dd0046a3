"""Temporal ensembling: what is executed is the average of all that was planned for the present step.

Axes: M rows, H planned actions, A the shape of one action.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]


class Ensembler:
    """Averages the plans of each running episode, keyed by its id.

    Of n plans for the present step the i-th, the oldest being 0, weighs exp(-decay * i): the older, the more.

    decay: 0 or more; 0 weighs all alike.
    """

    def __init__(self, decay: float) -> None:
        if not decay >= 0:
            raise ValueError(f"decay {decay} is less than 0")
        self._ratio = exp(-decay)
        # For each episode the sums over its plans from the present step on: (H, A) actions, (H,) weights, and
        # (H,) the weight of the next plan.
        self._sums: dict[str, tuple[_Array, _Array, _Array]] = {}

    def average(self, ids: Sequence[str], chunks: _Array, lengths: Sequence[int] | None) -> _Array:
        """Take new plans, return the present step's actions (M, A), and move on by one step.

        chunks: (M, H, A). lengths: actions planned in each row where they differ from H.
        """
        result = np.empty((len(chunks), *chunks.shape[2:]), np.float64)
        for row, name in enumerate(ids):
            length = chunks.shape[1] if lengths is None else lengths[row]
            result[row] = self._step(name, chunks[row], length)
        return result

    def _step(self, name: str, chunk: _Array, length: int) -> _Array:
        steps, shape = len(chunk), chunk.shape[1:]
        known = self._sums.get(name)
        if known is None:
            known = np.zeros((steps, *shape)), np.zeros(steps), np.ones(steps)
            self._sums[name] = known
        actions, weights, following = known
        weight = following[:length]
        actions[:length] += weight.reshape(-1, *(1,) * len(shape)) * chunk[:length]
        weights[:length] += weight
        following[:length] *= self._ratio
        present: _Array = actions[0] / weights[0]
        for part, beyond in ((actions, 0.0), (weights, 0.0), (following, 1.0)):
            part[:-1] = part[1:]
            part[-1] = beyond
        return present

    def evict(self, name: str) -> None:
        """Forget an episode; unknown ones are no fault."""
        self._sums.pop(name, None)
