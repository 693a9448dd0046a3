"""Seats: the running plays in row order, and the batch of what their lanes see."""

from __future__ import annotations

from collections.abc import Sequence

from rlmesh_adapters.batches import Batch, BatchLayout, put_rows, take_rows
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.roster import Roster

from .plays import Play


class Seats:
    """Keeps roster and observations in step with the plays that run.

    layout: of one observation.
    plays: lane -> what it plays; changed by the loop, which calls `settle` afterwards.
    roster: the lanes of the last settling, in row order. observations: (R, ...), a row a lane of the roster.
    """

    def __init__(self, layout: BatchLayout) -> None:
        self.plays: dict[int, Play] = {}
        self.roster = Roster((), ())
        self.observations: Batch = layout.allocate(0)
        self._layout = layout
        self._joined: list[int] = []
        self._rows: dict[int, int] = {}

    def join(self, lane: int, play: Play) -> None:
        """Let an episode run that stands at its first observation."""
        self.plays[lane] = play
        self._joined.append(lane)

    def empty(self, rows: int) -> Batch:
        """Return a batch of undefined observations."""
        return self._layout.allocate(rows)

    def settle(self) -> None:
        """Seat the running plays: those that go on keep their observation, new ones bring their first."""
        plays, before, joined = self.plays, self.roster, self._joined
        self._joined = []
        if plays.keys() == self._rows.keys():
            contexts = list(before.episodes)
            self._write_firsts(joined, contexts)
            self.roster = before.playing(contexts)
            return
        lanes = tuple(sorted(plays))
        self._move(lanes)
        contexts = [plays[lane].context for lane in lanes]
        self._write_firsts(joined, contexts)
        self.roster = Roster(lanes, contexts)

    def _write_firsts(self, joined: Sequence[int], contexts: list[EpisodeContext]) -> None:
        for lane in joined:
            row, play = self._rows[lane], self.plays[lane]
            self._layout.write(self.observations, row, play.first)
            contexts[row], play.first = play.context, None

    def _move(self, lanes: tuple[int, ...]) -> None:
        """Move the observations of lanes that go on to their new rows."""
        old, self._rows = self._rows, {lane: row for row, lane in enumerate(lanes)}
        kept = [row for row, lane in enumerate(lanes) if self.plays[lane].first is None]
        seated = self._layout.allocate(len(lanes))
        if kept:
            put_rows(seated, kept, take_rows(self.observations, [old[lanes[row]] for row in kept]))
        self.observations = seated
