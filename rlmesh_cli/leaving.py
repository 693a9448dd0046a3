"""Leaving: a process ends although threads of a policy or an environment go on."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable

# Seconds in which threads may end by themselves.
_PATIENCE_SECONDS = 2.0
# What concurrent.futures calls its threads by default; they end when they have done what they were given.
_POOLED = "ThreadPoolExecutor"


def leave_without_others(code: int, say: Callable[[str], None] = lambda text: None) -> None:
    """See that threads which a policy or environment left running do not keep the process for ever.

    say: is told which are not waited for.
    """
    others = [
        one
        for one in threading.enumerate()
        if not one.daemon and one is not threading.current_thread() and not one.name.startswith(_POOLED)
    ]
    if not others:
        return

    def leave() -> None:
        time.sleep(_PATIENCE_SECONDS)
        names = ", ".join(one.name for one in others if one.is_alive())
        if not names:  # what keeps us now is something else, such as what was registered for the end
            return
        say(f"rlmesh: not waiting for threads of policy or environment that go on: {names}")
        if sys.stdout is not None:
            sys.stdout.flush()
        os._exit(code)

    threading.Thread(target=leave, daemon=True).start()
