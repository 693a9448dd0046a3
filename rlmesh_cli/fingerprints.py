"""Hashes of what an episode started from and of what happened in it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import leaves
from rlmesh_adapters.roster import Roster
from rlmesh_adapters.spaces import SpaceView

# 64 bits tell a run's episodes apart; the whole digest would only make rows longer.
_DIGITS = 16
_BLOCK_BYTES = 4_000_000
# Up to here Python adds faster than numpy's accumulate starts up.
_FEW = 24


def start_hash(observation: Any, info: Mapping[str, Any]) -> str:
    """Return 16 hex digits of an episode's first observation and info.

    Values that have no canonical bytes (objects of other types) count by their type only.
    """
    digest = hashlib.sha256()
    _update(digest, observation)
    if info:
        _update(digest, info)
    return digest.hexdigest()[:_DIGITS]


def _update(digest: Any, value: Any) -> None:
    if isinstance(value, (np.ndarray, np.generic)):
        if value.dtype.kind == "O":
            _update(digest, value.tolist())
            return
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        digest.update(value.tobytes())
    elif isinstance(value, Mapping):
        digest.update(b"{")
        for key in sorted(value, key=str):
            digest.update(str(key).encode())
            _update(digest, value[key])
    elif isinstance(value, (list, tuple)):
        digest.update(b"[")
        for part in value:
            _update(digest, part)
    elif isinstance(value, (str, int, float, bool, type(None))):
        digest.update(repr(value).encode())
    else:
        digest.update(type(value).__name__.encode())


class TraceBook:
    """Executed actions and rewards of all running lanes: returns, lengths and trace hashes come from it.

    Kept in blocks of columns, one column a lane, and filled a stretch of steps at a time.

    num_lanes: N. action: space of one action.
    """

    def __init__(self, num_lanes: int, action: SpaceView) -> None:
        views = _leaf_views(action)
        row_bytes = num_lanes * (8 + sum(view.size * np.dtype(view.dtype).itemsize for view in views))
        #: Most steps of a stretch.
        self.most = max(16, min(512, _BLOCK_BYTES // max(1, row_bytes)))
        self._block = 2 * self.most
        self._rewards = np.zeros((self._block, num_lanes))
        self._actions = [np.zeros((self._block, num_lanes, *view.shape), view.dtype) for view in views]
        self._num_lanes = num_lanes
        self._now = 0
        self._begun = [0] * num_lanes
        self._earlier: dict[int, list[bytes]] = {}

    def begin(self, lane: int) -> None:
        """Start a lane's episode at the next recorded step."""
        self._begun[lane] = self._now
        self._earlier.pop(lane, None)

    def extend(self, roster: Roster, stretch: Stretch) -> None:
        """Keep a stretch of T steps, at most `most`, that the roster's lanes made together."""
        taken = len(stretch.rewards)
        if not taken or not roster.count:
            return
        if self._now + taken > self._block:
            self._flush(roster.lanes)
        now, then = self._now, self._now + taken
        self._now = then
        if taken == 1:
            self._keep_one(now, roster, stretch)
            return
        # A slice is several times faster than an index of all lanes.
        lanes = slice(None) if roster.count == self._num_lanes else roster.lane_index
        self._rewards[now:then, lanes] = stretch.rewards
        for kept, column in zip(self._actions, stretch.actions, strict=True):
            shape = (taken, roster.count, *kept.shape[2:])
            kept[now:then, lanes] = np.frombuffer(b"".join(column), kept.dtype).reshape(shape)

    def _keep_one(self, now: int, roster: Roster, stretch: Stretch) -> None:
        lanes = slice(None) if roster.count == self._num_lanes else roster.lane_index
        self._rewards[now, lanes] = stretch.rewards[0]
        for kept, column in zip(self._actions, stretch.actions, strict=True):
            row = np.frombuffer(column[0], kept.dtype)
            kept[now, lanes] = row if kept.ndim == 2 else row.reshape(roster.count, *kept.shape[2:])

    def stretch(self) -> Stretch:
        """Return an empty stretch to be filled."""
        return Stretch(len(self._actions))

    def end(self, lane: int, *, drop_last: bool = False) -> tuple[int, float, str]:
        """Return (length, return, trace hash) of a lane's episode.

        drop_last: the last recorded step did not finish.
        """
        columns = self._columns(lane, self._now - drop_last)
        if lane in self._earlier:
            columns = [before + now for before, now in zip(self._earlier.pop(lane), columns, strict=True)]
        rewards = np.frombuffer(columns[0])
        digest = hashlib.sha256(b"".join(columns)).hexdigest()
        return len(rewards), _sum_in_order(rewards), digest[:_DIGITS]

    def _columns(self, lane: int, stop: int) -> list[bytes]:
        begun = self._begun[lane]
        return [self._rewards[begun:stop, lane].tobytes()] + [
            kept[begun:stop, lane].tobytes() for kept in self._actions
        ]

    def _flush(self, running: tuple[int, ...]) -> None:
        """Set aside what the block holds of the running episodes, so that it can be filled again."""
        for lane in running:
            columns = self._columns(lane, self._now)
            before = self._earlier.get(lane, [b""] * len(columns))
            self._earlier[lane] = [old + new for old, new in zip(before, columns, strict=True)]
            self._begun[lane] = 0
        self._now = 0


def _sum_in_order(rewards: npt.NDArray[np.float64]) -> float:
    """Add one reward after the other, as a plain loop over the episode does.

    Pairwise summation, and Python's own compensated `sum`, would differ from it in the last bits.
    """
    if len(rewards) <= _FEW:
        total = 0.0
        for reward in rewards.tolist():
            total += reward
        return total
    return float(np.add.accumulate(rewards)[-1])


class Stretch:
    """Consecutive steps of one company of R lanes, as they were made.

    rewards: T times R rewards. actions: for each leaf of an action, T times its (R, ...) bytes.
    """

    __slots__ = ("actions", "rewards")

    def __init__(self, num_leaves: int) -> None:
        self.rewards: list[Sequence[float] | npt.NDArray[np.float64]] = []
        self.actions: list[list[bytes]] = [[] for _ in range(num_leaves)]

    def add(self, actions: Any, rewards: Sequence[float] | npt.NDArray[np.float64]) -> None:
        """Keep one step; the policy may reuse its arrays, so actions are copied."""
        self.rewards.append(rewards)
        if actions.__class__ is np.ndarray:
            self.actions[0].append(actions.tobytes())
            return
        for column, leaf in zip(self.actions, leaves(actions), strict=True):
            column.append(leaf.tobytes())


def _leaf_views(view: SpaceView) -> list[SpaceView]:
    if view.children:
        return [leaf for _, child in view.children for leaf in _leaf_views(child)]
    return [view] if view.is_array else []
