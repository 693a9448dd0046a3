"""ShardLedger: which episodes wait, which worker has which in hand, and which are tried a second time."""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from rlmesh_cli.episodes import Episode

from .messages import Grant

# A shard is this part of what waits, shared out over all lanes: large at first, one episode at the end. It is no
# larger than that: what a worker has in hand is behind where a run is to stop early, and is lost with it.
_ROUNDS = 4
_MOST = 16
# Of short episodes it is what a worker plays in so many seconds, so that messages take a small part of its time.
_LEAST_SECONDS = 0.005
_MOST_SECONDS = 0.05


class ShardLedger:
    """Hands out episodes in the order of the plan, in shards that become smaller towards the end.

    So workers seldom ask, and none of them has a queue left while another has nothing to do.

    What a dead worker had in hand is played again by its successor, one episode at a time: if that one dies too,
    it is known at which episode, and only this one is lost.

    episodes: what is to be played. workers: W. lanes: of each worker. clock: returns seconds.
    """

    def __init__(
        self,
        episodes: Sequence[Episode],
        *,
        workers: int,
        lanes: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._waiting = deque(episodes)
        self._clock = clock
        # Of each worker, how many of its episodes have ended, and how many had when it was last granted some.
        self._ended: dict[int, int] = defaultdict(int)
        self._marks: dict[int, tuple[int, float]] = {}
        self._lanes, self._all_lanes = lanes, workers * lanes
        self._held: dict[int, dict[int, Episode]] = defaultdict(dict)
        self._lost: dict[int, deque[Episode]] = defaultdict(deque)
        self._served: set[int] = set()
        self._tried: set[int] = set()

    def grant(self, worker: int) -> Grant | None:
        """Return what a worker plays next, None if nothing waits for it."""
        lost = self._lost[worker]
        if lost:
            return self._noted(worker, Grant((lost.popleft(),), is_last=True))
        if not self._waiting:
            return None
        pace = self._pace(worker)
        size = max(1, int(pace * _LEAST_SECONDS), len(self._waiting) // (_ROUNDS * self._all_lanes))
        size = min(size, max(_MOST, int(pace * _MOST_SECONDS)))
        if worker not in self._served:  # every lane begins at once
            self._served.add(worker)
            size = max(size, self._lanes)
        count = min(size, len(self._waiting))
        self._marks[worker] = self._ended[worker], self._clock()
        return self._noted(worker, Grant(tuple(self._waiting.popleft() for _ in range(count))))

    def _pace(self, worker: int) -> float:
        """Return how many episodes a second a worker has ended since it was last granted some."""
        ended, then = self._marks.get(worker, (0, -math.inf))
        return (self._ended[worker] - ended) / max(self._clock() - then, 1e-6)

    def _noted(self, worker: int, grant: Grant) -> Grant:
        self._held[worker].update((episode.index, episode) for episode in grant.episodes)
        return grant

    def settle(self, worker: int, index: int) -> None:
        """Note that an episode has ended, whoever has played it.

        One that was lost with its worker and then came to its end is as good as any: it was not its doing.
        """
        self._held[worker].pop(index, None)
        self._ended[worker] += 1

    def lose(self, worker: int) -> list[Episode]:
        """Note that a worker died; return the episodes in its hand that were tried before."""
        held = self._held.pop(worker, {})
        self._served.discard(worker)
        again = [episode for episode in held.values() if episode.index not in self._tried]
        self._tried.update(episode.index for episode in again)
        self._lost[worker].extend(again)
        return [episode for episode in held.values() if episode not in again]

    def hand_over(self, worker: int, to: int) -> None:
        """Let another worker play what one has in hand, and what waits for it, that has no successor."""
        self._lost[to].extend(self._held.pop(worker, {}).values())
        self._lost[to].extend(self._lost.pop(worker, ()))

    def has_more_for(self, worker: int) -> bool:
        """Whether anything waits that a worker could play."""
        return bool(self._waiting or self._lost.get(worker))

    @property
    def in_hand(self) -> int:
        """Episodes that workers have and that have not ended."""
        return sum(len(held) for held in self._held.values())

    def held_by(self, worker: int) -> int:
        """Episodes that a worker has and that have not ended."""
        return len(self._held.get(worker, ()))

    @property
    def is_over(self) -> bool:
        """Whether every episode has ended."""
        return not self._waiting and not self.in_hand and not any(self._lost.values())
