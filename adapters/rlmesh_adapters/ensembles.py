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

    decay: 0 or more; 0 weighs all alike. horizon: H, the most actions of a plan.
    """

    def __init__(self, decay: float, horizon: int) -> None:
        if not decay >= 0:
            raise ValueError(f"decay {decay} is less than 0")
        self._ratio, self._horizon = exp(-decay), horizon
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        # Of each slot, from the present step on: the weighted sum of its plans (H, A), their weights (H,), and the
        # weight of the next plan (H,).
        self._sums: _Array = np.empty(0)
        self._weights: _Array = np.empty((0, horizon))
        self._next: _Array = np.empty((0, horizon))

    def average(self, ids: Sequence[str], chunks: _Array, lengths: Sequence[int] | None) -> _Array:
        """Take new plans, return the present step's actions (M, A), and move on by one step.

        chunks: (M, at most H, A). lengths: actions planned in each row where they are fewer.
        """
        slots = [self._slot(name, chunks) for name in ids]
        planned = chunks.shape[1]
        is_planned = np.ones((len(ids), planned))
        if lengths is not None:
            is_planned = (np.arange(planned) < np.asarray(lengths)[:, None]).astype(np.float64)
        weights, following = self._weights[slots], self._next[slots]
        sums = self._sums[slots]
        new = following[:, :planned] * is_planned
        sums[:, :planned] += new.reshape(*new.shape, *(1,) * (chunks.ndim - 2)) * chunks
        weights[:, :planned] += new
        following[:, :planned] *= np.where(is_planned > 0, self._ratio, 1.0)
        present: _Array = sums[:, 0] / weights[:, 0].reshape(-1, *(1,) * (chunks.ndim - 2))
        for kept, now, beyond in (
            (self._sums, sums, 0.0),
            (self._weights, weights, 0.0),
            (self._next, following, 1.0),
        ):
            kept[slots, :-1] = now[:, 1:]
            kept[slots, -1] = beyond
        return present

    def _slot(self, name: str, chunks: _Array) -> int:
        slot = self._slots.get(name)
        if slot is None:
            if not self._free:
                self._grow(chunks.shape[2:])
            slot = self._slots[name] = self._free.pop()
            self._sums[slot] = self._weights[slot] = 0.0
            self._next[slot] = 1.0
        return slot

    def _grow(self, shape: tuple[int, ...]) -> None:
        count = len(self._weights)
        more = max(8, count)
        sums = np.zeros((more, self._horizon, *shape))
        self._sums = np.concatenate((self._sums, sums)) if count else sums
        self._weights = np.concatenate((self._weights, np.zeros((more, self._horizon))))
        self._next = np.concatenate((self._next, np.ones((more, self._horizon))))
        self._free += range(count + more - 1, count - 1, -1)

    def evict(self, name: str) -> None:
        """Forget an episode; unknown ones are no fault."""
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._free.append(slot)
