"""SharedBlock: the arrays of one step of all lanes, in memory that the parent and its workers share.

Axes: N lanes, R rows of one step, K numbers of an info.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlmesh_adapters.batches import Batch, BatchLayout, leaves, map_leaves

#: K, most numbers of an info that travel without being pickled.
MOST_NUMBERS = 32

# Of a cache line: two processes never write into one.
_ALIGNMENT = 64

#: Some rows of a block: a slice where they follow one another, which numpy copies faster than a list.
Rows = slice | list[int]


class SharedBlock:
    """Views of the shared memory that a step's arrays pass through; row r is that of the r-th stepped lane.

    observations, actions: (N, ...) in the structure of their spaces; leaves that do not stack are lists, which are
        not shared.
    rewards: (N,) float64.
    numbers: (N, K) float64, what infos hold (see InfoForm).
    ends: (N,) uint8, whether the episode of a row was terminated (1), truncated (2), or both (3).
    wanted: (N,) bool, lanes that are to be reset; seeds: (N,) int64, what with. These two, and what is seen first,
        stand at the number of the lane.

    observation, action: layouts of one row. lanes: N. memory: as large as `block_size` says.
    """

    def __init__(self, observation: BatchLayout, action: BatchLayout, lanes: int, memory: Any) -> None:
        self._offset = 0
        self._lanes, self._memory = lanes, memory
        self.observations = self._carve(observation)
        self.actions = self._carve(action)
        self.rewards = self._array((), np.dtype(np.float64))
        self.numbers = self._array((MOST_NUMBERS,), np.dtype(np.float64))
        self.ends = self._array((), np.dtype(np.uint8))
        self.wanted = self._array((), np.dtype(np.bool_))
        self.seeds = self._array((), np.dtype(np.int64))
        self.has_lists = has_lists(self.observations)
        self._is_array = isinstance(self.observations, np.ndarray)

    def _carve(self, layout: BatchLayout) -> Batch:
        return map_leaves(
            lambda leaf: (
                self._array(leaf.shape[1:], leaf.dtype) if isinstance(leaf, np.ndarray) else [None] * self._lanes
            ),
            layout.allocate(0),
        )

    def _array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
        array: np.ndarray[Any, Any] = np.ndarray((self._lanes, *shape), dtype, self._memory, self._offset)
        self._offset += _aligned(array.nbytes)
        return array

    def put_ends(self, rows: Rows, count: int, ended: Sequence[tuple[int, bool, bool]]) -> None:
        """Note the ends of (position, terminated, truncated) among `count` rows."""
        ends = [0] * count
        for position, terminated, truncated in ended:
            ends[position] = terminated + 2 * truncated
        self.ends[rows] = ends

    def read_ends(self, rows: Sequence[int], index: Rows) -> list[tuple[int, bool, bool]]:
        """Return (row, terminated, truncated) of those rows whose episode has ended."""
        ends = self.ends[index].tolist()
        return [(row, bool(end & 1), bool(end & 2)) for row, end in zip(rows, ends, strict=True) if end]

    def take_observations(self, rows: int) -> Batch:
        """Return the first R rows as a batch of the caller's own."""
        if self._is_array:
            return self.observations[:rows].copy()
        return map_leaves(lambda leaf: leaf[:rows].copy(), self.observations)


def block_size(observation: BatchLayout, action: BatchLayout, lanes: int) -> int:
    """Return the bytes that a SharedBlock of these layouts needs."""
    parts = [leaf for layout in (observation, action) for leaf in leaves(layout.allocate(0))]
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    sizes = [lanes * int(np.prod(part.shape[1:])) * part.itemsize for part in arrays]
    return sum(map(_aligned, [*sizes, lanes * 8, lanes * 8 * MOST_NUMBERS, lanes, lanes, lanes * 8]))


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def has_lists(batch: Batch) -> bool:
    """Tell whether some leaf of a batch does not stack."""
    return any(isinstance(leaf, list) for leaf in leaves(batch))


def open_memory(size: int) -> tuple[int, mmap.mmap]:
    """Return `size` bytes of memory without a name, which is gone with the last that holds it, and its descriptor.

    Raises OSError where there is none to be had. All of it is taken at once: memory that is missing later would
    end the process that writes into it.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("rlmesh-lanes")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, size)
        else:
            os.ftruncate(descriptor, size)
        return descriptor, mmap.mmap(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise


def map_memory(descriptor: int, size: int) -> mmap.mmap:
    """Return the memory behind a descriptor that another process has opened."""
    return mmap.mmap(descriptor, size)


def as_rows(rows: Sequence[int]) -> Rows:
    """Return row numbers in the form that numpy copies fastest."""
    first = rows[0] if rows else 0
    if list(rows) == list(range(first, first + len(rows))):
        return slice(first, first + len(rows))
    return list(rows)


def put_arrays(target: Batch, rows: Rows, source: Batch) -> None:
    """Copy the arrays of `source` over some rows of `target`; lists are left out."""

    def put(leaf: Any, source_leaf: Any) -> None:
        if isinstance(leaf, np.ndarray):
            leaf[rows] = source_leaf

    map_leaves(put, target, source)


def fits_exactly(batch: Batch, target: Batch, rows: int) -> bool:
    """Tell whether a batch of R rows can go through `target` and come out the same, types and all."""
    if isinstance(target, np.ndarray):
        return (
            isinstance(batch, np.ndarray)
            and batch.dtype == target.dtype
            and batch.shape == (rows, *target.shape[1:])
        )
    if isinstance(target, dict):
        return (
            isinstance(batch, dict)
            and batch.keys() == target.keys()
            and all(fits_exactly(batch[name], part, rows) for name, part in target.items())
        )
    if isinstance(target, tuple):
        return (
            isinstance(batch, tuple)
            and len(batch) == len(target)
            and all(fits_exactly(part, other, rows) for part, other in zip(batch, target, strict=True))
        )
    return False
