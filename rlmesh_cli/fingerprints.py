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

    Kept in blocks, one row a lane, and filled a stretch of steps at a time. Rewards are added one after the other,
    as a plain loop over the episode adds them.

    num_lanes: N. action: space of one action.
    """

    def __init__(self, num_lanes: int, action: SpaceView) -> None:
        views = _leaf_views(action)
        dtypes = [_smallest(view) for view in views]
        step_bytes = 8 + sum(view.size * dtype.itemsize for view, dtype in zip(views, dtypes, strict=True))
        #: Most steps of a stretch.
        self.most = max(16, min(512, _BLOCK_BYTES // max(1, num_lanes * step_bytes)))
        self._block = 2 * self.most
        self._num_lanes = num_lanes
        self._given = [np.dtype(view.dtype) for view in views]
        self._rewards = np.zeros((num_lanes, self._block))
        self._actions = [
            np.zeros((num_lanes, self._block, *view.shape), dtype)
            for view, dtype in zip(views, dtypes, strict=True)
        ]
        # Each lane's return up to now, and up to the step before.
        self._totals, self._totals_before = np.zeros((2, num_lanes))
        self._now = 0
        self._begun = [0] * num_lanes
        self._earlier: dict[int, list[bytes]] = {}

    def begin(self, lane: int) -> None:
        """Start a lane's episode at the next recorded step."""
        self._begun[lane] = self._now
        self._totals[lane] = self._totals_before[lane] = 0.0
        if self._earlier:
            self._earlier.pop(lane, None)

    def extend(self, roster: Roster, stretch: Stretch) -> None:
        """Keep a stretch of T steps, at most `most`, that the roster's lanes made together."""
        taken = len(stretch.rewards)
        if not taken or not roster.count:
            return
        if self._now + taken > self._block:
            self._flush(roster.lanes)
        now = self._now
        self._now = then = now + taken
        # A slice is several times faster than an index of all lanes.
        lanes = slice(None) if roster.count == self._num_lanes else roster.lane_index
        rewards = np.array(stretch.rewards, np.float64)
        if taken == 1:
            self._totals_before[lanes] = self._totals[lanes]
            self._totals[lanes] += rewards[0]
        else:
            totals = np.add.accumulate(np.concatenate((self._totals[lanes][None], rewards)), axis=0)
            self._totals_before[lanes], self._totals[lanes] = totals[-2], totals[-1]
        self._rewards[lanes, now:then] = rewards.T
        for kept, column, dtype in zip(self._actions, stretch.actions, self._given, strict=True):
            steps = np.frombuffer(b"".join(column), dtype).reshape(taken, roster.count, *kept.shape[2:])
            kept[lanes, now:then] = steps.swapaxes(0, 1)

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
        total = float((self._totals_before if drop_last else self._totals)[lane])
        digest = hashlib.sha256(b"".join(columns)).hexdigest()
        return len(columns[0]) // 8, total, digest[:_DIGITS]

    def _columns(self, lane: int, stop: int) -> list[bytes]:
        begun = self._begun[lane]
        return [column[lane, begun:stop].tobytes() for column in (self._rewards, *self._actions)]

    def _flush(self, running: tuple[int, ...]) -> None:
        """Set aside what the block holds of the running episodes, so that it can be filled again."""
        for lane in running:
            columns = self._columns(lane, self._now)
            before = self._earlier.get(lane, [b""] * len(columns))
            self._earlier[lane] = [old + new for old, new in zip(before, columns, strict=True)]
            self._begun[lane] = 0
        self._now = 0


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


def _smallest(view: SpaceView) -> np.dtype[Any]:
    """Return the smallest type that holds a space's whole numbers; floats stay as they are."""
    dtype = np.dtype(view.dtype)
    if dtype.kind not in "iu" or view.low is None or view.high is None or view.size == 0:
        return dtype
    return np.result_type(np.min_scalar_type(int(view.low.min())), np.min_scalar_type(int(view.high.max())))
