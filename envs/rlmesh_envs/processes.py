"""WorkerLanes: the promise of LaneSet, kept by environments in worker processes.

Axes: N lanes, R stepped lanes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import Any

import msgspec

from rlmesh_adapters.batches import Batch, BatchLayout, put_rows, take_rows
from rlmesh_adapters.errors import (
    EnvironmentBuildError,
    Failure,
    describe_error,
)

from .request import EnvRequest
from .spaces import check_alike, view_of
from .steps import Info, LaneResets, LaneSteps
from .worker import Greeting, Serve, open_sealed, work

_CLOSE_SECONDS = 5.0
# A worker ends what hangs by itself, lane by lane; one that is silent for so much longer cannot.
_GRACE_SECONDS = 2.0


class WorkerLanes:
    """N lanes, divided over worker processes in blocks.

    Has `reset_lanes` and `step_lanes` of LaneSet, with the same results. A worker that dies fails its
    own lanes only and is started again for their next episodes.

    request: what to build; reaches the workers as plain data.
    serve: builds a worker's lanes from it.

    Raises EnvironmentBuildError if a worker cannot build its environments, with the worker's own words.
    """

    def __init__(self, request: EnvRequest, serve: Serve) -> None:
        self._request = request
        self._serve = serve
        check_start_method(request.start_method)
        self._context: Any = multiprocessing.get_context(request.start_method)
        self.num_envs = request.num_envs
        count = min(request.num_envs, os.cpu_count() or 1)
        bounds = [request.num_envs * worker // count for worker in range(count + 1)]
        self._place = {
            lane: (worker, lane - bounds[worker])
            for worker in range(count)
            for lane in range(bounds[worker], bounds[worker + 1])
        }
        self._sizes = [bounds[worker + 1] - bounds[worker] for worker in range(count)]
        self._workers: list[_Worker | None] = [None] * count
        # Lanes whose episode was lost with their worker, until they are reset.
        self._lost: dict[int, Failure] = {}
        # Before multiprocessing's own exit handler, which would wait for workers that wait for us.
        self._finalizer = Finalize(self, _close_all, args=(self._workers,), exitpriority=10)
        try:
            for worker in range(count):
                self._start(worker)
            greetings = [self._greet(worker) for worker in range(count)]
            check_alike(dict(zip(bounds, greetings, strict=False)))
        except BaseException:
            self.close()
            raise
        self.single_observation_space = greetings[0].observation_space
        self.single_action_space = greetings[0].action_space
        self.info = greetings[0].info
        self.layout = BatchLayout(view_of(self.single_observation_space))

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset the given lanes, each with its own seed; see LaneSet."""
        observations = self.layout.allocate(len(lanes))
        infos: list[Info] = [{} for _ in lanes]
        failures: dict[int, Failure] = {}
        casts = ""
        parts = self._divide(range(len(lanes)), lanes)
        for lane in lanes:
            self._lost.pop(lane, None)
        for worker, (rows, local) in parts.items():
            self._send(worker, ("reset", local, [seeds[row] for row in rows]))
        for worker, (rows, _) in parts.items():
            answer = self._receive(worker, "reset")
            if isinstance(answer, Failure):
                failures.update(dict.fromkeys(rows, answer))
                continue
            casts = casts or answer.casts
            put_rows(observations, rows, answer.observations)
            for position, row in enumerate(rows):
                infos[row] = answer.infos[position]
            failures.update({rows[row]: failure for row, failure in answer.failures.items()})
        for row, lane in enumerate(lanes):
            if row not in failures:
                self._lost.pop(lane, None)
        return LaneResets(lanes, observations, infos, failures, casts)

    def step_lanes(self, actions: Batch, lanes: Sequence[int], unread: Sequence[bool] | None = None) -> LaneSteps:
        """Step the given lanes and no other; see LaneSet."""
        failures: dict[int, Failure] = {}
        rewards = [0.0] * len(lanes)
        merged = LaneSteps(self.layout.allocate(len(lanes)), rewards, [], None, failures)
        if self._lost:
            failures.update({row: self._lost[lane] for row, lane in enumerate(lanes) if lane in self._lost})
        parts = self._divide([row for row in range(len(lanes)) if row not in failures], lanes)
        for worker, (rows, local) in parts.items():
            part = actions if len(rows) == len(lanes) else take_rows(actions, rows)
            self._send(worker, ("step", local, part, None if unread is None else [unread[row] for row in rows]))
        for worker, (rows, _) in parts.items():
            answer = self._receive(worker, "step")
            if isinstance(answer, Failure):
                failures.update(dict.fromkeys(rows, answer))
            else:
                _merge_step(merged, rewards, rows, answer)
                failures.update({rows[row]: failure for row, failure in answer.failures.items()})
        merged.ended.sort()
        return merged

    def _divide(self, rows: Sequence[int], lanes: Sequence[int]) -> dict[int, tuple[list[int], list[int]]]:
        """Return worker -> (some rows of `lanes`, their numbers inside the worker)."""
        parts: dict[int, tuple[list[int], list[int]]] = {}
        for row in rows:
            worker, local = self._place[lanes[row]]
            chosen, numbers = parts.setdefault(worker, ([], []))
            chosen.append(row)
            numbers.append(local)
        return parts

    def _start(self, worker: int) -> None:
        ours, theirs = self._context.Pipe()
        # A forked worker inherits our ends of the other pipes; it closes them, or it would never see us die.
        inherited = [known.connection for known in self._workers if known is not None] + [ours]
        is_fork = self._context.get_start_method() == "fork"
        # Pickled by us, so that a worker that cannot read it can say so in its own words.
        request = self._request if is_fork else self._pickled()
        process = self._context.Process(
            target=work,
            args=(theirs, request, self._serve, self._sizes[worker], inherited if is_fork else []),
            daemon=True,
            name=f"lanes-{worker}",
        )
        process.start()
        theirs.close()
        self._workers[worker] = _Worker(process, ours)

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
        answer = self._receive(worker, "build")
        if isinstance(answer, Failure):
            raise EnvironmentBuildError(answer.message, where=answer.detail or "worker process", mend=answer.mend)
        assert isinstance(answer, Greeting)
        return answer

    def _send(self, worker: int, message: tuple[Any, ...]) -> None:
        known = self._workers[worker]
        if known is None:
            self._start(worker)
            known = self._workers[worker]
            assert known is not None
            known.is_new = True
        # What a dead worker cannot take is reported when its answer is missing.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            known.connection.send(message)

    def _receive(self, worker: int, phase: str) -> Any:
        """Return a worker's answer, or a failure of all its lanes if it is dead or cannot start."""
        known = self._workers[worker]
        assert known is not None
        try:
            if known.is_new:
                known.is_new = False
                greeting = known.connection.recv()
                if isinstance(greeting, Failure):
                    return self._lose(worker, greeting)
            limit = self._request.step_timeout if phase == "step" else None
            if limit is not None and not known.connection.poll(limit * self._sizes[worker] + _GRACE_SECONDS):
                known.process.kill()
                message = f"the worker process gave no answer for {self._sizes[worker]} lanes of {limit:g} s each"
                return self._lose(worker, Failure(phase=phase, message=message))
            return self._read(known)
        except (EOFError, ConnectionResetError, BrokenPipeError):
            known.process.join(1.0)
            code = known.process.exitcode
            failure = Failure(
                phase="reset" if phase == "build" else phase,
                message=f"the worker process died (exit code {code})",
                mend="run with --vectorization sync to see the environment's own error",
            )
            return self._lose(worker, failure)

    def _read(self, known: _Worker) -> Any:
        """Return the next message of a worker that is alive."""
        message = known.connection.recv_bytes()
        try:
            return ForkingPickler.loads(message)
        except Exception:  # what an info holds cannot be made here; its lane alone shall fail
            known.connection.send(("again",))
            return open_sealed(*known.connection.recv())

    def _lose(self, worker: int, failure: Failure) -> Failure:
        """Bury a worker; the episodes of all its lanes are lost."""
        self._bury(worker)
        if self._sizes[worker] > 1:
            failure = msgspec.structs.replace(failure, is_shared=True)
        self._lost.update({lane: failure for lane, place in self._place.items() if place[0] == worker})
        return failure

    def _bury(self, worker: int) -> None:
        known, self._workers[worker] = self._workers[worker], None
        if known is not None:
            _stop(known, time.monotonic() + _CLOSE_SECONDS)

    def close(self) -> None:
        """Stop every worker; one that does not answer in five seconds is killed. Idempotent."""
        self._finalizer()


