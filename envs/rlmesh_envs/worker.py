"""Worker: what runs inside a worker process of WorkerLanes, from its first message to its end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

import msgspec

from rlmesh_adapters.errors import Failure, HarnessError, expect_no_interrupts, failure_from, is_fault

from .bells import Bell
from .lane_set import LaneSet
from .request import EnvInfo, EnvRequest
from .sealing import pickled
from .service import Service
from .subordinates import settle_in

#: Builds the lanes of one worker, inside the worker.
Serve = Callable[[EnvRequest, int], tuple[LaneSet, EnvInfo]]

#: Seconds that a worker looks for its next step before it sleeps.
SPIN_SECONDS = 200e-6
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
    """Run one worker until it is told to close or its parent is gone.

    inherited: ends of other workers' pipes that a fork has copied.
    """
    settle_in(connection)
    expect_no_interrupts()
    for other in inherited:
        other.close()
    threading.Thread(target=end_with_parent, daemon=True).start()
    write_over_lines()
    bell = Bell(connection, SPIN_SECONDS, gives_way=True)
    try:
        known: EnvRequest = ForkingPickler.loads(request) if isinstance(request, bytes) else request
        lanes, info = serve(known, num_lanes)
        bell.send_pickled(pickled(Greeting(lanes.single_observation_space, lanes.single_action_space, info)))
    except BaseException as error:
        if not is_fault(error):
            raise
        # Nobody listens any more where another worker has failed before.
        with contextlib.suppress(OSError):
            bell.send(_build_failure(error))
        return
    try:
        Service(bell, lanes).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    finally:
        lanes.close_lanes()


def write_over_lines() -> None:
    """Let what is printed in this process erase what stands below it, if it is printed on a terminal.

    There the parent may keep lines that it draws again and again.
    """
    if os.environ.get("TERM") in ("dumb", "unknown"):
        return
    for stream in {id(stream): stream for stream in (sys.stdout, sys.stderr) if stream is not None}.values():
        # In the stream itself, which loggers may hold: a method of an instance hides that of its class.
        with contextlib.suppress(
            TypeError, ValueError
        ):  # of a stream that takes nothing of the kind, or is closed
            if stream.isatty():
                vars(stream)["write"] = _erasing(stream.write)


def _erasing(write: Callable[[str], int]) -> Callable[[str], int]:
    def write_erasing(text: str) -> int:
        # The end of a line comes alone from `print`, and there is nothing left below it.
        write(f"\x1b[J{text}" if text.strip() else text)
        return len(text)

    return write_erasing


def end_with_parent() -> None:
    """End this worker when its parent is gone, even if an environment is in a step that does not return."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        time.sleep(_ORPHAN_SECONDS)
        os._exit(1)


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
