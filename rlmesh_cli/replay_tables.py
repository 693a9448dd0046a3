"""A replay on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .replaying import Replay, verdict_words
from .screens import empty_table, make_console, plain_text, print_line, print_titled

_USUAL = ("length", "return", "end", "success")


def show_replay(replay: Replay, video: Path | None = None, console: Console | None = None) -> None:
    """Print a replay to standard output."""
    console = console or make_console()
    row = replay.row
    print_titled(console, f"replay of {row.episode_id} (seed {row.seed}) of {replay.run}", _table(replay))
    first, *rest = verdict_words(replay)
    word, _, what = first.partition(":")
    style = "bold green" if replay.is_identical else "bold red"
    console.print(Text.assemble((word, style), plain_text(f":{what}")), soft_wrap=True)
    for line in rest:
        print_line(console, line)
    if video is not None:
        console.print(plain_text(f"video {video}"), soft_wrap=True)


def _table(replay: Replay) -> Table:
    table = empty_table([("", "left"), ("run", "text"), ("replay", "text"), ("", "left")])
    differing = {field.name: field for field in replay.fields}
    for name in _USUAL:
        attribute = "return_" if name == "return" else name
        values = getattr(replay.row, attribute), getattr(replay.again, attribute)
        _add(table, name, *values, is_same=name not in differing)
    for name, field in differing.items():
        if name not in _USUAL:
            _add(table, name, field.run, field.replay, is_same=False)
    return table


def _add(table: Table, name: str, one: Any, other: Any, *, is_same: bool) -> None:
    mark = Text("" if is_same else "differs", style="red")
    table.add_row(plain_text(name), plain_text(_shown(one)), plain_text(_shown(other)), mark)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