def _close_all(workers: list[_Worker | None]) -> None:
    for known in workers:
        if known is not None:
            with contextlib.suppress(OSError):
                known.connection.send(("close",))
    until = time.monotonic() + _CLOSE_SECONDS
    for number, known in enumerate(workers):
        workers[number] = None
        if known is not None:
            _stop(known, until)


def _stop(known: _Worker, until: float) -> None:
    """Let a worker end by itself until a moment of `time.monotonic`, then kill it."""
    known.connection.close()
    known.process.join(max(0.0, until - time.monotonic()))
    if known.process.is_alive():
        known.process.kill()
        known.process.join()


class _Worker(msgspec.Struct):
    process: BaseProcess
    connection: Any
    is_new: bool = False


def check_start_method(name: str | None) -> None:
    """Raise EnvironmentBuildError, naming those there are, for a way to start processes that is not known here."""
    known = multiprocessing.get_all_start_methods()
    if name is not None and name not in known:
        raise EnvironmentBuildError(
            f"start method `{name}` does not exist here",
            where="env.start_method",
            mend=f"use one of {', '.join(known)}",
        )


def _merge_step(merged: LaneSteps, rewards: list[float], rows: list[int], part: LaneSteps) -> None:
    put_rows(merged.observations, rows, part.observations)
    for row, reward in zip(rows, part.rewards, strict=True):
        rewards[row] = reward
    merged.ended.extend((rows[row], terminated, truncated) for row, terminated, truncated in part.ended)
    if part.infos is not None:
        infos = list(merged.infos) if merged.infos is not None else [{} for _ in rewards]
        for position, row in enumerate(rows):
            infos[row] = part.infos[position]
        merged.infos = infos
