"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from .tallies import Tally
from .watching import Watcher

#: Seconds between two lines where there is no terminal.
_LINE_SECONDS = 10.0


def make_watcher(*, is_silent: bool) -> Watcher:
    """Return a watcher that suits standard error."""
    if is_silent or sys.stderr is None:
        return SilentWatcher()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return BarWatcher()
    return LineWatcher()


class SilentWatcher:
    """Says nothing."""

    def begin(self, planned: int) -> None:
        """Take no note."""

    def tick(self, tally: Tally, done: int) -> None:
        """Take no note."""

    def end(self) -> None:
        """Take no note."""


class LineWatcher:
    """Writes a plain line every ten seconds."""

    def __init__(self) -> None:
        self._planned = 0
        self._began = self._said = 0.0

    def begin(self, planned: int) -> None:
        """Start the clock."""
        self._planned = planned
        self._began = self._said = time.perf_counter()

    def tick(self, tally: Tally, done: int) -> None:
        """Write a line if the last one is ten seconds old."""
        now = time.perf_counter()
        if now - self._said >= _LINE_SECONDS:
            self._said = now
            sys.stderr.write(status_line(tally, done, self._planned, now - self._began) + "\n")

    def end(self) -> None:
        """Nothing is left to be said."""


def status_line(tally: Tally, done: int, planned: int, seconds: float) -> str:
    """Return `12/50 episodes, 84,000 steps/s, 31 s left`."""
    rate = tally.steps / seconds if seconds > 0 else 0.0
    left = f", {seconds / done * (planned - done):.0f} s left" if done else ""
    return f"{done}/{planned} episodes, {rate:,.0f} steps/s{left}"


class BarWatcher:
    """A bar with episodes, steps a second and time left."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._task: Any = None
        self._began = 0.0

    def begin(self, planned: int) -> None:
        """Show the bar."""
        from rich.console import Console  # noqa: PLC0415 - most runs of scripts never need it
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

        self._began = time.perf_counter()
        self._progress = Progress(
            TextColumn("episodes"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]} steps/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            # Refreshed by us: a thread of its own would take the interpreter from the loop.
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("episodes", total=planned, rate="-")
        self._progress.start()

    def tick(self, tally: Tally, done: int) -> None:
        """Move the bar."""
        seconds = time.perf_counter() - self._began
        rate = f"{tally.steps / seconds:,.0f}" if seconds > 0 else "-"
        self._progress.update(self._task, completed=done, rate=rate, refresh=True)

    def end(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()
