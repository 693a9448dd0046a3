"""Exit codes of every command."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the process says when it ends."""

    DONE = 0  #: finished, every bar met
    MISSED = 1  #: finished, a stated bar missed
    USAGE = 2  #: the user can mend it
    INCONCLUSIVE = 3
    ERRORED = 4  #: finished, some episodes errored
    BUG = 70  #: a fault of ours
    INTERRUPTED = 130


#: What a shell says of a tool whose reader went away: 128 + SIGPIPE. Nothing is left to be told then.
BROKEN_PIPE = 141
