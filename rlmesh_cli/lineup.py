"""Lineup: which planned episode is played next, and which is played once more."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.errors import Failure

from .episodes import Episode
from .plays import Play


class Queue(Protocol):
    """Episodes that are still to be played; a deque is one."""

    def __len__(self) -> int:
        """Return how many are there now."""
        ...

    def popleft(self) -> Episode:
        """Take the next one."""
        ...


class Lineup:
    """Hands out planned episodes, each once; one whose environment failed comes a second time.

    episodes: the plan. queue: in its place, what all lanes take their episodes from. num_lanes: N.
    clock: returns seconds.
    is_seeded: whether single episodes start from their own seed; if not, each lane gets a fixed share of the plan
    beforehand, so that short ones are not over-counted.
    advisories: where it is noted that episodes were lost together.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        num_lanes: int,
        *,
        is_seeded: bool,
        clock: Callable[[], float],
        queue: Queue | None = None,
        advisories: AdvisoryBook,
    ) -> None:
        self._is_seeded, self._clock, self._advisories = is_seeded, clock, advisories
        self._again: set[int] = set()
        # Lane -> what is played once more on it: nowhere else is the environment built anew.
        self._returned: dict[int, Episode] = {}
        # Lost together with others: they are played alone in the end, which shows whose doing it was.
        self._suspects: deque[Episode] = deque()
        self._queues: Sequence[Queue]
        if queue is not None or is_seeded:
            shared: Queue = deque(episodes) if queue is None else queue
            self._queues = [shared] * num_lanes
        else:
            self._queues = [deque(episodes[lane::num_lanes]) for lane in range(num_lanes)]

    def next(self, lanes: Sequence[int]) -> dict[int, Play]:
        """Return the next episode of each free lane that has one."""
        returned = self._returned
        return {
            lane: self._play(returned.pop(lane) if lane in returned else self._queues[lane].popleft(), lane)
            for lane in lanes
            if lane in returned or self._queues[lane]
        }

    def next_alone(self, lanes: Sequence[int]) -> dict[int, Play]:
        """Return one of the episodes that are played alone, on one of the free lanes, if there is any."""
        if not lanes or not self._suspects:
            return {}
        return {lanes[0]: self._play(self._suspects.popleft(), lanes[0], is_alone=True)}

    def rest(self, lane: int) -> list[Play]:
        """Return all that a lane has left to play."""
        returned = self._returned.pop(lane, None)
        plays = [] if returned is None else [self._play(returned, lane)]
        while self._queues[lane]:
            plays.append(self._play(self._queues[lane].popleft(), lane))
        return plays

    def try_again(self, play: Play, failure: Failure) -> bool:
        """Let a lane whose environment failed play the episode again, if it is the first time; tell whether it is.

        The environment is built anew by then. Where single episodes have no seed, it would be another episode.
        """
        if failure.phase not in ("reset", "step") or not self._is_seeded:
            return False
        episode = Episode(play.context.index, play.seed)
        if failure.is_shared and not play.is_alone:
            self._suspects.append(episode)
            message = f"{failure.message}: the episodes that it had in hand were played again, each alone"
            self._advisories.add("env-worker-died", "info", message)
            return True
        if play.attempt > 1:
            return False
        self._again.add(episode.index)
        if play.is_alone:
            self._suspects.appendleft(episode)
        else:
            self._returned[play.lane] = episode
        return True

    def _play(self, episode: Episode, lane: int, *, is_alone: bool = False) -> Play:
        seed = episode.seed if self._is_seeded else None
        context = EpisodeContext(episode.id, episode.index, seed, rng_seed=episode.seed)
        attempt = 2 if episode.index in self._again else 1
        return Play(context, lane, episode.seed, self._clock(), attempt=attempt, is_alone=is_alone)
