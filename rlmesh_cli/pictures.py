"""Pictures in letters: histograms, strips and traces as lines of text, in block characters or in ASCII."""

from __future__ import annotations

import os
from typing import TextIO

_LEVELS = "▁▂▃▄▅▆▇█"
_ALL_BLOCKS = _LEVELS + "▏▎▍▌▋▊▉░·×"


def can_show_blocks(stream: TextIO) -> bool:
    """Tell whether a stream takes block characters, and whoever reads it is not said to know ASCII only."""
    # Python turns the C locale into UTF-8 on its own; the terminal does not.
    named = next((os.environ[name] for name in ("LC_ALL", "LANG") if os.environ.get(name)), "")
    if named in ("C", "POSIX"):
        return False
    try:
        _ALL_BLOCKS.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
