"""Feed: the queue of a worker's lanes, which asks for more before it is empty."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue

from rlmesh_cli.episodes import Episode

from .messages import Grant, Order


class Feed:
    """What a Rollout takes its episodes from.

    More is asked for when half of a shard is gone, so that it is there when it is needed. Its length is what a
    lane can have, so whoever asks for that may wait for an answer.

    ask: asks for more; is told whether nothing is being played. orders: what comes back.
    """

    def __init__(self, ask: Callable[[bool], None], orders: SimpleQueue[Order]) -> None:
        self._ask, self._orders = ask, orders
        self._here: deque[Episode] = deque()
        self._few = 0
        self._is_asked = self._is_last = False
        #: Whether there will be no more for good.
        self.is_closed = False

    def __len__(self) -> int:
        """Return how many episodes are there for a lane that wants one, after asking for more if need be."""
        left = len(self._here)
        if left > self._few or self._is_last or self.is_closed:
            return left
        if not left:
            self._refill(is_idle=False)
        elif not self._is_asked:
            self._is_asked = True
            self._ask(False)
        return len(self._here)

    def popleft(self) -> Episode:
        """Take the next episode."""
        return self._here.popleft()

    def open(self) -> bool:
        """Wait, with nothing being played, until there are episodes; False if there will be none."""
        self._is_last = False
        while not self._here and not self.is_closed:
            self._refill(is_idle=True)
        return not self.is_closed

    def _refill(self, *, is_idle: bool) -> None:
        if not self._is_asked:
            self._ask(is_idle)
        order = self._orders.get()
        self._is_asked = False
        if isinstance(order, Grant):
            self._here.extend(order.episodes)
            self._few = len(self._here) // 2
            self._is_last = order.is_last
        else:
            self.is_closed = True
            self._here.clear()
