"""Answering: what commands have in common - how they end, and where their answer goes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

from rlmesh_adapters.errors import HarnessError

from .exits import Exit
from .streams import drop_output
from .telling import say, say_bug, say_mistake


def answer_with(answer: Callable[[], Exit]) -> Exit:
    """Return the exit code of an answer; a user's mistake is one message, a fault of ours a traceback.

    Raises BrokenPipeError if nobody reads the answer any more.
    """
    if not gc.isenabled():  # see rlmesh_cli.app.main
        gc.freeze()
        gc.enable()
    try:
        return answer()
    except HarnessError as error:
        return say_mistake(error)
    except KeyboardInterrupt:
        say("rlmesh: interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        raise
    except BaseException:  # user code that leaves must not end us without a result
        return say_bug()


def write_json(record: dict[str, Any]) -> None:
    """Write one JSON document to standard output."""
    from .records import strict_json  # noqa: PLC0415 - numpy comes with it, and the doctor must speak without

    write_out(lambda: sys.stdout.write(strict_json(record).decode() + "\n"))


def write_out(write: Callable[[], object], *, mend: str = "see that what it is sent to takes more") -> None:
    """Let `write` print to standard output, if there is one; mend: what is told where it cannot.

    Raises BrokenPipeError if nobody reads it any more, HarnessError if it cannot be written otherwise.
    """
    if sys.stdout is None:  # closed by whoever started us
        return
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        drop_output()
        raise HarnessError(
            f"standard output cannot be written to: {error.strerror}",
            where="standard output",
            mend=mend,
        ) from error
