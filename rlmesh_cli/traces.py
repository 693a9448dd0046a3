"""Traces: what was executed and paid in each running episode; returns, lengths and hashes come from it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.roster import Roster
from rlmesh_adapters.spaces import SpaceView

from .fingerprints import HEX_DIGITS
from .stretches import ArrayStretch, ListStretch, Stretch, action_leaves, numbers

# Memory for blocks of all lanes, and for the open stretch. That of many lanes is small enough for the cache.
_BLOCK_BYTES = 8_000_000
_STRETCH_BYTES = 4_000_000
_CACHED_BYTES = 300_000
# So many steps of one lane are picked out of the open stretch faster than the stretch is folded.
_FEW = 48
# From so many lanes on, work that is done once for all of them pays.
_MANY = 32

#: One episode's rewards, or one leaf of its actions: bytes, or a contiguous array of them.
Column = Any


class TraceBook:
    """Executed actions and rewards of all running lanes: returns, lengths and trace hashes come from it.

    The last steps stand in a stretch, as they were made; earlier ones are folded into blocks with one row a lane.
    A short episode never leaves the stretch, and a long one costs next to nothing a step. Rewards are added one
    after the other, as a plain loop over the episode adds them.

    num_lanes: N. action: space of one action.
    """

    def __init__(self, num_lanes: int, action: SpaceView) -> None:
        self._parts = action_leaves(action)
        is_many = num_lanes >= _MANY
        stretch_bytes = num_lanes * (8 + sum(part.size for part in self._parts))
        self._most = max(16, min(512, (_CACHED_BYTES if is_many else _STRETCH_BYTES) // stretch_bytes))
        self._block = max(2 * self._most, min(1024, _BLOCK_BYTES // stretch_bytes))
        self._num_lanes = num_lanes
        self._rewards = np.zeros((num_lanes, self._block))
        self._actions = [np.zeros((num_lanes, self._block, *part.shape), part.kept) for part in self._parts]
        # Each lane's return up to the last folded step, and up to the step before that.
        self._totals, self._totals_before = np.zeros((2, num_lanes))
        self._roster = Roster((), ())
        self._rows: dict[int, int] = {}
        self._stretch: Stretch = ListStretch(0, self._parts)
        # Steps are counted over the whole run; those from `_first` to `_folded` stand in the block.
        self._first = self._folded = 0
        self._begun = [0] * num_lanes
        self._last_begun = 0
        self._earlier: dict[int, Sequence[Column]] = {}
        #: Rewards, and each leaf of the actions, of the episode that ended last; good until the next call.
        self.columns: Sequence[Column] = ()

    @property
    def room(self) -> int:
        """Steps that the open stretch can take."""
        return self._most - self._stretch.taken

    def open(self, roster: Roster) -> Stretch:
        """Return the stretch that the roster's lanes go on with; it has room for at least one step."""
        if roster.lanes is not self._roster.lanes:
            self._fold()
            self._roster = roster
            self._rows = {lane: row for row, lane in enumerate(roster.lanes)}
            is_many = roster.count >= _MANY
            self._stretch = (
                ArrayStretch(self._most, roster.count, self._parts)
                if is_many
                else ListStretch(roster.count, self._parts)
            )
        elif self.room <= 0:
            self._fold()
        return self._stretch

    def begin(self, lane: int) -> None:
        """Start a lane's episode at the next recorded step."""
        self._begun[lane] = self._last_begun = self._folded + self._stretch.taken
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
        begun, folded = self._begun[lane], self._folded
        stop = folded + self._stretch.taken - drop_last
        if stop - (begun if begun > folded else folded) > _FEW:
            self._fold()
            folded = self._folded
        columns: Sequence[Column] = ()
        if folded < stop and lane in self._rows:
            columns, total = self._open_columns(lane, stop)
        else:
            total = float((self._totals_before if drop_last and stop < folded else self._totals)[lane])
        if begun < folded:
            columns = self._folded_columns(lane, stop, columns)
        self.columns = columns
        return stop - begun, total, hashlib.sha256(b"".join(columns)).hexdigest()[:HEX_DIGITS]

    def _open_columns(self, lane: int, stop: int) -> tuple[Sequence[Column], float]:
        """Return what the open stretch holds of an episode, and its return so far."""
        begun, total = self._begun[lane] - self._folded, 0.0
        if begun < 0:
            begun, total = 0, float(self._totals[lane])
        rewards, columns = self._stretch.lane(self._rows[lane], slice(begun, stop - self._folded))
        paid = numbers(rewards)
        for reward in paid:
            total += reward
        return [paid.tobytes(), *columns], total

    def _folded_columns(self, lane: int, stop: int, rest: Sequence[Column]) -> Sequence[Column]:
        """Return what was set aside of an episode, what the block holds, and the rest; column by column."""
        part = slice(max(0, self._begun[lane] - self._first), min(stop, self._folded) - self._first)
        blocks: list[Column] = [column[lane, part] for column in (self._rewards, *self._actions)]
        before = self._earlier.get(lane)
        if before is None and not rest:
            return blocks
        sources: list[Sequence[Column]] = [source for source in (before, blocks, rest) if source]
        return [b"".join(pieces) for pieces in zip(*sources, strict=True)]

    def _fold(self) -> None:
        """Move the open stretch into the block."""
        stretch, roster = self._stretch, self._roster
        taken = stretch.taken
        if not taken:
            return
        if self._last_begun >= self._folded and self._is_block_done():
            self._first = self._folded
        if self._folded - self._first + taken > self._block:
            self._set_aside()
        now = self._folded - self._first
        then = now + taken
        # A slice is several times faster than an index of all lanes.
        lanes = slice(None) if roster.count == self._num_lanes else roster.lane_index
        rewards, actions = stretch.table()
        self._rewards[lanes, now:then] = rewards.T
        for kept, steps in zip(self._actions, actions, strict=True):
            kept[lanes, now:then] = steps.swapaxes(0, 1)
        if self._last_begun > self._folded:
            for lane, row in self._rows.items():
                # What the lane was paid in its last episode; adding zeros first changes no sum.
                rewards[: max(0, self._begun[lane] - self._folded), row] = 0.0
        # A sum that no float can hold is infinite, as in a plain loop.
        with np.errstate(over="ignore", invalid="ignore"):
            self._add_up(rewards, lanes)
        self._folded += taken
        stretch.clear()

    def _is_block_done(self) -> bool:
        """Tell whether nothing that the block holds is a running episode's."""
        return all(self._begun[lane] >= self._folded for lane in self._rows)

    def _add_up(self, rewards: npt.NDArray[np.float64], lanes: Any) -> None:
        """Add (T, R) rewards, which are written into, to the lanes' returns, one step after the other."""
        if rewards.shape[1] < _MANY:
            totals = np.add.accumulate(np.concatenate((self._totals[lanes][None], rewards)), axis=0)
            self._totals_before[lanes], self._totals[lanes] = totals[-2], totals[-1]
            return
        # One row after the other: along another axis than the fast one numpy does not add in pairs.
        before = self._totals[lanes]
        if len(rewards) > 1:
            rewards[0] += before
            before = np.add.reduce(rewards[:-1], axis=0)
        self._totals_before[lanes] = before
        self._totals[lanes] = before + rewards[-1]

    def _set_aside(self) -> None:
        """Keep what the block holds of the running episodes as bytes, and empty it."""
        for lane in self._rows:
            if self._begun[lane] < self._folded:
                columns = self._folded_columns(lane, self._folded, ())
                self._earlier[lane] = [bytes(column) for column in columns]
        self._first = self._folded
