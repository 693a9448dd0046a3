"""Stored runs as tables: one as after its evaluation, or all of a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .evaluation import Evaluation
from .run_lists import ListedRun, policy_with_params
from .run_reader import StoredRun
from .screens import empty_table, make_console, plain_text, print_titled
from .store import state_of
from .tables import show_evaluation
from .wording import number

# Blanks between two columns, with those at both ends of a row.
_GAP = 3
#: Columns of the list that can be spared on a narrow terminal, the first one first; a run's name tells them.
_SPARE = ("started", "policy", "env")


def show_stored(
    run: StoredRun, evaluation: Evaluation, notes: Sequence[str], *, every: bool, console: Console | None = None
) -> None:
    """Print a stored run to standard output: where it comes from, then what `eval` printed.

    every: list all episodes instead of the first and the worst.
    """
    console = console or make_console()
    print_titled(console, "run", _origin_table(run, notes))
    show_evaluation(evaluation, strict=False, every=every, quiet=False, console=console)


def _origin_table(run: StoredRun, notes: Sequence[str]) -> Table:
    record = run.record
    finished = f", ended {moment(record['finished_at'])}" if record.get("finished_at") else ""
    table = empty_table([("", "left"), ("", "text")], header=False)
    table.add_row("env", plain_text(record["route"]["env"]["id"]))
    table.add_row("policy", plain_text(policy_with_params(record)))
    table.add_row("started", plain_text(f"{moment(record['started_at'])}{finished}"))
    table.add_row("status", plain_text(state_of(record, run.folder)))
    for note in notes:
        table.add_row(Text("note", style="yellow"), plain_text(note))
    return table


def show_runs(parent: Path, runs: Sequence[ListedRun], console: Console | None = None) -> None:
    """Print the runs of a folder to standard output, and below them why some cannot be read."""
    console = console or make_console()
    if not runs:
        console.print(plain_text(f"no runs in {parent}"), soft_wrap=True)
        return
    print_titled(console, f"runs in {parent}", _runs_table(runs, width=console.width))
    damaged = [run for run in runs if run.damage is not None]
    if damaged:
        table = empty_table([("run", "text"), ("why it cannot be read", "text")])
        for run in damaged:
            table.add_row(plain_text(run.name), plain_text((run.damage or {})["cause"]))
        print_titled(console, "damaged", table)


def _runs_table(runs: Sequence[ListedRun], *, width: int) -> Table:
    columns = {
        "run": [run.name for run in runs],
        "env": [run.env or "-" for run in runs],
        "policy": [run.policy or "-" for run in runs],
        "status": ["damaged" if run.damage is not None else run.status or "-" for run in runs],
        "episodes": ["-" if run.planned is None else f"{run.episodes}/{run.planned}" for run in runs],
        "result": [result_text(run) for run in runs],
        "started": ["-" if run.started_at is None else moment(run.started_at) for run in runs],
    }
    for name in _SPARE:
        if not _fits(columns, width):
            del columns[name]
    right = ("episodes", "result")
    table = empty_table(
        (name, "right" if name in right else "text" if name == "run" else "left") for name in columns
    )
    if not _fits(columns, width):
        table.padding = (0, 0, 0, 0)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(plain_text, cells))
    return table


def _fits(columns: Mapping[str, Sequence[str]], width: int) -> bool:
    return sum(max(map(len, (title, *cells))) + _GAP for title, cells in columns.items()) <= width + 1


def result_text(run: ListedRun) -> str:
    """Return the success rate, or the mean return where success was not reported."""
    if run.success_rate is not None:
        return f"success {run.success_rate * 100:.1f} %"
    return "-" if run.mean_return is None else f"return {number(run.mean_return)}"


def moment(stamp: str) -> str:
    """Return a time for the screen, such as `2026-11-30 08:50:41 UTC`; another text is left as it is."""
    if stamp.endswith("+00:00"):
        return stamp.removesuffix("+00:00").replace("T", " ") + " UTC"
    return stamp
