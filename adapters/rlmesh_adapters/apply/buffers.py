"""Buffers: memory for what is made on the way, kept from one batch to the next."""

from __future__ import annotations

import threading
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt


class Buffers(threading.local):
    """Arrays by name, each thread's apart; nothing that is handed out may be one of them."""

    def __init__(self) -> None:
        self._flat: dict[str, npt.NDArray[Any]] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array with undefined contents, over what was taken under this name before."""
        size = prod(shape)
        flat = self._flat.get(name)
        if flat is None or flat.size < size or flat.dtype != dtype:
            flat = self._flat[name] = np.empty(size, dtype)
        return flat[:size].reshape(shape)
