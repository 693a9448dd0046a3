"""Schedule: when a lane that is free may start its next episode.

Axes: H actions executed a call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Protocol


class Queues(Protocol):
    """What a schedule must know of planned actions."""

    def left(self, lane: int) -> int:
        """Return how many planned actions of a lane are not executed yet."""
        ...


class Schedule:
    """Lets free lanes rest until running ones come to the end of a chunk, so that all of them ask in one call.

    Which ones: the largest company of lanes that ask together. A lane whose chunk was short has left its company;
    with its next episode it joins the largest one again. No lane rests for more than H-1 vector steps an episode,
    and none while nobody runs.

    queues: of the running lanes. period: H; with 1, every lane starts at once.
    """

    def __init__(self, queues: Queues, period: int) -> None:
        self._queues, self._period = queues, period
        self._resting: list[int] = []
        #: Vector step at which the resting lanes start, counted over the whole run.
        self.boundary = float("inf")

    def admit(self, free: Sequence[int], running: Collection[int], now: int) -> Sequence[int]:
        """Return the lanes that start now; what is left of the free ones rests.

        running: lanes that play. now: vector steps of the run.
        """
        if self._period == 1:
            return free
        self._resting += free
        if running and self._resting and self.boundary == float("inf"):
            self.boundary = now + self._wait(running)
        if running and now < self.boundary:
            return ()
        admitted, self._resting, self.boundary = sorted(self._resting), [], float("inf")
        return admitted

    def _wait(self, running: Collection[int]) -> int:
        """Return in how many steps the largest company asks; the first of equal ones.

        Lanes that were asked in this very step have a whole chunk left: who starts now keeps in step with them.
        """
        companies = Counter(self._queues.left(lane) % self._period for lane in running)
        return min(companies, key=lambda wait: (-companies[wait], wait))
