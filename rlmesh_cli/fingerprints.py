"""Hashes of what an episode started from and of what happened in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from struct import pack
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import leaves
from rlmesh_adapters.roster import Roster
from rlmesh_adapters.spaces import SpaceView

# 64 bits tell a run's episodes apart; the whole digest would only make rows longer.
_DIGITS = 16
_BLOCK_BYTES = 4_000_000
# So many steps of one lane are picked out of the open stretch faster than the stretch is folded.
_FEW = 48
# From so many lanes on, work that is done once for all of them pays.
_MANY = 32
# Containers inside one another that are looked into.
_DEEPEST = 64


def start_hash(observation: Any, info: Mapping[str, Any]) -> str:
    """Return 16 hex digits of an episode's first observation and info.

    Values that have no canonical bytes (objects of other types) count by their type only.
    """
    parts: list[bytes] = []
    _collect(parts, observation, ())
    if info:
        _collect(parts, info, ())
    return hashlib.sha256(b"".join(parts)).hexdigest()[:_DIGITS]


def _collect(parts: list[bytes], value: Any, within: tuple[int, ...]) -> None:
    """Append bytes that no other value has: each begins with its kind, and says or shows where it ends.

    within: ids of the containers around the value.
    """
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        parts.append(_header(value.dtype, value.shape))
        parts.append(value.tobytes())
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        parts.append(b"s%d:%b" % (len(text), text))
    elif isinstance(value, (dict, list, tuple, np.ndarray, Mapping)):
        if id(value) in within or len(within) >= _DEEPEST:
            parts.append(b"^")
        else:
            _collect_inside(parts, value, (*within, id(value)))
    elif isinstance(value, np.generic) and value.dtype.kind in "biuf":
        # Environments that merge infos turn plain numbers into those of numpy.
        parts.append(_scalar_bytes(value.item()))
    elif isinstance(value, np.generic) and not value.dtype.hasobject:
        parts.append(_header(value.dtype, ()))
        parts.append(value.tobytes())
    else:
        parts.append(_scalar_bytes(value))


def _collect_inside(parts: list[bytes], value: Any, within: tuple[int, ...]) -> None:
    if isinstance(value, (list, tuple, np.ndarray)):
        parts.append(b"[")
        for part in value.tolist() if isinstance(value, np.ndarray) else value:
            _collect(parts, part, within)
        parts.append(b"]")
        return
    parts.append(b"{")
    try:
        keys = sorted(value)
    except TypeError:  # keys of several types
        keys = sorted(value, key=_key_order)
    for key in keys:
        _collect(parts, key, within)
        _collect(parts, value[key], within)
    parts.append(b"}")


def _key_order(key: Any) -> tuple[str, str]:
    return str(key), type(key).__name__


def _scalar_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return b"b%d:%b" % (len(value), value)
    if value is None or isinstance(value, bool):
        return f"{value};".encode()
    if isinstance(value, int):
        return f"i{int(value):x};".encode()
    if isinstance(value, float):
        return f"f{float(value).hex()};".encode()
    return f"o{type(value).__name__};".encode()


@lru_cache(maxsize=256)
def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return f"{dtype.str}{shape}".encode()


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


class TraceBook:
    """Executed actions and rewards of all running lanes: returns, lengths and trace hashes come from it.

    The last steps stand in a stretch, as they were made; earlier ones are folded into blocks with one row a lane.
    A short episode never leaves the stretch, and a long one costs next to nothing a step. Rewards are added one
    after the other, as a plain loop over the episode adds them.

    num_lanes: N. action: space of one action.
    """

    def __init__(self, num_lanes: int, action: SpaceView) -> None:
        views = _leaf_views(action)
        self._given = [np.dtype(view.dtype) for view in views]
        self._kept = [_smallest(view) for view in views]
        self._sizes = [view.size * dtype.itemsize for view, dtype in zip(views, self._given, strict=True)]
        self._shrinks = [_shrinker(given, kept) for given, kept in zip(self._given, self._kept, strict=True)]
        step_bytes = num_lanes * (8 + sum(self._sizes))
        self._most = max(16, min(512, _BLOCK_BYTES // max(1, step_bytes)))
        self._block = 2 * self._most
        self._num_lanes = num_lanes
        self._rewards = np.zeros((num_lanes, self._block))
        self._actions = [
            np.zeros((num_lanes, self._block, *view.shape), dtype)
            for view, dtype in zip(views, self._kept, strict=True)
        ]
        # Each lane's return up to the last folded step, and up to the step before that.
        self._totals, self._totals_before = np.zeros((2, num_lanes))
        self._roster = Roster((), ())
        self._rows: dict[int, int] = {}
        self._stretch = Stretch(len(views))
        # Steps are counted over the whole run; those from `_first` to `_folded` stand in the block.
        self._first = self._folded = 0
        self._begun = [0] * num_lanes
        self._earlier: dict[int, list[bytes]] = {}

    @property
    def room(self) -> int:
        """Steps that the open stretch can take."""
        return self._most - len(self._stretch.rewards)

    def open(self, roster: Roster) -> Stretch:
        """Return the stretch that the roster's lanes go on with; it has room for at least one step."""
        if roster.lanes is not self._roster.lanes or self.room <= 0:
            self._fold()
            self._roster = roster
            self._rows = {lane: row for row, lane in enumerate(roster.lanes)}
        return self._stretch

    def begin(self, lane: int) -> None:
        """Start a lane's episode at the next recorded step."""
        self._begun[lane] = self._folded + len(self._stretch.rewards)
        self._totals[lane] = self._totals_before[lane] = 0.0
        if self._earlier:
            self._earlier.pop(lane, None)

    def expect(self, endings: int) -> None:
        """Get ready for so many episodes that end at once: one folding serves them all."""
        if endings >= _MANY:
            self._fold()

    def end(self, lane: int, *, drop_last: bool = False) -> tuple[int, float, str]:
        """Return (length, return, trace hash) of a lane's episode.

        drop_last: the last recorded step did not finish.
        """
        stop = self._folded + len(self._stretch.rewards) - drop_last
        if stop - max(self._begun[lane], self._folded) > _FEW:
            self._fold()
        length = stop - self._begun[lane]
        if lane in self._rows and self._folded < stop:
            columns, total = self._open_columns(lane, stop)
        else:
            columns = [b""] * (1 + len(self._actions))
            total = float((self._totals_before if drop_last and stop < self._folded else self._totals)[lane])
        if self._begun[lane] < self._folded:
            columns = [old + new for old, new in zip(self._folded_columns(lane, stop), columns, strict=True)]
        return length, total, hashlib.sha256(b"".join(columns)).hexdigest()[:_DIGITS]

    def _open_columns(self, lane: int, stop: int) -> tuple[list[bytes], float]:
        """Return what the open stretch holds of an episode, and its return so far."""
        begun, row = self._begun[lane] - self._folded, self._rows[lane]
        total = float(self._totals[lane]) if begun < 0 else 0.0
        chosen = slice(max(0, begun), stop - self._folded)
        rewards = [step[row] for step in self._stretch.rewards[chosen]]
        for reward in rewards:
            total += reward
        columns = [pack(f"{len(rewards)}d", *rewards)]
        for steps, size, shrink in zip(self._stretch.actions, self._sizes, self._shrinks, strict=True):
            joined = b"".join([step[row * size : row * size + size] for step in steps[chosen]])
            columns.append(joined if shrink is None else shrink(joined))
        return columns, float(total)

    def _folded_columns(self, lane: int, stop: int) -> list[bytes]:
        """Return what the block, and what was set aside before it, hold of an episode."""
        part = slice(max(0, self._begun[lane] - self._first), min(stop, self._folded) - self._first)
        columns = [column[lane, part].tobytes() for column in (self._rewards, *self._actions)]
        before = self._earlier.get(lane)
        return columns if before is None else [old + new for old, new in zip(before, columns, strict=True)]

    def _fold(self) -> None:
        """Move the open stretch into the block."""
        stretch, roster = self._stretch, self._roster
        taken = len(stretch.rewards)
        if not taken:
            return
        if self._folded - self._first + taken > self._block:
            self._set_aside()
        now = self._folded - self._first
        then = now + taken
        # A slice is several times faster than an index of all lanes.
        lanes = slice(None) if roster.count == self._num_lanes else roster.lane_index
        rewards = _table(stretch.rewards, roster.count)
        self._rewards[lanes, now:then] = rewards.T
        for kept, column, dtype in zip(self._actions, stretch.actions, self._given, strict=True):
            steps = np.frombuffer(b"".join(column), dtype).reshape(taken, roster.count, *kept.shape[2:])
            kept[lanes, now:then] = steps.swapaxes(0, 1)
        for lane, row in self._rows.items():
            if self._begun[lane] > self._folded:
                # What the lane was paid in its last episode; adding zeros first changes no sum.
                rewards[: self._begun[lane] - self._folded, row] = 0.0
        # A sum that no float can hold is infinite, as in a plain loop.
        with np.errstate(over="ignore", invalid="ignore"):
            self._add_up(rewards, lanes)
        self._folded += taken
        self._stretch = Stretch(len(self._actions))

    def _add_up(self, rewards: npt.NDArray[np.float64], lanes: Any) -> None:
        """Add (T, R) rewards to the lanes' returns, one step after the other."""
        if rewards.shape[1] < _MANY:
            totals = np.add.accumulate(np.concatenate((self._totals[lanes][None], rewards)), axis=0)
            self._totals_before[lanes], self._totals[lanes] = totals[-2], totals[-1]
            return
        # Down a column of many lanes every number is in another line of the cache; along the rows none is.
        total = self._totals[lanes].copy()
        for paid in rewards[:-1]:
            total += paid
        self._totals_before[lanes] = total
        self._totals[lanes] = total + rewards[-1]

    def _set_aside(self) -> None:
        """Keep what the block holds of the running episodes as bytes, and empty it."""
        for lane in self._rows:
            if self._begun[lane] < self._folded:
                self._earlier[lane] = self._folded_columns(lane, self._folded)
        self._first = self._folded


def _table(rewards: Sequence[Sequence[float] | npt.NDArray[np.float64]], lanes: int) -> npt.NDArray[np.float64]:
    """Return T times R rewards as one array (T, R)."""
    if isinstance(rewards[0], np.ndarray):
        return np.array(rewards, np.float64)
    # Three times faster than to let numpy find out that the lists are of one length.
    flat = np.fromiter(chain.from_iterable(rewards), np.float64, len(rewards) * lanes)
    return flat.reshape(len(rewards), lanes)


def _leaf_views(view: SpaceView) -> list[SpaceView]:
    if view.children:
        return [leaf for _, child in view.children for leaf in _leaf_views(child)]
    return [view] if view.is_array else []


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
