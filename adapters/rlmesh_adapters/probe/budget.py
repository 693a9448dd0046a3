"""Budget: how many calls, instances and seconds a probe may take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

#: Runs what is entered for so many seconds at most, and raises OverdueError in it then.
Deadline = Callable[[float], contextlib.AbstractContextManager[object]]


class Spent(Exception):  # noqa: N818 - nothing went wrong
    """The budget is used up; what is left is not checked."""


class Budget:
    """How much may be spent, and what was.

    most_calls, most_seconds: None is no limit. clock: returns seconds.
    """

    def __init__(self, *, most_calls: int | None, most_seconds: float | None, clock: Callable[[], float]) -> None:
        self._most_calls, self._most_seconds, self._clock = most_calls, most_seconds, clock
        self._began = clock()
        self.calls = 0
        self.instances = 0
        #: Seconds that the slowest instance took to build.
        self.slowest_build = 0.0

    @property
    def seconds(self) -> float:
        """Spent so far."""
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float:
        """What may still be spent; infinite without a limit."""
        return float("inf") if self._most_seconds is None else self._most_seconds - self.seconds

    def take_instance(self) -> None:
        """Count an instance; raises Spent where the last one took longer to build than there is time left."""
        slowest = self.slowest_build
        if self._most_seconds is not None and self.instances and self.seconds + slowest > self._most_seconds:
            raise Spent
        self.instances += 1

    def extend(self, calls: int) -> None:
        """Allow so many calls more, that none of the others must go without."""
        if self._most_calls is not None:
            self._most_calls += calls

    def take_call(self) -> None:
        """Count a call; raises Spent where none is left."""
        if self._most_calls is not None and self.calls >= self._most_calls:
            raise Spent
        if self._most_seconds is not None and self.seconds >= self._most_seconds:
            raise Spent
        self.calls += 1
