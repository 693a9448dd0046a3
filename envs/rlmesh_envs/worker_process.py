"""WorkerProcess: one worker as its parent sees it - started, spoken to, waited for and buried."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from rlmesh_adapters.errors import EnvironmentBuildError, Failure, describe_error

from .bells import MESSAGE, Bell
from .request import EnvRequest
from .sealing import open_sealed, unpickled
from .service import Again, Attach, Close
from .subordinates import interrupts_put_off
from .worker import Greeting, Serve, work

#: Seconds that a worker gets to close its environments.
CLOSE_SECONDS = 5.0
# A worker ends what hangs by itself, lane by lane; one that is silent for so much longer cannot.
_GRACE_SECONDS = 2.0
_BUILD_SECONDS = 60.0
_JOIN_SECONDS = 1.0
# Where workers answer sooner than that, the parent does not go to sleep; longer, it would take a core from one.
_SPIN_SECONDS = 60e-6


class WorkerProcess:
    """A process with some lanes, and our end of the pipe to it.

    context: how processes are started. request: what it builds, pickled where nothing is inherited.
    lanes: how many. name: of the process. inherited: our ends of the pipes to other workers, which a fork copies.

    Raises EnvironmentBuildError if the process cannot be started.
    """

    def __init__(
        self,
        context: Any,
        request: EnvRequest | bytes,
        serve: Serve,
        *,
        lanes: int,
        name: str,
        inherited: Sequence[Connection],
    ) -> None:
        self._lanes = lanes
        #: Whether its greeting has not been read yet.
        self.is_new = True
        try:
            ours, theirs = context.Pipe()
            is_fork = context.get_start_method() == "fork"
            # A forked worker inherits our ends of all pipes; it closes them, or it would never see us die.
            ends = [*inherited, ours] if is_fork else []
            self.process = context.Process(
                target=work, args=(theirs, request, serve, lanes, ends), daemon=True, name=name
            )
            with interrupts_put_off():
                self.process.start()
        except Exception as error:
            raise EnvironmentBuildError(
                f"a worker process cannot be started: {describe_error(error)}",
                where=f"vectorization: async, start method {context.get_start_method()}",
                mend="use fewer workers (--env-workers), another --start-method, or --vectorization sync",
            ) from error
        theirs.close()
        self.connection = ours
        self.bell = Bell(ours, _SPIN_SECONDS)

    def greet(self) -> Greeting | Failure:
        """Return what the worker has built, or why it has not."""
        self.is_new = False
        try:
            self.bell.listen()
            greeting: Greeting | Failure = self.bell.receive()
        except (EOFError, OSError):
            return Failure(
                phase="reset",
                message=f"{self._obituary()} before it had built the environment",
                mend="run with --vectorization sync to see its own error, or use another --start-method",
            )
        return greeting

    def attach(self, descriptor: int, lanes: int, first: int) -> None:
        """Give the worker the memory of a shared block of so many lanes, the `first` of which is its own."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.bell.send(Attach(lanes=lanes, first=first))
            self.bell.give(descriptor, self.process.pid)

    # What a dead worker cannot take is reported when its answer is missing.
    def ring(self, sound: bytes) -> None:
        """Ask for what a bell alone says."""
        try:  # noqa: SIM105 - `suppress` takes as long as the ringing
            self.bell.ring(sound)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def ask(self, message: object) -> None:
        """Ask for something; `answer` waits for it."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.bell.send(message)

    def answer(self, phase: str, step_timeout: float | None) -> Any:
        """Return the bell's sound, the message if that is what it announces, or the Failure of all lanes.

        step_timeout: seconds that a lane may take; a worker that cannot keep to them itself is killed.
        """
        try:
            limit = None
            if step_timeout is not None:
                # Building anew is a part of a reset, and takes its time.
                grace = _GRACE_SECONDS if phase == "step" else _BUILD_SECONDS
                limit = step_timeout * self._lanes + grace
            if limit is not None and not self.bell.is_rung_within(limit):
                self.process.kill()
                lanes = "a lane" if self._lanes == 1 else f"{self._lanes} lanes"
                message = f"the worker process gave no answer in {limit:g} s, for {lanes} of {step_timeout:g} s"
                return Failure(phase=phase, message=message)
            sound = self.bell.listen()
            return self._read() if sound == MESSAGE else sound
        except (EOFError, OSError):
            return Failure(
                phase=phase,
                message=self._obituary(),
                mend="run with --vectorization sync to see the environment's own error",
            )

    def _read(self) -> Any:
        message = self.bell.receive_pickled()
        try:
            return unpickled(message)
        except Exception:  # what an info holds cannot be made here; its lane alone shall fail
            self.bell.send(Again())
            self.bell.listen()
            return open_sealed(*self.bell.receive())

    def _obituary(self) -> str:
        """Say how the process ended."""
        self.process.join(_JOIN_SECONDS)
        code = self.process.exitcode
        if code is None or code >= 0:
            return f"the worker process died (exit code {code})"
        if -code == signal.SIGKILL:
            return "the worker process was killed (signal 9), perhaps for want of memory"
        names = {number.value: f", {number.name}" for number in signal.Signals}
        return f"the worker process was killed (signal {-code}{names.get(-code, '')})"

    def dismiss(self) -> None:
        """Tell the worker to end."""
        with contextlib.suppress(OSError):
            self.bell.send(Close())

    def bury(self, until: float) -> None:
        """Let the worker end by itself until a moment of `time.monotonic`, then kill it."""
        self.bell.close()
        try:
            self.process.join(max(0.0, until - time.monotonic()))
        finally:  # also where somebody does not wait for that
            if self.process.is_alive():
                self.process.kill()
                self.process.join()
