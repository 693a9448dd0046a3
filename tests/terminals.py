"""A terminal for tests: as much of one as is needed to see what would stand on its screen."""

from __future__ import annotations

import io
import re

_TOKEN = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|(.|\n|\r)", re.DOTALL)


class Screen:
    """Cells of a terminal of some size, with what has scrolled out above it.

    It wraps as xterm does: a letter in the last column leaves the cursor there until the next one comes.
    """

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.lines: list[list[str]] = [[]]
        self.row = self.column = 0
        self.writes = 0

    @property
    def top(self) -> int:
        """First line that is still on the screen."""
        return max(0, len(self.lines) - self.rows)

    @property
    def text(self) -> list[str]:
        """Every line, from the first that was written, without blanks at its end."""
        return ["".join(line).rstrip() for line in self.lines]

    def feed(self, text: str) -> None:
        self.writes += 1
        for match in _TOKEN.finditer(text):
            if match[2] is not None:
                self._steer(match[1], match[2])
            elif match[3] == "\r":
                self.column = 0
            elif match[3] == "\n":
                self._down()
                self.column = 0  # the system's terminal driver turns it into both
            else:
                self._put(match[3])

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append([])

    def _put(self, letter: str) -> None:
        if self.column == self.columns:
            self._down()
            self.column = 0
        line = self.lines[self.row]
        line += " " * (self.column + 1 - len(line))
        line[self.column] = letter
        self.column += 1

    def _steer(self, number: str, what: str) -> None:
        if what == "A":
            self.row = max(self.top, self.row - int(number or 1))
        elif what == "K":
            del self.lines[self.row][self.column :]
        elif what == "J":
            del self.lines[self.row][self.column :]
            for line in self.lines[self.row + 1 :]:
                line.clear()
        else:
            assert what == "m", what


class Terminal(io.StringIO):
    """Standard error on a terminal, as large as `COLUMNS` and `LINES` say; what comes to it stands on a screen."""

    encoding = "utf-8"

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        super().__init__()
        self.screen = Screen(columns, rows)

    def write(self, text: str) -> int:
        self.screen.feed(text)
        return super().write(text)

    def isatty(self) -> bool:
        return True
