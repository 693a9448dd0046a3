"""One episode on the screen: its row, and its rewards and actions step by step."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .documents import printable
from .episode_traces import STEPS, Component, EpisodeTrace
from .episodes import EpisodeResult
from .pictures import can_show_blocks, cells_of, means, standing_out, trace_rows
from .run_reader import StoredRun
from .screens import empty_table, make_console, plain_text, print_line, print_titled
from .wording import counted, number

#: Components of an action that are drawn; rows of letters for rewards; columns of a trace, and of its name.
_MOST, _HIGH, _WIDEST, _LONGEST_NAME = 8, 2, 100, 24


def print_episode(
    stored: StoredRun,
    row: EpisodeResult,
    trace: EpisodeTrace | None,
    notes: Sequence[str],
    console: Console | None = None,
) -> None:
    """Print an episode to standard output; without a trace, `notes` say why nothing is drawn."""
    console = console or make_console()
    print_titled(console, f"episode {row.index} of {stored.name}", _fact_table(stored, row))
    if trace is None:
        console.print(Text("nothing is drawn", style="bold"))
    elif not trace.rewards:
        console.print(Text("nothing is drawn: it has no finished step", style="bold"))
    else:
        came = (
            f"as the run kept them in {STEPS}/"
            if trace.source == "steps"
            else "played again: the trace is the same"
        )
        steps = counted(len(trace.rewards), "step")
        console.print(plain_text(f"rewards and actions of {steps}, {came}", "bold"), soft_wrap=True)
        _draw(console, trace)
    for note in notes:
        print_line(console, note)


def _fact_table(stored: StoredRun, row: EpisodeResult) -> Table:
    table = empty_table([("", "left"), ("", "text")], header=False)
    for name, text in _facts(row):
        table.add_row(plain_text(name), plain_text(text))
    for at, film in enumerate(sorted(stored.folder.glob(f"videos/{row.episode_id}.*"))):
        table.add_row("" if at else "videos", plain_text(f"videos/{film.name}"))
    return table


def _facts(row: EpisodeResult) -> list[tuple[str, str]]:
    facts = [
        ("id", row.episode_id),
        ("seed", "none of its own" if row.seed is None else str(row.seed)),
        ("length", f"{row.length:,}"),
        ("return", number(row.return_)),
        ("end", row.end),
        ("success", _success_text(row)),
    ]
    if row.error is not None:
        step = "" if row.error.step is None else f" at step {row.error.step}"
        facts.append(("error", f"{row.error.phase}{step}: {row.error.message}"))
        if row.error.place:
            facts.append(("place", row.error.place))
    if row.attempts > 1:
        facts.append(("attempts", f"{row.attempts}: it was played again because its environment failed"))
    facts += [
        ("policy", f"asked {row.policy_calls:,} times"),
        ("clipped", f"{row.clipped_actions:,} of {row.length:,} actions"),
    ]
    facts += [(name, "not reported" if value is None else number(value)) for name, value in row.metrics.items()]
    spent = row.seconds
    parts = f"env {_seconds(spent.env)}, policy {_seconds(spent.policy)}, adapter {_seconds(spent.adapter)}"
    facts += [
        ("time", f"{_seconds(spent.total)} on lane {row.lane}: {parts}"),
        ("hashes", f"start {row.start_hash or 'none'}, trace {row.trace_hash}"),
    ]
    return facts


def _success_text(row: EpisodeResult) -> str:
    if row.success is None:
        return "not finished" if row.is_error else "not reported"
    source = f" ({row.success_source})" if row.success_source else ""
    return f"{'yes' if row.success else 'no'}{source}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.3g} ms"


def _draw(console: Console, trace: EpisodeTrace) -> None:
    has_blocks = can_show_blocks(console.file)  # type: ignore[arg-type]
    drawn = trace.actions[:_MOST]
    sums = list(itertools.accumulate(trace.rewards))
    texts = [_range(values) for values in (trace.rewards, sums, *(one.values for one in drawn))]
    names = [_short(name) for name in ("reward", "sum", *(one.name for one in drawn))]
    wide = max(map(cell_len, names))
    room = console.width - wide - max(map(len, (*texts, *map(_share_text, drawn)))) - 6
    cells = min(_WIDEST, max(10, room), len(trace.rewards))

    def put(name: str, pictures: Sequence[str], text: str) -> None:
        for at, picture in enumerate(pictures):
            label, told = ("", "") if at else (name, text)
            label += " " * (wide - cell_len(label))
            console.print(plain_text(f" {label}  {picture:<{cells}}  {told}".rstrip()), soft_wrap=True)

    for name, values, shown, text in zip(
        names,
        (trace.rewards, sums),
        (standing_out(trace.rewards, cells), [group[-1] for group in cells_of(sums, cells)]),
        texts,
        strict=False,
    ):
        put(name, _rows(values, shown, _HIGH, has_blocks=has_blocks), text)
    is_marked = False
    for one, name, text in zip(drawn, names[2:], texts[2:], strict=True):
        put(name, _rows(one.values, means(one.values, cells), 1, has_blocks=has_blocks), text)
        marks = _marks(one, cells)
        if marks.strip():
            is_marked = True
            put("", [marks], _share_text(one))
    if len(trace.actions) > _MOST:
        console.print(plain_text(f" and {len(trace.actions) - _MOST:,} more numbers of the action: see --json"))
    for line in _legend(len(trace.rewards), cells, is_marked=is_marked):
        print_line(console, f" {line}")


def _rows(values: Sequence[float], cells: Sequence[float], height: int, *, has_blocks: bool) -> list[str]:
    ends = _ends(values)
    return trace_rows(cells, 1 if ends[0] == ends[1] else height, has_blocks=has_blocks, ends=ends)


def _ends(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)] or [0.0]
    return min(finite), max(finite)


def _legend(steps: int, cells: int, *, is_marked: bool) -> list[str]:
    lines = []
    if steps > cells:
        low, high = steps // cells, math.ceil(steps / cells)
        size = counted(low, "step") if low == high else f"{low} or {high} steps"
        lines.append(f"a cell is {size}: of rewards the one that stands out most, of actions the mean")
    if is_marked:
        lines.append("^ at the upper bound, v at the lower, x at both")
    return lines


def _short(name: str) -> str:
    name = printable(name).replace("\n", "\\n")
    return name if len(name) <= _LONGEST_NAME else f"..{name[2 - _LONGEST_NAME :]}"


def _range(values: Sequence[float]) -> str:
    if not any(map(math.isfinite, values)):
        return "not finite"
    least, most = _ends(values)
    return f"always {number(least)}" if least == most else f"{number(least)} to {number(most)}"


def _marks(one: Component, cells: int) -> str:
    pairs = zip(cells_of(one.at_low(), cells), cells_of(one.at_high(), cells), strict=True)
    return "".join(
        "x" if any(low) and any(high) else "v" if any(low) else "^" if any(high) else " " for low, high in pairs
    )


def _share_text(one: Component) -> str:
    count = sum(map(max, one.at_low(), one.at_high()))
    return f"at a bound {count / len(one.values) * 100:.0f} %"
