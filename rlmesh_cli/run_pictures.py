"""A run's returns and successes as pictures, small enough to stand between its tables."""

from __future__ import annotations

import math

from rich.console import Console
from rich.text import Text

from .episodes import EpisodeResult
from .evaluation import Evaluation
from .pictures import MARKS, can_show_blocks, histogram, strip
from .wording import counted, number

_WORDS = {True: "success", False: "failure", "error": "error", None: "not reported"}
_STYLES = {"█": "green", "#": "green", "×": "red", "x": "red"}


def print_pictures(console: Console, evaluation: Evaluation) -> None:
    """Print how returns are spread, and which episodes succeeded, where there is something to be seen."""
    has_blocks = can_show_blocks(console.file)  # type: ignore[arg-type]
    for title, lines in (
        _return_lines(evaluation, console.width, has_blocks=has_blocks),
        _success_lines(evaluation, console.width, has_blocks=has_blocks),
    ):
        if title:
            console.print(Text(title, style="bold"), soft_wrap=True)
            for line in lines:
                console.print(line, soft_wrap=True)
            console.print()


def _return_lines(evaluation: Evaluation, width: int, *, has_blocks: bool) -> tuple[str, list[Text]]:
    finished = [row.return_ for row in evaluation.rows if not row.is_error]
    values = [value for value in finished if math.isfinite(value)]
    if len(values) < 2:
        return "", []
    title = f"returns of {counted(len(values), 'episode')}"
    beyond = (
        f", without {len(finished) - len(values):,} that are not finite" if len(values) < len(finished) else ""
    )
    if min(values) == max(values):
        return "returns", [Text(f" all {len(values):,} are {number(values[0])}{beyond}")]
    lines = histogram(values, width, has_blocks=has_blocks)
    return (title + beyond, [Text(line) for line in lines]) if lines else ("", [])


def _success_lines(evaluation: Evaluation, width: int, *, has_blocks: bool) -> tuple[str, list[Text]]:
    """Return title and rows of the strip; none where success was never reported, or all episodes are alike."""
    rows = evaluation.rows
    outcomes: list[bool | str | None] = ["error" if row.is_error else row.success for row in rows]
    if len(set(outcomes)) < 2 or not {True, False} & set(outcomes):
        return "", []
    at = 0 if has_blocks else 1
    names = [_name(rows[0]), _name(rows[-1])]
    fold, cells = strip(outcomes, width - max(map(len, names)) - 4, has_blocks=has_blocks)
    if fold == 1:
        legend = ", ".join(f"{MARKS[key][at]} {word}" for key, word in _WORDS.items() if key in outcomes)
        title = f"success by seed: {legend}"
    else:
        some = "▁ to ▇ some" if has_blocks else "1 to 9 tenths"
        marks = f"{MARKS[False][at]} none, {some}, {MARKS[True][at]} all"
        title = f"success by seed, {fold:,} episodes a cell: {marks}"
    firsts = [0]
    for line in cells[:-1]:
        firsts.append(firsts[-1] + len(line) * fold)
    wide = max(len(_name(rows[first])) for first in firsts)
    return title, [
        _coloured(f" {_name(rows[first]):>{wide}}  ", line) for first, line in zip(firsts, cells, strict=True)
    ]


def _name(row: EpisodeResult) -> str:
    return f"episode {row.index}" if row.seed is None else f"seed {row.seed}"


def _coloured(name: str, cells: str) -> Text:
    text = Text(name)
    for cell in cells:
        text.append(cell, _STYLES.get(cell))
    return text
