"""Who looks on while episodes are played, and who may end it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from .tallies import Tally

if TYPE_CHECKING:  # most runs of scripts are looked at by nobody
    from .glances import Glance


class Company(msgspec.Struct, frozen=True):
    """Who is playing at a moment.

    lanes: (lane, episode index, steps so far) in lane order; None for steps while a reset is waited for.
    workers: (worker, episodes in its hand, whether it is being built), where workers play.
    """

    lanes: Sequence[tuple[int, int, int | None]] = ()
    workers: Sequence[tuple[int, int, bool]] = ()


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
