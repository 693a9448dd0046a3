"""Terminal: what screens are drawn on."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator

from .checks import Check

_GROUP = "terminal"
_LEAST_WIDTH = 80


def check_terminal() -> Iterator[Check]:
    """Look at where standard output goes, and at what is said of it."""
    output = sys.stdout
    is_terminal = output is not None and output.isatty()
    size = shutil.get_terminal_size()
    found = (
        f"a terminal of {size.columns} x {size.lines}"
        if is_terminal
        else "a file or a pipe: plain lines, no colour"
    )
    is_narrow = is_terminal and size.columns < _LEAST_WIDTH
    yield Check(
        group=_GROUP,
        name="output",
        state="note",
        found=found,
        mend=f"make it {_LEAST_WIDTH} wide, and tables are not folded" if is_narrow else "",
    )
    encoding = str(getattr(output, "encoding", None) or "unknown")
    is_full = encoding.lower().replace("-", "").replace("_", "") == "utf8"
    yield Check(
        group=_GROUP,
        name="encoding",
        state="ok" if is_full else "note",
        found=encoding if is_full else f"{encoding}: what it cannot show becomes a question mark",
        mend="" if is_full else "export LANG=C.UTF-8",
    )
    named = [
        f"{name}={os.environ[name]}"
        for name in ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR")
        if name in os.environ
    ]
    is_plain = (
        not is_terminal
        or os.environ.get("TERM", "dumb") in ("dumb", "unknown")
        or bool(os.environ.get("NO_COLOR"))
    )
    yield Check(
        group=_GROUP,
        name="colour",
        state="note",
        found=f"{'no' if is_plain else 'yes'} ({', '.join(named) or 'TERM is not set'})",
    )
