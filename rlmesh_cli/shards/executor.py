"""Executor: where workers live - processes of this machine, or of a cluster."""

from __future__ import annotations

from typing import Protocol

from .messages import Order, Word


class Executor(Protocol):
    """Starts workers, carries messages to and from them, and ends them.

    Workers are numbered from 0. What one of them says arrives in the order in which it was said, and `Gone` is
    the last that is heard of it, however it ended.
    """

    #: What a worker is, for people: such as `worker process`.
    name: str
    #: Whether workers are started before anything is loaded here that they would inherit.
    is_early: bool

    @property
    def threads(self) -> int:
        """Threads of numerical libraries in each worker."""
        ...

    def start(self, worker: int) -> None:
        """Begin a worker, which waits for its task; a number whose worker is gone may be begun anew.

        Raises HarnessError where none can be begun.
        """
        ...

    def send(self, worker: int, order: Order) -> None:
        """Give an order; one that a dead worker cannot take is lost.

        Raises HarnessError for what cannot be sent.
        """
        ...

    def receive(self, seconds: float) -> list[tuple[int, Word]]:
        """Return what was said, waiting at most so long for the first word."""
        ...

    def close(self) -> None:
        """End all workers, the ones that do not end by themselves by force. Idempotent."""
        ...
