"""ProcessExecutor: workers that are processes of this machine."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError, describe_error, expect_no_interrupts
from rlmesh_cli.leaving import leave_without_others
from rlmesh_envs.crew import check_start_method
from rlmesh_envs.subordinates import interrupts_put_off, settle_in
from rlmesh_envs.worker import end_with_parent, write_over_lines
from rlmesh_envs.worker_process import CLOSE_SECONDS

from .messages import Close, Gone, Order, Word
from .threads import threads_of_children
from .worker import serve

# More than a worker gives processes of its own environments.
_CLOSE_SECONDS = CLOSE_SECONDS + 3.0
_KILLED = -9


class ProcessExecutor:
    """Workers in processes of their own, which end with this one.

    The first ones are to be started before policy or environment are loaded here: a forked process inherits
    whatever was loaded, and a library that runs threads or holds a GPU does not survive that. For the same reason
    a successor is never forked.

    start_method: `fork`, `forkserver` or `spawn`; None is the platform's default.
    threads: most threads of numerical libraries in each.

    Raises EnvironmentBuildError for a start method that does not exist here.
    """

    name = "worker process"
    is_early = True

    def __init__(self, *, start_method: str | None, threads: int) -> None:
        check_start_method(start_method)
        self._context: Any = multiprocessing.get_context(start_method)
        self.threads = threads
        self._known: dict[int, _Process] = {}
        self._begun: set[int] = set()
        # Before multiprocessing's own exit handler, which would wait for workers that wait for us.
        self._finalizer = Finalize(self, _close_all, args=(self._known,), exitpriority=10)

    def start(self, worker: int) -> None:
        """Begin a worker; see Executor."""
        if worker in self._begun and self._context.get_start_method() == "fork":
            self._context = multiprocessing.get_context("spawn")
        self._begun.add(worker)
        ends: list[Connection] = []
        try:
            ends += self._context.Pipe()
            ours, theirs = ends
            is_fork = self._context.get_start_method() == "fork"
            inherited = [known.connection for known in self._known.values()] + [ours] if is_fork else []
            # Not a daemon: it may have environments in processes of its own.
            process = self._context.Process(target=run_worker, args=(theirs, inherited), name=f"worker-{worker}")
            with threads_of_children(self.threads), interrupts_put_off():
                process.start()
        except OSError as error:
            for end in ends:
                end.close()
            raise HarnessError(
                f"a worker process cannot be started: {describe_error(error)}",
                where=f"worker {worker}",
                mend="use fewer --workers, or raise the limit of processes and open files",
            ) from error
        theirs.close()
        self._known[worker] = _Process(process, ours)

    def send(self, worker: int, order: Order) -> None:
        """Give an order; see Executor."""
        known = self._known.get(worker)
        if known is None:
            return
        try:
            known.connection.send(order)
        except (BrokenPipeError, ConnectionResetError):  # that it is gone is heard by `receive`
            pass
        except Exception as error:
            raise unsendable(error) from error

    def receive(self, seconds: float) -> list[tuple[int, Word]]:
        """Return what was said; see Executor."""
        sources: dict[Any, int] = {}
        for worker, known in self._known.items():
            sources[known.connection] = sources[known.process.sentinel] = worker
        if not sources:
            return []
        ready = {sources[source]: None for source in wait(list(sources), seconds)}
        # What a worker has started may keep its pipe open when it is gone itself.
        ready |= {worker: None for worker, known in self._known.items() if not known.process.is_alive()}
        return [(worker, word) for worker in ready for word in self._words_of(worker)]

    def _words_of(self, worker: int) -> list[Word]:
        words: list[Word] = []
        known = self._known.get(worker)
        if known is None:  # closed meanwhile, by another thread
            return words
        # Asked first: what a process said before it ended can then all be read.
        is_dead = not known.process.is_alive()
        try:
            while known.connection.poll():
                words.extend(known.connection.recv())
        except (EOFError, OSError):
            is_dead = True
        if is_dead:
            words.append(Gone(self._bury(worker)))
        return words

    def _bury(self, worker: int) -> str:
        known = self._known.pop(worker)
        known.connection.close()
        _end([known], time.monotonic() + _CLOSE_SECONDS)
        return describe_exit(known.process.exitcode)

    def close(self) -> None:
        """End all workers; see Executor."""
        self._finalizer()


def describe_exit(code: int | None) -> str:
    """Return how a process ended, for people."""
    if code == _KILLED:
        return "exit code -9: it was killed, as a system does that runs out of memory"
    return f"exit code {code}"


def unsendable(error: BaseException) -> HarnessError:
    """Return what is said of a task that cannot be sent to a worker."""
    return HarnessError(
        f"the route cannot be sent to a worker: {describe_error(error)}",
        where="workers",
        mend="give plain values (numbers, texts, lists, mappings) as arguments of environment and policy, or "
        "use --workers 1",
    )


class _Process(msgspec.Struct, frozen=True):
    process: BaseProcess
    connection: Connection


def run_worker(
    connection: Connection, inherited: list[Connection], act: Callable[[Connection], None] = serve
) -> None:
    """Be one worker process, until it is told to end or its parent is gone.

    inherited: ends of others' pipes, to be closed.
    """
    settle_in(connection)
    expect_no_interrupts()
    for other in inherited:
        other.close()
    threading.Thread(target=end_with_parent, daemon=True).start()
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # standard output is the parent's
    write_over_lines()
    act(connection)
    connection.close()
    leave_without_others(0)


def _close_all(known: dict[int, _Process]) -> None:
    for one in known.values():
        with contextlib.suppress(OSError, ValueError):
            one.connection.send(Close())
        one.connection.close()
    try:
        _end(list(known.values()), time.monotonic() + _CLOSE_SECONDS)
    finally:
        known.clear()


def _end(processes: Sequence[_Process], until: float) -> None:
    """Let processes end by themselves until a moment of `time.monotonic`, and kill those that do not.

    Also where somebody does not wait for that: what lives on would be waited for when we leave, for ever.
    """
    try:
        for one in processes:
            one.process.join(max(0.0, until - time.monotonic()))
    finally:
        for one in processes:
            if one.process.is_alive():
                one.process.kill()
        for one in processes:
            one.process.join()
