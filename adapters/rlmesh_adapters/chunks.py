"""ChunkReplay: one queue of planned actions a lane, keyed by the episode it was planned in.

Axes: N lanes, R running lanes in row order, M asking rows of them, H planned actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .batches import Batch, leaves, map_leaves
from .roster import Roster


class ChunkReplay:
    """Holds what was planned and not yet executed, and hands it out one row a lane a step.

    A lane is asked only when its own queue is empty; a queue dies with its episode.

    num_lanes: N.
    horizon: H, the most actions of one call that are executed.
    """

    def __init__(self, num_lanes: int, horizon: int) -> None:
        self._horizon = horizon
        self._num_lanes = num_lanes
        # While all running lanes were filled by one call, the call's own array is the queue.
        self._shared: Batch = None
        self._shared_clipped: npt.NDArray[np.bool_] | None = None
        self._shared_roster: Roster | None = None
        self._shared_cursor = 0
        self._shared_length = 0
        self._queues: Batch = None
        self._clips: npt.NDArray[np.bool_] | None = None
        self._cursor = np.zeros(num_lanes, np.int64)
        self._length = np.zeros(num_lanes, np.int64)
        self._owner: list[str] = [""] * num_lanes
        self._verified: Roster | None = None

    def asking(self, roster: Roster) -> Sequence[int] | None:
        """Return the rows of the roster whose queue is empty; None if that is all of them."""
        if self._shared_roster is not None:
            if self._shared_cursor >= self._shared_length:
                self._shared_roster = None
                return None
            if roster is self._shared_roster:
                return ()
            self._split()
        if self._queues is None:
            return None
        lanes = roster.lane_index
        empty = self._cursor[lanes] >= self._length[lanes]
        rows = np.flatnonzero(empty)
        return None if len(rows) == len(roster) else rows.tolist()

    def load(
        self,
        roster: Roster,
        rows: Sequence[int] | None,
        actions: Batch,
        lengths: Sequence[int] | None = None,
        clipped: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Queue a call's actions (M, H', ...) for the given rows of the roster; None means all rows.

        lengths: actions of each row that are meant, at most H'; None if it is all H'.
        clipped: (M, H') which of them were clipped; None if none was.
        """
        planned = chunk_length(actions)
        if rows is None and lengths is None:
            self._shared, self._shared_clipped = actions, clipped
            self._shared_roster, self._shared_cursor, self._shared_length = roster, 0, planned
            return
        chosen = range(len(roster)) if rows is None else rows
        self._store(roster, chosen, actions, clipped, [planned] * len(chosen) if lengths is None else lengths)

    def pop(self, roster: Roster) -> tuple[Batch, npt.NDArray[np.bool_] | None]:
        """Return the next action of every running lane (R, ...), and (R,) which were clipped, or None.

        Raises RuntimeError if a lane's queue is empty or belongs to another episode: a fault of ours.
        """
        if roster is self._shared_roster:
            step = self._shared_cursor
            if step >= self._shared_length:
                raise RuntimeError(
                    f"lane {roster.lanes[0]} has no action planned in {roster.episodes[0].episode_id}"
                )
            self._shared_cursor = step + 1
            clipped = self._shared_clipped
            return _at_step(self._shared, step), None if clipped is None else clipped[:, step]
        return self._pop_each(roster)

    def clear(self, lane: int) -> None:
        """Drop what is left of one lane's queue."""
        if self._shared_roster is not None:
            if self._shared_cursor >= self._shared_length:
                self._shared_roster = None
            else:
                self._split()
        if self._owner[lane]:
            self._length[lane] = self._cursor[lane] = 0
            self._owner[lane] = ""

    def left(self, lane: int) -> int:
        """Return how many planned actions of a lane are not executed yet."""
        roster = self._shared_roster
        if roster is not None:
            return self._shared_length - self._shared_cursor if lane in roster.lanes else 0
        return int(self._length[lane] - self._cursor[lane])

    def queued(self, lanes: Sequence[int]) -> list[bool]:
        """Return which of some running lanes (R,) have a planned action left, so that they are not asked next."""
        if self._shared_roster is not None:
            return [self._shared_cursor < self._shared_length] * len(lanes)
        index = list(lanes)
        more: list[bool] = (self._cursor[index] < self._length[index]).tolist()
        return more

    def _pop_each(self, roster: Roster) -> tuple[Batch, npt.NDArray[np.bool_] | None]:
        lanes = roster.lane_index
        cursor = self._cursor[lanes]
        if roster is not self._verified or (cursor >= self._length[lanes]).any():
            self._verify(roster)
        self._cursor[lanes] = cursor + 1
        clipped = None if self._clips is None else self._clips[lanes, cursor]
        return map_leaves(lambda queue: queue[lanes, cursor], self._queues), clipped

    def _verify(self, roster: Roster) -> None:
        for lane, episode in zip(roster.lanes, roster.episodes, strict=True):
            if self._owner[lane] != episode.episode_id or self._cursor[lane] >= self._length[lane]:
                raise RuntimeError(f"lane {lane} has no action planned in {episode.episode_id}")
        self._verified = roster

    def _split(self) -> None:
        """Move the rest of the shared call into the lanes' own queues."""
        roster, cursor = self._shared_roster, self._shared_cursor
        assert roster is not None
        rest = split_chunk(self._shared, cursor)
        clipped = None if self._shared_clipped is None else self._shared_clipped[:, cursor:]
        left = self._shared_length - cursor
        self._shared_roster = None
        self._store(roster, range(len(roster)), rest, clipped, [left] * len(roster))

    def _store(
        self,
        roster: Roster,
        rows: Sequence[int],
        actions: Batch,
        clipped: npt.NDArray[np.bool_] | None,
        lengths: Sequence[int],
    ) -> None:
        lanes = [roster.lanes[row] for row in rows]
        if self._queues is None:
            size = (self._num_lanes, self._horizon)
            self._queues = map_leaves(lambda leaf: np.zeros(size + leaf.shape[2:], leaf.dtype), actions)
        map_leaves(lambda queue, leaf: _put_prefix(queue, lanes, leaf), self._queues, actions)
        if clipped is not None and self._clips is None:
            self._clips = np.zeros((self._num_lanes, self._horizon), np.bool_)
        if self._clips is not None:
            self._clips[lanes] = False
            if clipped is not None:
                self._clips[lanes, : clipped.shape[1]] = clipped
        for row, lane, length in zip(rows, lanes, lengths, strict=True):
            self._cursor[lane], self._length[lane] = 0, length
            self._owner[lane] = roster.episodes[row].episode_id


def split_chunk(actions: Batch, start: int, stop: int | None = None) -> Batch:
    """Return actions `start` to `stop` (exclusive) of every row of (M, H, ...), as a view."""
    if isinstance(actions, np.ndarray):
        return actions[:, start:stop]
    return map_leaves(lambda leaf: leaf[:, start:stop], actions)


def chunk_length(actions: Batch) -> int:
    """Return H of a tree whose leaves are (M, H, ...)."""
    first = actions if isinstance(actions, np.ndarray) else leaves(actions)[0]
    return int(first.shape[1])


def with_chunk_axis(actions: Batch) -> Batch:
    """Return actions (M, ...) as chunks of one (M, 1, ...)."""
    return map_leaves(lambda leaf: leaf[:, None], actions)


def _at_step(actions: Batch, step: int) -> Batch:
    if isinstance(actions, np.ndarray):
        return actions[:, step]
    return map_leaves(lambda leaf: leaf[:, step], actions)


def _put_prefix(queue: npt.NDArray[Any], lanes: Sequence[int], actions: npt.NDArray[Any]) -> None:
    queue[lanes, : actions.shape[1]] = actions
