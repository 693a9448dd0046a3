r"""The live part of a terminal: some lines that are drawn again and again, below what others write.

Between two drawings the cursor stands on an empty line above the lines. So whoever writes past us (a library, a
worker, the terminal's own `^C`) writes there, the next drawing goes below it, and a window that changes its size
leaves nothing behind: all that is ours stands below the cursor, and is erased from there. What Python code writes
to the stream is put above the lines at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Sequence
from typing import TextIO

_ERASE_BELOW, _ERASE_LINE = "\x1b[J", "\x1b[K"


class LiveScreen:
    """Draws lines at the end of what a terminal shows, and takes them away again.

    stream: of a terminal; between `open` and `close` what is written to it is passed on by us.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._write = stream.write
        self._flush = stream.flush
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._lines: Sequence[str] = ()
        self._is_drawn = False
        self._is_open = False
        # What was written and is held back until its line is whole; what stands on the cursor's line already.
        self._partial = self._begun = ""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the window as it is now."""
        with contextlib.suppress(OSError, ValueError):
            columns, rows = os.get_terminal_size(self._stream.fileno())
            if columns > 0 and rows > 0:
                return columns, rows
        return shutil.get_terminal_size()

    def open(self) -> None:
        """From now on, stand between the stream and who writes to it."""
        self._is_open = True
        # In the stream itself, which loggers may hold: a method of an instance hides that of its class.
        with contextlib.suppress(
            TypeError
        ):  # of a stream that takes nothing of the kind, what is written passes by
            vars(self._stream).update(write=self._pass, flush=self._pass_partial)

    def draw(self, lines: Sequence[str]) -> None:
        """Show lines, each shorter than the window is wide, in the place of those before."""
        with self._lock:
            self._lines = lines
            self._put(self._passed(self._taken_partial()) + self._to_place() + self._drawing())
            self._is_drawn = True

    def close(self) -> None:
        """Take the lines away and leave the stream as it was."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            with contextlib.suppress(TypeError):
                for name in ("write", "flush"):
                    vars(self._stream).pop(name, None)
            self._put(self._passed(self._taken_partial()) + self._to_line_start() + _ERASE_BELOW)

    def _to_line_start(self) -> str:
        """Return what brings the cursor to an empty line, without knowing where it stands.

        As many blanks as a line has end in the next line, unless the cursor is at the first column.
        """
        return " " * self.size[0] + f"\r{_ERASE_LINE}"

    def _to_place(self) -> str:
        """Return what brings the cursor to the line above ours: an empty one, or one that somebody has begun."""
        if self._has_place():
            return f"\r{self._begun}{_ERASE_LINE}" if self._begun else self._to_line_start()
        self._begun = ""
        return self._to_line_start()

    def _has_place(self) -> bool:
        """Tell whether we know where a line that was begun ends."""
        return self._begun.isascii() and self._begun.isprintable() and len(self._begun) < self.size[0]

    def _drawing(self) -> str:
        """Return what draws the lines below the cursor's line and comes back to it."""
        drawn = "".join(f"\r\n{line}{_ERASE_LINE}" for line in self._lines)
        return f"{drawn}{_ERASE_BELOW}\x1b[{len(self._lines)}A\r{self._begun}" if self._lines else _ERASE_BELOW

    def _pass(self, text: str) -> int:
        """Write what somebody else has to say above the lines, as soon as a line of it is whole."""
        if os.getpid() != self._process:  # a worker that was forked has no lines
            return self._write(text)
        with self._lock:
            self._partial += text
            whole, newline, rest = self._partial.rpartition("\n")
            if newline:
                self._partial = rest
                self._put_above(whole + newline)
        return len(text)

    def _pass_partial(self) -> None:
        if os.getpid() == self._process:
            with self._lock:
                if self._partial:
                    self._put_above(self._taken_partial())
                    return
        self._flush()

    def _put_above(self, text: str) -> None:
        passed = self._passed(text)
        # Where half a line ends is not always known; what is written next belongs to it, and we draw later.
        self._is_drawn = self._has_place()
        self._write(passed + (self._drawing() if self._is_drawn else ""))
        self._flush()

    def _taken_partial(self) -> str:
        text, self._partial = self._partial, ""
        return text

    def _passed(self, text: str) -> str:
        """Return what writes a text above the lines, and remember what it begins."""
        if not text:
            return ""
        self._begun = (self._begun + text).rpartition("\n")[2].rpartition("\r")[2]
        return (_ERASE_BELOW if self._is_drawn else "") + text

    def _put(self, text: str) -> None:
        # A terminal that went away is no reason to end a run.
        with contextlib.suppress(OSError, ValueError):
            self._write(text)
            self._flush()
