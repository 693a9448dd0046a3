"""Frame windows: the last frames of each running episode, keyed by its id, never by its lane.

Axes: M rows, T frames of a window, the oldest first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_Array = npt.NDArray[Any]


class FrameWindow:
    """Windows of T frames over one input. The first frame of an episode stands for those before it.

    depth: T.
    """

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        # Of each slot the frames before the present one, the oldest first.
        self._past: _Array = np.empty(0)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return self._past.nbytes

    def look(self, ids: Sequence[str], frames: _Array) -> _Array:
        """Return (M, T, ...) windows that end with the given frames (M, ...), without keeping them."""
        windows = np.empty((len(ids), self._depth, *frames.shape[1:]), frames.dtype)
        slots = [self._slots.get(name, -1) for name in ids]
        known = [row for row, slot in enumerate(slots) if slot >= 0]
        if known:
            windows[known, :-1] = self._past[[slots[row] for row in known]]
        if len(known) < len(ids):
            fresh = [row for row, slot in enumerate(slots) if slot < 0]
            windows[fresh, :-1] = frames[fresh][:, None]
        windows[:, -1] = frames
        return windows

    def keep(self, ids: Sequence[str], frames: _Array) -> None:
        """Take frames (M, ...) in as the latest of their episodes."""
        for row, name in enumerate(ids):
            if name not in self._slots:
                if not self._free:
                    self._grow(frames)
                self._slots[name] = self._free.pop()
                self._past[self._slots[name]] = frames[row]
        slots = [self._slots[name] for name in ids]
        past = self._past
        past[slots, :-1] = past[slots, 1:]
        past[slots, -1] = frames

    def _grow(self, frames: _Array) -> None:
        old = self._past
        count = len(old)
        grown = np.empty((max(8, 2 * count), self._depth - 1, *frames.shape[1:]), frames.dtype)
        if count:
            grown[:count] = old
        self._past = grown
        self._free += range(len(grown) - 1, count - 1, -1)

    def evict(self, name: str) -> None:
        """Forget an episode; unknown ones are no fault."""
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._free.append(slot)
