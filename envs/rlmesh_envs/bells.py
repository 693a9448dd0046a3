"""Bell: one end of the pipe between a worker and its parent. A byte wakes; what is rare follows as a message."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

#: A message follows.
MESSAGE = b"m"
#: To a worker: step its company; actions lie in the shared block.
STEP = b"s"
#: To a worker: reset those of its lanes that are wanted; their seeds lie in the shared block.
RESET = b"r"
#: To a parent: all that the step or the reset gave lies in the shared block; nothing ended, no infos.
DONE = b"d"
#: To a parent: so do the infos of the step, in the form that was sent last.
NUMBERS = b"n"
#: To a parent: as DONE, but episodes have ended; which, and how, lies in the shared block.
ENDED = b"e"
#: To a parent: as NUMBERS, but episodes have ended.
NUMBERS_ENDED = b"f"

_IS_POSIX = os.name == "posix"
_PATIENCE = 16
_give_way: Callable[[], object] = getattr(os, "sched_yield", partial(time.sleep, 0))


class Bell:
    """One end of a pipe.

    spin: seconds that `listen` looks again and again before it sleeps; a sleeper takes longer to wake than small
        environments to step, and may wake on a core that another worker has. Where looking has come to nothing, it
        is given up for a while.
    gives_way: whether it gives its core away before it looks: who was rung just now may be waiting for it.

    Everything here raises EOFError or OSError when the other side is gone.
    """

    def __init__(self, connection: Connection, spin: float = 0.0, *, gives_way: bool = False) -> None:
        self.connection = connection
        self._gives_way = gives_way
        self._descriptor = connection.fileno()
        self._spin = spin if _IS_POSIX else 0.0
        # Times in a row that looking came to nothing.
        self._misses = 0
        if _IS_POSIX:
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLIN)

    def ring(self, sound: bytes) -> None:
        """Send one byte."""
        if _IS_POSIX:
            os.write(self._descriptor, sound)
        else:
            self.connection.send_bytes(sound)

    def listen(self) -> bytes:
        """Wait for one byte."""
        if not _IS_POSIX:
            return self.connection.recv_bytes()
        if self._spin:
            self._look()
        heard = os.read(self._descriptor, 1)
        if not heard:
            raise EOFError
        return heard

    def _look(self) -> None:
        """Look for a while, but only now and then if what is waited for takes longer than that."""
        if self._misses < _PATIENCE or self._misses % _PATIENCE == 0:
            if self._gives_way:
                _give_way()
            until = time.perf_counter() + self._spin
            while not self._poll.poll(0):
                if time.perf_counter() > until:
                    break
                # Whoever wants this core, be it the parent or a policy's threads, has it at once.
                _give_way()
            else:
                self._misses = 0
                return
        self._misses += 1

    def is_rung_within(self, seconds: float) -> bool:
        """Tell whether `listen` would return within so many seconds."""
        return self.connection.poll(seconds)

    def send(self, message: Any) -> None:
        """Send a message, which the other side has to `listen` for."""
        self.ring(MESSAGE)
        self.connection.send(message)

    def send_pickled(self, message: Any) -> None:
        """Send a message that is pickled already."""
        self.ring(MESSAGE)
        self.connection.send_bytes(message)

    def receive(self) -> Any:
        """Return the message that MESSAGE has announced."""
        return self.connection.recv()

    def receive_pickled(self) -> bytes:
        """Return it as it came."""
        return self.connection.recv_bytes()

    def give(self, descriptor: int, process: int | None) -> None:
        """Send a file descriptor to the process on the other side."""
        send_handle(self.connection, descriptor, process)

    def take(self) -> int:
        """Return the file descriptor that was given."""
        return recv_handle(self.connection)

    def close(self) -> None:
        """Close this end."""
        self.connection.close()
