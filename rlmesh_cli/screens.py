"""Screens: what everything that is printed with Rich has in common.

User text is never read as markup, and only ASCII is used, so that every terminal shows the same.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable

from rich.box import Box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlmesh_adapters.advisories import Advisory

from .documents import printable

_BOX = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


class _Console(Console):
    """A console that leaves it to the command to end the process."""

    def on_broken_pipe(self) -> None:
        """Say that nobody reads any more; Rich itself would exit here."""
        raise BrokenPipeError


def make_console() -> Console:
    """Return a console on standard output."""
    return _Console(
        file=sys.stdout,
        markup=False,
        highlight=False,
        emoji=False,
        # A pipe has no width of its own; rows should not be broken for the next program.
        width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120,
    )


def print_titled(console: Console, title: str, table: Table) -> None:
    """Print a title, a table, and an empty line."""
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(table)
    console.print()


def print_line(console: Console, line: str) -> None:
    """Print a sentence or a path: whole in a pipe, where it is searched; on a terminal no word is broken."""
    if console.is_terminal:
        # Rich would break a path that is longer than a line.
        line = textwrap.fill(line, console.width, break_long_words=False, break_on_hyphens=False)
    console.print(plain_text(line), soft_wrap=True)


def empty_table(columns: Iterable[tuple[str, str]], *, header: bool = True) -> Table:
    """Return an empty table of (name, kind) columns: `left` and `right` keep their width, `text` may be folded."""
    table = Table(box=_BOX if header else None, show_header=header, show_edge=False, padding=(0, 1))
    for name, kind in columns:
        table.add_column(
            Text(name),
            justify="right" if kind == "right" else "left",
            overflow="fold",
            no_wrap=kind != "text",
        )
    return table


def plain_text(value: str, style: str = "") -> Text:
    """Return text of users as it is: no markup, no emoji, nothing that steers a terminal."""
    return Text(printable(value), style=style)


def advisory_table(advisories: Iterable[Advisory]) -> Table:
    """Return advisories with their counts; each begins with its code, which a column would leave no room for."""
    table = empty_table([("", "left"), ("count", "right"), ("", "text")])
    for advisory in advisories:
        style = "yellow" if advisory.severity == "caution" else ""
        said = plain_text(f"{advisory.code}: {advisory.message}")
        table.add_row(Text(advisory.severity, style=style), Text(str(advisory.count)), said)
    return table
