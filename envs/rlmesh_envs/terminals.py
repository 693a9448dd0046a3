"""Terminals: what a worker writes to one on which its parent keeps lines below the cursor."""

from __future__ import annotations

import os
import sys


def write_over_lines() -> None:
    """Let what is printed in this process erase what stands below it on a terminal; it is drawn again there."""
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return
    for stream in {sys.stdout, sys.stderr} - {None}:
        write = stream.write
        if stream.isatty():
            # In the stream itself: a method of an instance hides that of its class.
            vars(stream)["write"] = lambda text, write=write: write(f"\x1b[J{text}" if text.strip() else text)
