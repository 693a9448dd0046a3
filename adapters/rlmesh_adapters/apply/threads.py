"""Threads: the parts of a batch worked on by several threads at once.

The libraries that images go through let go of the interpreter while they work, so threads are enough. All routes
of a process share the same few, which sleep between batches and end with the process.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # most routes need no threads
    from concurrent.futures import ThreadPoolExecutor

#: How the names of our threads begin.
NAME = "rlmesh-images"

# More than so many wait for memory, and for one another.
_MOST = 4

# Whoever is about to fork holds it, so that no thread of ours is there, and none can come, in that moment.
_lock = threading.RLock()
_pool: ThreadPoolExecutor | None = None


def spread(task: Callable[[int], None], count: int) -> None:
    """Call `task(0)` to `task(count - 1)`, several at once; return when all have returned.

    task: must give the same in any thread and in any order; numpy's `errstate` of the caller may not reach it.

    Raises what the call of the lowest number raised, as a loop would; later ones may not have been made then.
    """
    helpers = min(_cores(), _MOST, count) - 1
    if helpers < 1:
        for number in range(count):
            task(number)
        return
    work = _Work(task, count)
    with _lock:
        pool = _started_pool()
        futures = [pool.submit(work.run) for _ in range(helpers)]
    try:
        work.run()
    finally:
        work.stop()
        # Whoever has not begun by now is not waited for.
        for future in futures:
            if not future.cancel():
                future.result()
    work.raise_first()


class _Work:
    """Numbers that are taken in order by whoever has time, so that a core that is busy delays nobody."""

    def __init__(self, task: Callable[[int], None], count: int) -> None:
        self._task = task
        self._numbers = deque(range(count))
        self._errors: dict[int, Exception] = {}

    def run(self) -> None:
        """Take numbers until none is left, or one has failed."""
        while True:
            try:
                number = self._numbers.popleft()
            except IndexError:
                return
            try:
                self._task(number)
            except Exception as error:  # told to the caller, in the order of the numbers
                self._errors[number] = error
                self.stop()

    def stop(self) -> None:
        """Let nobody take another number; all lower than a taken one have been taken before it."""
        self._numbers.clear()

    def raise_first(self) -> None:
        """Raise the error of the lowest number that failed."""
        if self._errors:
            raise self._errors[min(self._errors)]


@cache
def _cores() -> int:
    """Return how many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started_pool() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a route without images starts sooner

        _watch_forks()
        _pool = ThreadPoolExecutor(min(_cores(), _MOST) - 1, thread_name_prefix=NAME)
    return _pool


@cache
def _watch_forks() -> None:
    # After the pool's own module has done so: then a fork takes its lock after ours, as `spread` does.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release)


def _before_fork() -> None:
    """End the threads: a child would have the pool without them, and wait for them for ever."""
    global _pool
    _lock.acquire()
    if _pool is not None:
        _pool.shutdown()
        _pool = None
