"""A comparison as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .claims import claim, notes_on_comparison
from .comparing import Comparison
from .comparison_rows import metric_rows, words
from .distinctions import NO_DISTINCTION, distinction_lines
from .metric_judging import Flip, MetricComparison
from .run_lists import policy_name
from .run_reader import StoredRun
from .screens import empty_table, make_console, plain_text, print_line, print_titled
from .wording import counted

#: Seeds that are listed of the pairs that flipped.
_LISTED = 20
# Blanks between two columns.
_GAP = 3
_STYLES = {"not_worse": "bold green", "worse": "bold red", "inconclusive": "bold yellow"}


def show_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print a comparison to standard output."""
    console = console or make_console()
    print_titled(console, "comparison", _runs_table(comparison))
    for metrics in _fitting(comparison.metrics, comparison, console.width):
        print_titled(console, "metrics", _metrics_table(metrics, comparison))
    for metric in comparison.metrics:
        if metric.gained or metric.lost:
            print_titled(console, f"flips of {metric.metric}", _flips_table(metric))
    verdict = comparison.verdict
    console.print(Text.assemble(("verdict ", "bold"), (words(verdict), _STYLES[verdict])), soft_wrap=True)
    print_line(console, claim(comparison))


def _runs_table(comparison: Comparison) -> Table:
    table = empty_table([("", "left"), ("", "text")], header=False)
    table.add_row("BASE", plain_text(_run_text(comparison.base)))
    table.add_row("NEW", plain_text(_run_text(comparison.new)))
    same = " that did the same to the last step" if comparison.is_identical else ""
    table.add_row("pairs", Text(f"{counted(len(comparison.pairs.pairs), 'pair')}{same}"))
    for line in distinction_lines(comparison.distinctions):
        table.add_row("differ in", plain_text(line))
    if not (comparison.distinctions or comparison.allowed):
        table.add_row("differ in", NO_DISTINCTION)
    for difference in comparison.allowed:
        table.add_row(Text("allowed", style="yellow"), plain_text(f"{difference.field}: {difference.describe()}"))
    for note in notes_on_comparison(comparison):
        table.add_row(Text("note", style="yellow"), plain_text(note))
    return table


def _run_text(run: StoredRun) -> str:
    return f"{run.name} ({policy_name(run.record)}, {len(run.rows)} of {run.planned} episodes)"


def _fitting(
    metrics: Sequence[MetricComparison], comparison: Comparison, width: int
) -> list[list[MetricComparison]]:
    """Return the metrics in groups, each of which a table has room for; a group has at least one."""
    names = max(len(name) for name, _ in metric_rows(metrics[0], comparison))
    groups: list[list[MetricComparison]] = []
    room = 0
    for metric in metrics:
        need = max(len(metric.metric), *(len(value) for _, value in metric_rows(metric, comparison))) + _GAP
        if need > room:
            groups.append([])
            room = width - names - _GAP
        groups[-1].append(metric)
        room -= need
    return groups


def _metrics_table(metrics: Sequence[MetricComparison], comparison: Comparison) -> Table:
    table = empty_table([("", "left"), *((metric.metric, "right") for metric in metrics)])
    columns = [metric_rows(metric, comparison) for metric in metrics]
    for cells in zip(*columns, strict=True):
        values = [value for _, value in cells]
        if any(values):
            table.add_row(plain_text(cells[0][0]), *(plain_text(value or "-") for value in values))
    return table


def _flips_table(metric: MetricComparison) -> Table:
    table = empty_table([("", "left"), ("pairs", "right"), ("seeds", "text")])
    for name, flips in (("NEW alone succeeded", metric.gained), ("BASE alone succeeded", metric.lost)):
        table.add_row(Text(name), Text(str(len(flips or ()))), plain_text(seeds_text(flips or ())))
    return table


def seeds_text(flips: Sequence[Flip]) -> str:
    """Return the seeds of flips, the first of them if there are many; without a seed the index in BASE."""
    shown = ", ".join(
        str(flip.seed) if flip.seed is not None else f"index {flip.base_index}" for flip in flips[:_LISTED]
    )
    more = len(flips) - _LISTED
    return f"{shown} and {more} more" if more > 0 else shown or "none"
