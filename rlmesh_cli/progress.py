"""Progress on standard error: a panel on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .tallies import Tally
from .watching import Watcher

if TYPE_CHECKING:  # most runs of scripts show nothing
    from .glances import Glance
    from .live_panel import Line, Pace
    from .live_screen import LiveScreen

#: Seconds between two lines where there is no terminal.
_LINE_SECONDS = 10.0
#: A run that is over sooner does not flash up.
_FIRST_SECONDS = 0.3
_SGR = {"name": "1", "good": "32", "bad": "31"}


def make_watcher(*, is_silent: bool) -> Watcher:
    """Return a watcher that suits standard error."""
    if is_silent or sys.stderr is None:
        return SilentWatcher()
    if sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown"):
        return PanelWatcher()
    return LineWatcher()


class SilentWatcher:
    """Says nothing."""

    def begin(self, planned: int) -> None:
        """Take no note."""

    def tick(self, tally: Tally, done: int, look: Callable[[], Glance]) -> None:
        """Take no note."""

    def end(self) -> None:
        """Take no note."""


class _Clocked:
    """What watchers that say something know of the time."""

    def __init__(self) -> None:
        self._planned = 0
        self._began = self._said = 0.0
        # Episodes of earlier sittings: those that were there at the first tick.
        self._earlier: int | None = None

    def begin(self, planned: int) -> None:
        """Start the clock."""
        self._planned, self._earlier = planned, None
        self._began = self._said = time.perf_counter()

    def _pace(self, tally: Tally, done: int) -> Pace:
        from .live_panel import Pace  # noqa: PLC0415 - most runs of scripts show nothing

        return Pace(
            planned=self._planned,
            done=done,
            fresh=done - (self._earlier or 0),
            steps=tally.steps,
            seconds=time.perf_counter() - self._began,
        )

    def _note(self, done: int) -> None:
        if self._earlier is None:
            self._earlier = done


class LineWatcher(_Clocked):
    """Writes a plain line every ten seconds."""

    def tick(self, tally: Tally, done: int, look: Callable[[], Glance]) -> None:
        """Write a line if the last one is ten seconds old."""
        self._note(done)
        now = time.perf_counter()
        if now - self._said >= _LINE_SECONDS:
            from .live_panel import status_line  # noqa: PLC0415 - short runs say nothing

            self._said = now
            sys.stderr.write(status_line(self._pace(tally, done), look()) + "\n")

    def end(self) -> None:
        """Nothing is left to be said."""


class PanelWatcher(_Clocked):
    """A panel that is drawn anew at each tick, by who plays: a thread would take the interpreter from the loop."""

    def __init__(self) -> None:
        super().__init__()
        self._screen: LiveScreen | None = None
        self._has_blocks = self._has_colours = False

    def begin(self, planned: int) -> None:
        """Make ready."""
        from .live_screen import LiveScreen  # noqa: PLC0415 - of a terminal
        from .pictures import can_show_blocks  # noqa: PLC0415 - of a terminal

        super().begin(planned)
        self._has_blocks = can_show_blocks(sys.stderr)
        self._has_colours = not os.environ.get("NO_COLOR")
        self._screen = LiveScreen(sys.stderr)
        self._screen.open()

    def tick(self, tally: Tally, done: int, look: Callable[[], Glance]) -> None:
        """Draw the panel as things stand."""
        self._note(done)
        screen, pace = self._screen, self._pace(tally, done)
        if screen is None or pace.seconds < _FIRST_SECONDS:
            return
        from .live_panel import LEAST_COLUMNS, LEAST_ROWS, panel_lines, short_line  # noqa: PLC0415 - of a terminal

        columns, rows = screen.size
        # The last column stays free: what a terminal does after a letter in it is not the same everywhere.
        width = columns - 1
        if columns < LEAST_COLUMNS or rows < LEAST_ROWS:
            screen.draw([short_line(pace, look(), width)])
            return
        # Above the panel there is an empty line, and one of what was there before.
        lines = panel_lines(pace, look(), width=width, height=rows - 2, has_blocks=self._has_blocks)
        screen.draw([self._styled(line) for line in lines])

    def _styled(self, line: Line) -> str:
        if not self._has_colours:
            return "".join(text for text, _ in line)
        return "".join(f"\x1b[{_SGR[style]}m{text}\x1b[m" if style and text else text for text, style in line)

    def end(self) -> None:
        """Take the panel away."""
        if self._screen is not None:
            self._screen.close()
            self._screen = None
