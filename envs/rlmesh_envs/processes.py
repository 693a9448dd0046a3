"""WorkerLanes: the promise of LaneVectorEnv, kept by environments in worker processes.

Axes: N lanes, R stepped lanes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import msgspec

from rlmesh_adapters.batches import Batch, BatchLayout, put_rows, take_rows
from rlmesh_adapters.errors import (
    EnvironmentBuildError,
    Failure,
    HarnessError,
    describe_error,
    failure_from,
)

from .lanes import LaneVectorEnv
from .request import EnvInfo, EnvRequest
from .spaces import view_of
from .steps import Info, LaneResets, LaneSteps

#: Builds the lanes of one worker, inside the worker.
Serve = Callable[[EnvRequest, int], tuple[LaneVectorEnv, EnvInfo]]

_CLOSE_SECONDS = 5.0


class WorkerLanes:
    """N lanes, divided over worker processes in blocks.

    Has `reset_lanes` and `step_lanes` of LaneVectorEnv, with the same results. A worker that dies fails its
    own lanes only and is started again for their next episodes.

    request: what to build; reaches the workers as plain data.
    serve: builds a worker's lanes from it.

    Raises EnvironmentBuildError if a worker cannot build its environments, with the worker's own words.
    """

    def __init__(self, request: EnvRequest, serve: Serve) -> None:
        self._request = request
        self._serve = serve
        self._context = _context(request.start_method)
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
        try:
            for worker in range(count):
                self._start(worker)
            greetings = [self._greet(worker) for worker in range(count)]
        except BaseException:
            self.close()
            raise
        self.single_observation_space = greetings[0].observation_space
        self.single_action_space = greetings[0].action_space
        self.info = greetings[0].info
        self.layout = BatchLayout(view_of(self.single_observation_space))

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset the given lanes, each with its own seed; see LaneVectorEnv."""
        observations = self.layout.allocate(len(lanes))
        infos: list[Info] = [{}] * len(lanes)
        failures: dict[int, Failure] = {}
        casts = ""
        parts = self._divide(lanes)
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
        return LaneResets(lanes, observations, infos, failures, casts)

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step the given lanes and no other; see LaneVectorEnv."""
        parts = self._divide(lanes)
        failures: dict[int, Failure] = {}
        rewards = [0.0] * len(lanes)
        merged = LaneSteps(self.layout.allocate(len(lanes)), rewards, [], None, failures)
        for worker, (rows, local) in parts.items():
            part = actions if len(rows) == len(lanes) else take_rows(actions, rows)
            self._send(worker, ("step", local, part))
        for worker, (rows, _) in parts.items():
            answer = self._receive(worker, "step")
            if isinstance(answer, Failure):
                failures.update(dict.fromkeys(rows, answer))
            else:
                _merge_step(merged, rewards, rows, answer)
                failures.update({rows[row]: failure for row, failure in answer.failures.items()})
        merged.ended.sort()
        return merged

    def _divide(self, lanes: Sequence[int]) -> dict[int, tuple[list[int], list[int]]]:
        """Return worker -> (rows of `lanes`, numbers inside the worker)."""
        parts: dict[int, tuple[list[int], list[int]]] = {}
        for row, lane in enumerate(lanes):
            worker, local = self._place[lane]
            rows, numbers = parts.setdefault(worker, ([], []))
            rows.append(row)
            numbers.append(local)
        return parts

    def _start(self, worker: int) -> None:
        ours, theirs = self._context.Pipe()
        # A forked worker inherits our ends of the other pipes; it closes them, or it would never see us die.
        inherited = [known.connection for known in self._workers if known is not None] + [ours]
        is_fork = self._context.get_start_method() == "fork"
        process = self._context.Process(
            target=_work,
            args=(theirs, self._request, self._serve, self._sizes[worker], inherited if is_fork else []),
            daemon=True,
            name=f"lanes-{worker}",
        )
        try:
            process.start()
        except Exception as error:
            raise EnvironmentBuildError(
                f"the environment cannot be sent to a worker process: {describe_error(error)}",
                where=f"vectorization: async, start method {self._context.get_start_method()}",
                mend="use --start-method fork or --vectorization sync",
            ) from error
        theirs.close()
        self._workers[worker] = _Worker(process, ours)

    def _greet(self, worker: int) -> _Greeting:
        answer = self._receive(worker, "build")
        if isinstance(answer, Failure):
            raise EnvironmentBuildError(answer.message, where=answer.detail or "worker process", mend=answer.mend)
        assert isinstance(answer, _Greeting)
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
        known = self._workers[worker]
        assert known is not None
        try:
            if known.is_new:
                known.is_new = False
                greeting = known.connection.recv()
                if isinstance(greeting, Failure):
                    self._bury(worker)
                    return greeting
            return known.connection.recv()
        except (EOFError, ConnectionResetError):
            known.process.join(1.0)
            code = known.process.exitcode
            self._bury(worker)
            return Failure(
                phase="reset" if phase == "build" else phase,
                message=f"the worker process died (exit code {code})",
                mend="run with --vectorization sync to see the environment's own error",
            )

    def _bury(self, worker: int) -> None:
        known, self._workers[worker] = self._workers[worker], None
        if known is not None:
            known.connection.close()
            known.process.join(_CLOSE_SECONDS)
            if known.process.is_alive():
                known.process.kill()
                known.process.join()

    def close(self) -> None:
        """Stop every worker; one that does not answer in five seconds is killed. Idempotent."""
        for known in self._workers:
            if known is not None:
                with contextlib.suppress(OSError):
                    known.connection.send(("close",))
        for worker in range(len(self._workers)):
            self._bury(worker)


class _Worker(msgspec.Struct):
    process: BaseProcess
    connection: Any
    is_new: bool = False


class _Greeting(msgspec.Struct, frozen=True):
    observation_space: Any
    action_space: Any
    info: EnvInfo


def _context(start_method: str | None) -> Any:
    known = multiprocessing.get_all_start_methods()
    if start_method is not None and start_method not in known:
        raise EnvironmentBuildError(
            f"start method `{start_method}` does not exist here",
            where="env.start_method",
            mend=f"use one of {', '.join(known)}",
        )
    return multiprocessing.get_context(start_method)


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


def _work(
    connection: Connection, request: EnvRequest, serve: Serve, num_lanes: int, inherited: list[Connection]
) -> None:
    """Run one worker until it is told to close or its parent is gone."""
    # The parent decides when to stop: a Ctrl-C reaches the whole group, and would print a stack for each.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for other in inherited:
        other.close()
    try:
        lanes, info = serve(request, num_lanes)
        connection.send(_Greeting(lanes.single_observation_space, lanes.single_action_space, info))
    except Exception as error:
        connection.send(_build_failure(error))
        return
    try:
        _answer(connection, lanes)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        lanes.close()


def _answer(connection: Connection, lanes: LaneVectorEnv) -> None:
    while True:
        verb, *arguments = connection.recv()
        if verb == "close":
            return
        numbers, values = arguments
        answer: LaneResets | LaneSteps
        reset, step = lanes.reset_lanes, lanes.step_lanes
        answer = reset(numbers, values) if verb == "reset" else step(values, numbers)
        try:
            connection.send(answer)
        except (OSError, EOFError):
            raise
        except Exception as error:
            text = f"the lanes' answer cannot be sent from the worker process: {describe_error(error)}"
            connection.send(Failure(phase=verb, message=text, mend="use --vectorization sync"))


def _build_failure(error: Exception) -> Failure:
    failure = failure_from(error, "reset")
    if isinstance(error, HarnessError):
        return failure
    return Failure(
        phase="reset",
        message=f"a worker process cannot build the environment: {failure.message}",
        detail=failure.detail,
        mend="run with --vectorization sync to see more",
    )
