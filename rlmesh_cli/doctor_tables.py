"""What the doctor found, as tables."""

from __future__ import annotations

from itertools import groupby

from rich.console import Console
from rich.text import Text

from .doctor.checks import Check
from .screens import empty_table, make_console, plain_text, print_line, print_titled

_STYLES = {"ok": "green", "missing": "yellow", "broken": "red", "note": ""}


def show_examination(checks: list[Check], console: Console | None = None) -> None:
    """Print every check by its group, and what it comes to."""
    console = console or make_console()
    width = max((len(check.name) for check in checks), default=0)
    for group, members in groupby(checks, lambda check: check.group):
        table = empty_table([("", "left"), ("", "left"), ("", "text")], header=False)
        for check in members:
            state = Text(f"{check.state if check.state != 'note' else '':7}", style=_STYLES[check.state])
            is_short = len(check.found) + len(check.mend) + width + 18 <= console.width
            mend = plain_text(f"-> {check.mend}" if check.mend else "", style="bold")
            found = plain_text(check.found)
            if check.mend and is_short:
                found = Text.assemble(found, "  ", mend)
            table.add_row(state, plain_text(f"{check.name:{width}}"), found)
            if check.mend and not is_short:
                table.add_row(Text(), Text(), mend)
        print_titled(console, group, table)
    print_line(console, _sum(checks))


def _sum(checks: list[Check]) -> str:
    broken = [check for check in checks if check.state == "broken"]
    core = [check.name for check in broken if check.is_core]
    if core:
        return f"broken, and needed by every run: {', '.join(core)}"
    missing = sum(check.state == "missing" for check in checks)
    words = [f"{missing} optional thing{'s are' if missing != 1 else ' is'} missing"] if missing else []
    if broken:
        words.append(f"broken, and not needed by every run: {', '.join(check.name for check in broken)}")
    return "everything that a run needs works" + "".join(f"; {part}" for part in words)
