"""Caps: when running episodes are ended by us, and which have come to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf

import msgspec

from rlmesh_adapters.roster import Roster

from .plays import Ending, Play


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When an episode is ended by us.

    steps: most steps. seconds: most wall-clock seconds from its first observation on: the resets of other lanes
        may come between its own and that. None is no limit.
    """

    steps: int | None = None
    seconds: float | None = None


class Caps:
    """Knows when the first of the running episodes reaches a limit, so that a step need not look at each.

    limits: see Limits. plays: lane -> what it plays; changed by the loop, which calls `settle` afterwards.
    due_step, due_clock: vector step and clock at which an episode reaches a limit; infinite if none will.
    """

    def __init__(self, limits: Limits, plays: Mapping[int, Play]) -> None:
        self.limits = limits
        self.due_step = inf
        self.due_clock = inf
        self._plays = plays

    def settle(self) -> None:
        """See anew which episode is the first."""
        plays, limits = self._plays.values(), self.limits
        if limits.steps is not None:
            self.due_step = min((play.begun_step for play in plays), default=inf) + limits.steps
        if limits.seconds is not None:
            self.due_clock = min((play.ready_clock for play in plays), default=inf) + limits.seconds

    def reached(self, roster: Roster, ended: Collection[int], step: int, now: float) -> list[Ending]:
        """Return the endings of the rows that are at a limit.

        ended: rows that have ended by themselves. step, now: the vector steps taken, and the clock.
        """
        steps, seconds = self.limits.steps, self.limits.seconds
        endings = []
        for row, lane in enumerate(roster.lanes):
            play = self._plays[lane]
            if row in ended:
                continue
            if steps and step - play.begun_step >= steps:
                endings.append(Ending(row, cap="step_cap"))
            elif seconds and now - play.ready_clock >= seconds:
                endings.append(Ending(row, cap="time_cap"))
        return endings
