"""Subordinates: what worker processes do about signals, so that they end when their parent says so."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Protocol


class Closable(Protocol):
    """One end of a pipe."""

    def close(self) -> None:
        """Close it."""
        ...


def settle_in(connection: Closable) -> None:
    """Leave it to the parent when this process stops; to be called first in a worker.

    A Ctrl-C reaches the whole group, and would print a stack for each. What environments start in turn, such as
    simulators, is stopped by them: SIGTERM works there, and nothing of it keeps our pipe open when we are gone.

    connection: to the parent.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    # Not SIG_IGN, which programs that are started from here would inherit.
    signal.signal(signal.SIGTERM, _pass_by)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _let_go(connection))


def _pass_by(number: int, frame: FrameType | None) -> None:
    """Do nothing."""


def _let_go(connection: Closable) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        connection.close()


@contextlib.contextmanager
def interrupts_put_off() -> Iterator[None]:
    """Hold back SIGINT while a worker is started, which inherits that and takes it off when it has settled in."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
