"""Seats: the running plays in row order, and the batch of what their lanes see."""

from __future__ import annotations

from rlmesh_adapters.batches import Batch, BatchLayout, put_rows, take_rows
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

    def empty(self, rows: int) -> Batch:
        """Return a batch of undefined observations."""
        return self._layout.allocate(rows)

    def settle(self) -> None:
        """Seat the running plays: those that go on keep their observation, new ones bring their first."""
        plays, before = self.plays, self.roster.lanes
        lanes = before if plays.keys() == set(before) else tuple(sorted(plays))
        fresh = [row for row, lane in enumerate(lanes) if plays[lane].first is not None]
        if lanes is not before:
            self._move(lanes)
        for row in fresh:
            play = plays[lanes[row]]
            self._layout.write(self.observations, row, play.first)
            play.first = None
        contexts = [plays[lane].context for lane in lanes]
        self.roster = self.roster.playing(contexts) if lanes is before else Roster(lanes, contexts)

    def _move(self, lanes: tuple[int, ...]) -> None:
        """Move the observations of lanes that go on to their new rows."""
        old = {lane: row for row, lane in enumerate(self.roster.lanes)}
        kept = [row for row, lane in enumerate(lanes) if self.plays[lane].first is None]
        seated = self._layout.allocate(len(lanes))
        if kept:
            put_rows(seated, kept, take_rows(self.observations, [old[lanes[row]] for row in kept]))
        self.observations = seated
