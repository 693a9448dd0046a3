"""Telling: outcomes as a table or as JSON, beside the machine they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from .measuring import Outcome, Skip

#: Distributions whose versions a figure depends on.
_LIBRARIES = ("numpy", "gymnasium", "opencv-python-headless", "pillow", "stable-baselines3", "rlmesh")


def machine() -> dict[str, Any]:
    """Return what the figures depend on: versions, the processor, how many cores."""
    found: dict[str, Any] = {"python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return {**found, "cpus": os.cpu_count(), "processor": platform.machine(), "system": platform.system()}


def as_json(outcomes: Sequence[Outcome], skips: Sequence[Skip]) -> dict[str, Any]:
    """Return one document of everything."""
    return {
        "machine": machine(),
        "outcomes": [{**outcome._asdict(), "is_met": outcome.is_met} for outcome in outcomes],
        "skipped": [skip._asdict() for skip in skips],
    }


def print_table(outcomes: Sequence[Outcome], skips: Sequence[Skip]) -> None:
    """Print a row an outcome, missed bars marked, and below it what was not measured and why."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(", ".join(f"{name} {value}" for name, value in machine().items() if value is not None))
    if outcomes:
        _print_figures(outcomes, console)
    for skip in skips:
        console.print(f"not measured: {skip.what}: {skip.reason}")
    if outcomes:
        missed = [outcome.name for outcome in outcomes if not outcome.is_met]
        verdict = f"bars missed: {', '.join(missed)}" if missed else "every bar is met"
        console.print(f"{len(outcomes)} figures, {min(outcome.rounds for outcome in outcomes)} rounds; {verdict}")


def _print_figures(outcomes: Sequence[Outcome], console: Console) -> None:
    table = Table(box=box.ASCII2, show_edge=False)
    table.add_column("what", no_wrap=True)
    for heading in ("ours", "theirs", "min", "median", "max", "bar", "aim"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for outcome in outcomes:
        table.add_row(outcome.what, *_cells(outcome))
    # A table that is cut at the edge of a terminal would lose its verdicts.
    wide = console.options.update(max_width=1000)
    Console(highlight=False, width=Measurement.get(console, wide, table).maximum).print(table)


def _cells(outcome: Outcome) -> list[str]:
    theirs = "" if outcome.theirs is None else _reading(outcome.theirs, outcome.unit)
    figures = [_figure(outcome, value) for value in (outcome.low, outcome.median, outcome.high)]
    bar = (">= " if outcome.kind == "rate" else "<= ") + _figure(outcome, outcome.bar)
    verdict = "" if outcome.is_met else "MISSED"
    return [_reading(outcome.ours, outcome.unit), theirs, *figures, bar, _figure(outcome, outcome.aim), verdict]


def _reading(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.2f} {unit}"


def _figure(outcome: Outcome, value: float) -> str:
    if outcome.kind == "extra":
        return f"{value:+.2f} {outcome.unit}"
    return f"x{value:.2f}" if outcome.kind in ("rate", "time") else f"{value:.2f} {outcome.unit}"
