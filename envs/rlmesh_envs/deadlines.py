"""Deadlines: a call of user code that does not return is ended, with the place it was at."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from rlmesh_adapters.errors import OverdueError

# A timer that is set to nothing would never ring.
_SHORTEST = 1e-3
_LONGEST = 1e6

Call = Callable[..., Any]


class deadline:  # noqa: N801 - reads as the context manager that it is
    """While entered, raises OverdueError in what takes so many seconds.

    It reaches Python code and locks that are waited for, not a loop inside a compiled library. Where there is no
    timer (Windows, other threads than the main one) or somebody else uses it, nothing is ended.
    """

    __slots__ = ("_before", "_is_armed", "_seconds", "has_rung")

    def __init__(self, seconds: float) -> None:
        self._seconds = min(max(seconds, _SHORTEST), _LONGEST)
        self._is_armed = False
        #: Whether it was this one that raised, not another one around it.
        self.has_rung = False
        self._before: Any = None

    def __enter__(self) -> None:
        is_ours = (
            hasattr(signal, "setitimer")
            and threading.current_thread() is threading.main_thread()
            and signal.getitimer(signal.ITIMER_REAL)[0] == 0
        )
        if is_ours:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            self._is_armed = True
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_armed:
            # First, so that a ring that is on its way already comes to nothing.
            self._is_armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._is_armed:
            self.has_rung = True
            raise OverdueError


def limited(call: Call, seconds: float | None, what: str) -> Call:
    """Return a call that raises TimeoutError, with the place it was at, once it has taken so many seconds.

    what: the call's name in the message. None seconds: the call as it is.
    """
    if seconds is None:
        return call

    def within(*args: Any, **kwargs: Any) -> Any:
        limit = deadline(seconds)
        try:
            with limit:
                return call(*args, **kwargs)
        except OverdueError as error:
            if not limit.has_rung:
                raise
            late = TimeoutError(f"{what} took longer than {seconds:g} s")
            raise late.with_traceback(error.__traceback__) from None

    return within
