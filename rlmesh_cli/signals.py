"""Ctrl-C and SIGTERM: the first lets the current step finish, the second does not wait."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_NOTICE = b"\nrlmesh: stopping after this step; press Ctrl-C again to stop at once\n"


class StopOnSignal:
    """While entered, turns SIGINT and SIGTERM into a wish to stop.

    Before anyone listens, and from the second signal on, KeyboardInterrupt is raised where the program is.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self._stop: Callable[[], None] | None = None
        self._count = 0
        self._before: dict[signal.Signals, Any] = {}
        self._process = os.getpid()

    def __enter__(self) -> StopOnSignal:
        # Only the main thread may set handlers; elsewhere the host program keeps its own.
        if threading.current_thread() is threading.main_thread():
            for number in self._SIGNALS:
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *details: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def watch(self, stop: Callable[[], None]) -> None:
        """From now on the first signal calls `stop`."""
        self._stop = stop

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A process that a policy or an environment has forked: whoever sends it a signal wants it to end.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._count += 1
        if self._stop is None or self._count > 1:
            raise KeyboardInterrupt
        if sys.stderr is not None:
            # Past Python's buffer, in which somebody may be writing right now.
            with contextlib.suppress(OSError):
                os.write(2, _NOTICE)
        self._stop()
