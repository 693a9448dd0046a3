"""Stretches: the last steps of one company of lanes, as they were made, until they are sorted by lane.

Axes: R lanes of the company, T steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import leaves
from rlmesh_adapters.spaces import SpaceView

#: R rewards of one step.
Rewards = Sequence[float] | npt.NDArray[np.float64]
_Array = npt.NDArray[Any]
# Rewards in a line of the cache.
_LINE = 8


class ActionLeaf:
    """One array of an action: the type it is given in, and the smallest that it is kept in.

    view: an array space.
    """

    __slots__ = ("given", "is_byte", "kept", "shape", "shrink", "size")

    def __init__(self, view: SpaceView) -> None:
        self.shape = view.shape
        self.given: np.dtype[Any] = np.dtype(view.dtype)
        self.kept = _smallest(view)
        #: Bytes of one action, as given.
        self.size = view.size * self.given.itemsize
        #: Whether the first byte of an action is all that is kept of it: small whole numbers, low end first.
        self.is_byte = self.kept == np.uint8 and self.size == self.given.itemsize and self.given.str[0] != ">"
        self.shrink = _shrinker(self.given, self.kept)


def action_leaves(view: SpaceView) -> list[ActionLeaf]:
    """Return the arrays of an action space, depth first."""
    if view.children:
        return [leaf for _, child in view.children for leaf in action_leaves(child)]
    return [ActionLeaf(view)] if view.is_array else []


class Stretch(Protocol):
    """T consecutive steps of R lanes."""

    @property
    def taken(self) -> int:
        """T, the steps that were added."""
        ...

    def add(self, actions: Any, rewards: Rewards) -> None:
        """Keep one step; the policy may reuse its arrays, so actions are copied."""
        ...

    def lane(self, row: int, steps: slice) -> tuple[list[float], list[bytes]]:
        """Return one lane's rewards, and the bytes of each leaf of its actions."""
        ...

    def table(self) -> tuple[npt.NDArray[np.float64], list[_Array]]:
        """Return rewards (T, R), which may be written into, and each leaf of the actions (T, R, ...)."""
        ...

    def clear(self) -> None:
        """Forget all steps; what `table` returned is used again."""
        ...


class ListStretch:
    """Keeps what few lanes were given: nothing is converted before an episode's end asks for it.

    count: R. parts: the leaves of an action.
    """

    __slots__ = ("_actions", "_byte_step", "_count", "_parts", "_rewards")

    def __init__(self, count: int, parts: Sequence[ActionLeaf]) -> None:
        self._count, self._parts = count, parts
        # Bytes of a step of all lanes, where one byte of them is all that is kept of each lane's action.
        self._byte_step = count * parts[0].size if len(parts) == 1 and parts[0].is_byte else 0
        self._rewards: list[Rewards] = []
        self._actions: list[list[bytes]] = [[] for _ in parts]

    @property
    def taken(self) -> int:
        """T."""
        return len(self._rewards)

    def add(self, actions: Any, rewards: Rewards) -> None:
        """See Stretch."""
        self._rewards.append(rewards)
        if actions.__class__ is np.ndarray:
            self._actions[0].append(actions.tobytes())
            return
        for column, leaf in zip(self._actions, leaves(actions), strict=True):
            column.append(leaf.tobytes())

    def lane(self, row: int, steps: slice) -> tuple[list[float], list[bytes]]:
        """See Stretch."""
        rewards = [step[row] for step in self._rewards[steps]]
        if self._byte_step:
            joined = b"".join(self._actions[0][steps])
            return rewards, [joined[row * self._parts[0].size :: self._byte_step]]
        columns = []
        for part, given in zip(self._parts, self._actions, strict=True):
            start = row * part.size
            joined = b"".join([step[start : start + part.size] for step in given[steps]])
            columns.append(joined if part.shrink is None else part.shrink(joined))
        return rewards, columns

    def table(self) -> tuple[npt.NDArray[np.float64], list[_Array]]:
        """See Stretch."""
        shape = (self.taken, self._count)
        if isinstance(self._rewards[0], np.ndarray):
            rewards = np.array(self._rewards, np.float64)
        else:
            # Three times faster than to let numpy find out that the lists are of one length.
            flat = np.fromiter(chain.from_iterable(self._rewards), np.float64, self.taken * self._count)
            rewards = flat.reshape(shape)
        actions = [
            np.frombuffer(b"".join(given), part.given).reshape(*shape, *part.shape)
            for part, given in zip(self._parts, self._actions, strict=True)
        ]
        return rewards, actions

    def clear(self) -> None:
        """See Stretch."""
        self._rewards = []
        self._actions = [[] for _ in self._parts]


class ArrayStretch:
    """Writes what many lanes were given into arrays that are used again and again, and so stay in the cache.

    most: steps that are kept. count: R. parts: the leaves of an action.
    """

    __slots__ = ("_actions", "_rewards", "taken")

    def __init__(self, most: int, count: int, parts: Sequence[ActionLeaf]) -> None:
        self.taken = 0
        # Rows of an odd number of lines: of a power of two, a lane's rewards would all compete for the same ones.
        lines = -(-count // _LINE) | 1
        self._rewards = np.empty((most, lines * _LINE))[:, :count]
        self._actions = [np.empty((most, count, *part.shape), part.kept) for part in parts]

    def add(self, actions: Any, rewards: Rewards) -> None:
        """See Stretch."""
        taken = self.taken
        self._rewards[taken] = rewards
        if actions.__class__ is np.ndarray:
            self._actions[0][taken] = actions
        else:
            for kept, leaf in zip(self._actions, leaves(actions), strict=True):
                kept[taken] = leaf
        self.taken = taken + 1

    def lane(self, row: int, steps: slice) -> tuple[list[float], list[bytes]]:
        """See Stretch."""
        return self._rewards[steps, row].tolist(), [kept[steps, row].tobytes() for kept in self._actions]

    def table(self) -> tuple[npt.NDArray[np.float64], list[_Array]]:
        """See Stretch."""
        return self._rewards[: self.taken], [kept[: self.taken] for kept in self._actions]

    def clear(self) -> None:
        """See Stretch."""
        self.taken = 0


def numbers(rewards: Sequence[float]) -> array[float]:
    """Return rewards as float64, of whatever type of number they are."""
    return array("d", rewards)


def _smallest(view: SpaceView) -> np.dtype[Any]:
    """Return the smallest type that holds a space's whole numbers; floats stay as they are."""
    dtype = np.dtype(view.dtype)
    if dtype.kind not in "iu" or view.low is None or view.high is None or view.size == 0:
        return dtype
    low, high = (np.min_scalar_type(int(bound)) for bound in (view.low.min(), view.high.max()))
    smallest = np.result_type(low, high)
    # Of int64 and uint64 numpy makes float64, which does not hold them.
    return smallest if smallest.kind in "iu" and smallest.itemsize < dtype.itemsize else dtype


def _shrinker(given: np.dtype[Any], kept: np.dtype[Any]) -> Callable[[bytes], bytes] | None:
    """Return what turns bytes of one type into bytes of a smaller one, None if the two are the same."""
    if given == kept:
        return None
    if kept == np.uint8 and given.str[0] == "<":
        # Of small whole numbers in little-endian order the first byte is all there is.
        return lambda joined: joined[:: given.itemsize]
    return lambda joined: np.frombuffer(joined, given).astype(kept).tobytes()
