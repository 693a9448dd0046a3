"""Telling: what a command says on standard error when it cannot go on."""

from __future__ import annotations

import sys
import traceback

from rlmesh_adapters.errors import HarnessError

from .documents import printable
from .exits import Exit


def say(text: str) -> None:
    """Write text to standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(text.rstrip("\n") + "\n")


def say_mistake(error: HarnessError) -> Exit:
    """Tell what the user can mend, and return the exit code for it."""
    say(f"rlmesh: {printable(str(error))}")
    return Exit.USAGE


def say_bug() -> Exit:
    """Tell the exception that is being handled as a fault of ours, and return the exit code for it."""
    say(traceback.format_exc())
    say("rlmesh: this is a bug of rlmesh, please report it with the lines above")
    return Exit.BUG
