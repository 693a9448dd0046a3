"""Who looks on while episodes are played, and who may end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from .tallies import Tally

if TYPE_CHECKING:  # most runs of scripts are looked at by nobody
    from .glances import Glance


class Watcher(Protocol):
    """Whoever looks on while episodes are played."""

    def begin(self, planned: int) -> None:
        """Called once, before the first step."""
        ...

    def tick(self, tally: Tally, done: int, look: Callable[[], Glance]) -> None:
        """Called now and then with what was done so far; look: adds up what came of it, for who wants to see."""
        ...

    def end(self) -> None:
        """Called once, after the last step."""
        ...


class Stopper(Protocol):
    """Whoever may ask for an early end."""

    def watch(self, stop: Callable[[], None]) -> None:
        """From now on, call `stop` when an end is wanted."""
        ...
