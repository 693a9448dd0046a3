"""Deadlines: a call of user code that does not return is ended, with the place it was at."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from rlmesh_adapters.probe.lab import OverdueError

# A timer that is set to nothing would never ring.
_SHORTEST = 1e-3
_LONGEST = 1e6


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise OverdueError in what is entered once it has taken so many seconds.

    It reaches Python code and locks that are waited for, not a loop inside a compiled library. Where there is no
    timer (Windows, other threads than the main one) or somebody else uses it, nothing is ended.
    """
    is_ours = (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )
    if not is_ours:
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise OverdueError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(max(seconds, _SHORTEST), _LONGEST))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
