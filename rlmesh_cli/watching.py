"""Who looks on while episodes are played, and who may end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .tallies import Tally


class Watcher(Protocol):
    """Whoever looks on while episodes are played."""

    def begin(self, planned: int) -> None:
        """Called once, before the first step."""
        ...

    def tick(self, tally: Tally, done: int) -> None:
        """Called now and then with what was done so far."""
        ...

    def end(self) -> None:
        """Called once, after the last step."""
        ...


class Stopper(Protocol):
    """Whoever may ask for an early end."""

    def watch(self, stop: Callable[[], None]) -> None:
        """From now on, call `stop` when an end is wanted."""
        ...
