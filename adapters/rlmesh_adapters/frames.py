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
        self._frames: _Array | None = None

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return 0 if self._frames is None else self._frames.nbytes

    def look(self, ids: Sequence[str], frames: _Array) -> _Array:
        """Return (M, T, ...) windows that end with the given frames (M, ...), without keeping them."""
        windows = np.empty((len(ids), self._depth, *frames.shape[1:]), frames.dtype)
        slots = [self._slots.get(name, -1) for name in ids]
        known = [row for row, slot in enumerate(slots) if slot >= 0]
        if known and self._frames is not None:
            windows[known, :-1] = self._frames[[slots[row] for row in known]]
        if len(known) < len(ids):
            fresh = [row for row, slot in enumerate(slots) if slot < 0]
            windows[fresh, :-1] = frames[fresh][:, None]
        windows[:, -1] = frames
        return windows

    def keep(self, ids: Sequence[str], windows: _Array) -> None:
        """Keep what `look` returned: its frames but the oldest are the past of the next step."""
        slots = [self._slot(name, windows) for name in ids]
        assert self._frames is not None
        self._frames[slots] = windows[:, 1:]

    def _slot(self, name: str, windows: _Array) -> int:
        slot = self._slots.get(name)
        if slot is not None:
            return slot
        if not self._free:
            self._grow(windows)
        slot = self._slots[name] = self._free.pop()
        return slot

    def _grow(self, windows: _Array) -> None:
        shape = windows.shape[2:]
        old = self._frames
        count = 0 if old is None else len(old)
        grown = np.empty((max(8, 2 * count), self._depth - 1, *shape), windows.dtype)
        if old is not None:
            grown[:count] = old
        self._frames = grown
        self._free += range(len(grown) - 1, count - 1, -1)

    def evict(self, name: str) -> None:
        """Forget an episode; unknown ones are no fault."""
        slot = self._slots.pop(name, None)
        if slot is not None:
            self._free.append(slot)
