"""Crew: the worker processes of one set of lanes, started, spoken to and started again when they die.

Axes: N lanes, W workers.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import Any

import msgspec

from rlmesh_adapters.errors import EnvironmentBuildError, Failure, describe_error

from .request import EnvRequest
from .worker import Greeting, Serve
from .worker_process import CLOSE_SECONDS, WorkerProcess


class Crew:
    """W workers with some lanes each.

    request: what to build; reaches the workers as plain data. serve: builds a worker's lanes from it.
    sizes: lanes of each worker.

    Raises EnvironmentBuildError if a worker cannot be started or build its environments.
    """

    def __init__(self, request: EnvRequest, serve: Serve, sizes: Sequence[int]) -> None:
        self._request, self._serve, self._sizes = request, serve, sizes
        check_start_method(request.start_method)
        self._context: Any = multiprocessing.get_context(request.start_method)
        self._workers: list[WorkerProcess | None] = [None] * len(sizes)
        # Descriptor of the shared memory; a worker that is started again needs it.
        self._memory: list[int] = []
        # Before multiprocessing's own exit handler, which would wait for workers that wait for us.
        self._finalizer = Finalize(self, _close_all, args=(self._workers, self._memory), exitpriority=10)
        try:
            for worker in range(len(sizes)):
                self._start(worker)
            #: What each worker has built.
            self.greetings = [self._greet(worker) for worker in range(len(sizes))]
        except BaseException:
            self.close()
            raise

    def __getitem__(self, worker: int) -> WorkerProcess:
        """Return a worker that is alive, as far as is known."""
        known = self._workers[worker]
        assert known is not None
        return known

    def share(self, descriptor: int) -> None:
        """Give every worker the memory of the shared block; the descriptor is the crew's from here on."""
        self._memory.append(descriptor)
        for worker, known in enumerate(self._workers):
            if known is not None:
                self._attach(worker, descriptor)

    def wake(self, worker: int) -> Failure | None:
        """Start a worker again if it has died; return why that cannot be."""
        if self._workers[worker] is not None:
            return None
        try:
            self._start(worker)
        except EnvironmentBuildError as error:
            return Failure(phase="reset", message=error.cause, detail=error.where, mend=error.mend)
        if self._memory:
            self._attach(worker, self._memory[0])
        return None

    def _attach(self, worker: int, descriptor: int) -> None:
        self[worker].attach(descriptor, sum(self._sizes), sum(self._sizes[:worker]))

    def hear(self, worker: int, phase: str) -> Any:
        """Return a worker's answer, or the Failure of all its lanes; a worker that fails is buried."""
        known = self[worker]
        answer = known.greet() if known.is_new else None
        if not isinstance(answer, Failure):
            answer = known.answer(phase, self._request.step_timeout)
        if isinstance(answer, Failure):
            self._workers[worker] = None
            known.bury(time.monotonic() + CLOSE_SECONDS)
            answer = msgspec.structs.replace(answer, is_shared=self._sizes[worker] > 1)
        return answer

    def close(self) -> None:
        """Stop every worker; one that does not answer in five seconds is killed. Idempotent."""
        self._finalizer()

    def _start(self, worker: int) -> None:
        is_fork = self._context.get_start_method() == "fork"
        self._workers[worker] = WorkerProcess(
            self._context,
            # Pickled by us, so that a worker that cannot read it can say so in its own words.
            self._request if is_fork else self._pickled(),
            self._serve,
            lanes=self._sizes[worker],
            name=f"lanes-{worker}",
            inherited=[known.connection for known in self._workers if known is not None],
        )

    def _pickled(self) -> bytes:
        try:
            return bytes(ForkingPickler.dumps(self._request))
        except Exception as error:
            raise EnvironmentBuildError(
                f"the environment cannot be sent to a worker process: {describe_error(error)}",
                where=f"vectorization: async, start method {self._context.get_start_method()}",
                mend="use --start-method fork or --vectorization sync",
            ) from error

    def _greet(self, worker: int) -> Greeting:
        answer = self[worker].greet()
        if isinstance(answer, Failure):
            raise EnvironmentBuildError(answer.message, where=answer.detail or "worker process", mend=answer.mend)
        return answer


def _close_all(workers: list[WorkerProcess | None], memory: list[int]) -> None:
    for known in workers:
        if known is not None:
            known.dismiss()
    until = time.monotonic() + CLOSE_SECONDS
    interrupt: BaseException | None = None
    for number, known in enumerate(workers):
        workers[number] = None
        if known is not None:
            try:
                known.bury(until)
            except BaseException as error:  # somebody does not wait, and so for none of them
                until, interrupt = 0.0, error
    while memory:
        os.close(memory.pop())
    if interrupt is not None:
        raise interrupt


def usable_cores() -> int:
    """Return the cores that this process may use."""
    count = os.cpu_count() or 1
    return min(count, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else count


def check_start_method(name: str | None) -> None:
    """Raise EnvironmentBuildError, naming those there are, for a way to start processes that is not known here."""
    known = multiprocessing.get_all_start_methods()
    if name is not None and name not in known:
        raise EnvironmentBuildError(
            f"start method `{name}` does not exist here",
            where="env.start_method",
            mend=f"use one of {', '.join(known)}",
        )
