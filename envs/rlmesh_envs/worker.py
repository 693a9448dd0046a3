"""Worker: what runs inside a worker process of WorkerLanes, from its first message to its end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import msgspec

from rlmesh_adapters.errors import Failure, HarnessError, describe_error, failure_from

from .lane_set import LaneSet
from .request import EnvInfo, EnvRequest
from .steps import Info, LaneResets, LaneSteps

#: Builds the lanes of one worker, inside the worker.
Serve = Callable[[EnvRequest, int], tuple[LaneSet, EnvInfo]]

# What an orphaned worker gets to close its environments.
_ORPHAN_SECONDS = 1.0


class Greeting(msgspec.Struct, frozen=True):
    """What a worker says first: what it has built."""

    observation_space: Any
    action_space: Any
    info: EnvInfo


def work(
    connection: Connection,
    request: EnvRequest | bytes,
    serve: Serve,
    num_lanes: int,
    inherited: list[Connection],
) -> None:
    """Run one worker until it is told to close or its parent is gone."""
    # The parent decides when to stop: a Ctrl-C reaches the whole group, and would print a stack for each.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for other in inherited:
        other.close()
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        known: EnvRequest = ForkingPickler.loads(request) if isinstance(request, bytes) else request
        lanes, info = serve(known, num_lanes)
        connection.send(Greeting(lanes.single_observation_space, lanes.single_action_space, info))
    except (Exception, SystemExit) as error:
        connection.send(_build_failure(error))
        return
    try:
        _answer(connection, lanes)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        lanes.close_lanes()


def end_with_parent() -> None:
    """End this worker when its parent is gone, even if an environment is in a step that does not return."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        time.sleep(_ORPHAN_SECONDS)
        os._exit(1)


def _answer(connection: Connection, lanes: LaneSet) -> None:
    answer: LaneResets | LaneSteps | None = None
    while True:
        verb, *arguments = connection.recv()
        if verb == "close":
            return
        if verb == "again":
            assert answer is not None
            connection.send(_seal(answer))
            continue
        numbers, values = arguments
        reset, step = lanes.reset_lanes, lanes.step_lanes
        answer = reset(numbers, values) if verb == "reset" else step(values, numbers)
        try:
            message = ForkingPickler.dumps(answer)
        except Exception:  # an info that cannot be sent; the sealed form says which
            message = ForkingPickler.dumps(open_sealed(*_seal(answer)))
        connection.send_bytes(message)


#: An answer without infos, and each row's info pickled by itself, or why it cannot be.
_Sealed = tuple[LaneResets | LaneSteps, list[bytes | str]]


def _seal(answer: LaneResets | LaneSteps) -> _Sealed:
    sealed: list[bytes | str] = []
    for info in answer.infos or ():
        try:
            sealed.append(bytes(ForkingPickler.dumps(info)))
        except Exception as error:
            sealed.append(describe_error(error))
    return msgspec.structs.replace(answer, infos=[]), sealed


def open_sealed(answer: LaneResets | LaneSteps, sealed: list[bytes | str]) -> LaneResets | LaneSteps:
    """Put the infos back; one that cannot be read fails its row alone."""
    phase = "reset" if isinstance(answer, LaneResets) else "step"
    infos: list[Info] = []
    failures = dict(answer.failures)
    for row, part in enumerate(sealed):
        info: Info = {}
        try:
            if isinstance(part, str):
                raise TypeError(part)
            info = ForkingPickler.loads(part)
        except Exception as error:
            text = f"the info cannot be sent from the worker process: {describe_error(error)}"
            failures[row] = Failure(phase=phase, message=text, mend="use --vectorization sync")
        infos.append(info)
    if isinstance(answer, LaneResets):
        return msgspec.structs.replace(answer, infos=infos, failures=failures)
    ended = [end for end in answer.ended if end[0] not in failures]
    return msgspec.structs.replace(answer, infos=infos or None, failures=failures, ended=ended)


def _build_failure(error: BaseException) -> Failure:
    failure = failure_from(error, "reset")
    if isinstance(error, HarnessError):
        return failure
    return Failure(
        phase="reset",
        message=f"a worker process cannot build the environment: {failure.message}",
        detail=failure.detail,
        mend="run with --vectorization sync to see more",
    )
