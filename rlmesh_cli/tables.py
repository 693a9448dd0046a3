"""A run as tables."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlmesh_adapters.errors import nearest

from .episodes import EpisodeResult
from .evaluation import Evaluation
from .gates import BUILT_IN, SUCCESS_RATE, GateVerdict
from .screens import advisory_table, empty_table, make_console, plain_text, print_line, print_titled
from .summary_rows import summary_rows
from .times import TimeLedger
from .wording import counted, error_text, level, number, signed

if TYPE_CHECKING:
    from .verifying import Verification

_FIRST, _WORST = 8, 4
# Columns are three blanks apart, and one where there is little room.
_GAP, _NARROW_GAP = 3, 1
# An error is folded into at least this many columns of the terminal.
_LEAST_TEXT = 10
#: Names that many give what has another one here.
_MEANT = {"return": "mean_return", "returns": "mean_return", "reward": "mean_return", "success": "success_rate"}
#: Columns of the episode table that can be spared on a narrow terminal, the first one first.
_SPARE = ("length", "end", "success")


def show_evaluation(
    evaluation: Evaluation, *, strict: bool, every: bool, quiet: bool, console: Console | None = None
) -> None:
    """Print a run to standard output.

    every: list all episodes instead of the first and the worst. quiet: only what went wrong and where the run is.
    """
    console = console or make_console()
    if not quiet:
        _show_tables(console, evaluation, every=every)
    for line in _last_lines(evaluation, strict=strict):
        print_line(console, line)


def _show_tables(console: Console, evaluation: Evaluation, *, every: bool) -> None:
    print_titled(console, "summary", _summary_table(evaluation))
    from .run_pictures import print_pictures  # noqa: PLC0415 - `--quiet` shows none

    print_pictures(console, evaluation)
    if evaluation.rows:
        title, table = _episode_table(evaluation, every=every, width=console.width)
        print_titled(console, title, table)
    if evaluation.verdicts:
        print_titled(console, "gates", _gate_table(evaluation))
    if evaluation.controls:
        print_titled(console, "controls", _control_table(evaluation))
    if evaluation.advisories:
        print_titled(console, "advisories", advisory_table(evaluation.advisories))
    if evaluation.seconds > 0:
        console.print(Text(time_line(evaluation)))


def _summary_table(evaluation: Evaluation) -> Table:
    table = empty_table([("", "text"), ("", "text")], header=False)
    for name, value in summary_rows(evaluation):
        table.add_row(plain_text(name), plain_text(value))
    return table


class _Column(NamedTuple):
    """One column of the episode table; kind as in `_table`."""

    name: str
    kind: str
    cells: list[str]

    @property
    def width(self) -> int:
        widest = max(map(len, (self.name, *self.cells)))
        return min(widest, _LEAST_TEXT) if self.kind == "text" else widest


def _episode_table(evaluation: Evaluation, *, every: bool, width: int) -> tuple[str, Table]:
    """Return title and table of the episodes; columns for which `width` is too narrow are named in the title."""
    rows = evaluation.rows
    chosen: Sequence[EpisodeResult] = rows
    title = f"episodes (all {len(rows)})"
    if not every and len(rows) > _FIRST + _WORST:
        first, others = rows[:_FIRST], rows[_FIRST:]
        rest = sorted(others, key=lambda row: (not row.is_error, math.isnan(row.return_), row.return_))
        chosen = [*first, *sorted(rest[:_WORST], key=lambda row: row.index)]
        title = f"episodes (first {_FIRST} and worst {_WORST} of the others; --all lists {len(rows)})"
    columns = _episode_columns(chosen)
    spared = []
    for name in _SPARE:
        if not _fits(columns, width, _GAP):
            spared.append(name)
            columns = [column for column in columns if column.name != name]
    if spared:
        title += f"; too narrow for {', '.join(spared)}"
    table = empty_table((column.name, column.kind) for column in columns)
    if not _fits(columns, width, _GAP):
        table.padding = (0, 0, 0, 0)
    if not _fits(columns, width, _NARROW_GAP):
        for column in table.columns:
            column.no_wrap = False
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(plain_text, cells))
    return title, table


def _fits(columns: Sequence[_Column], width: int, gap: int) -> bool:
    return sum(column.width + gap for column in columns) <= width + 1


def _episode_columns(rows: Sequence[EpisodeResult]) -> list[_Column]:
    columns = [
        _Column("index", "right", [str(row.index) for row in rows]),
        _Column("seed", "right", ["-" if row.seed is None else str(row.seed) for row in rows]),
        _Column("length", "right", [str(row.length) for row in rows]),
        _Column("return", "right", [number(row.return_) for row in rows]),
        _Column("end", "left", [row.end for row in rows]),
        _Column("success", "left", [{True: "yes", False: "no", None: "n/a"}[row.success] for row in rows]),
    ]
    if any(row.is_error for row in rows):
        columns.append(_Column("error", "text", [error_text(row) for row in rows]))
    return columns


def _gate_table(evaluation: Evaluation) -> Table:
    table = empty_table([("gate", "text"), ("value", "right"), ("", "left")])
    for verdict in evaluation.verdicts:
        table.add_row(plain_text(verdict.gate), Text(_held_text(verdict)), Text(_outcome(verdict)))
    return table


def _held_text(verdict: GateVerdict) -> str:
    """Return what a bar was held against, such as `0.82` or `lower end 0.71`."""
    if verdict.value is None:
        return "not measured"
    return number(verdict.value) if verdict.held == "value" else f"{verdict.held} end {number(verdict.value)}"


def _outcome(verdict: GateVerdict) -> str:
    return "passed" if verdict.passed else "OPEN" if verdict.is_open else "MISSED"


def _control_table(evaluation: Evaluation) -> Table:
    columns = [
        ("policy beside", "text"),
        ("", "left"),
        ("pairs", "right"),
        ("policy", "right"),
        ("control", "right"),
    ]
    table = empty_table([*columns, ("difference", "text")])
    for control in evaluation.controls:
        for name, found in (("success", control.success), ("return", control.returns)):
            if found is None:
                continue
            interval = found.interval
            bounds = ""
            if interval is not None:
                bounds = f" ({level(interval)} interval {signed(interval.low)} to {signed(interval.high)})"
            pairs = f"{found.pairs}, {found.left_out} left out" if found.left_out else str(found.pairs)
            cells = [pairs, number(found.policy), number(found.control)]
            table.add_row(control.name, name, *cells, f"{signed(found.difference)}{bounds}")
    return table


def time_line(evaluation: Evaluation) -> str:
    """Return where the time went, such as `time 1.20 s: env 80 %, policy 12 %, ...`, and what would help."""
    ledger = evaluation.times
    if ledger.total <= 0:
        return "no time was spent"
    parts = {
        "env": ledger.env_step,
        "reset": ledger.env_reset,
        "policy": ledger.policy,
        "adapter": ledger.adapter,
        "recording": ledger.recording,
        "harness": ledger.harness,
    }
    whole = ledger.total * ledger.workers
    shares = ", ".join(f"{name} {seconds / whole * 100:.0f} %" for name, seconds in parts.items())
    use = (
        f", lanes in use {ledger.lane_use * 100:.0f} %" if ledger.lane_use is not None and ledger.lanes > 1 else ""
    )
    of = f" of each of {ledger.workers} workers" if ledger.workers > 1 else ""
    what = "time" if evaluation.sittings == 1 else "time of the last sitting"
    rate = f"{ledger.steps:,} steps, {ledger.steps_per_second:,.0f} steps/s"
    text = f"{what} {ledger.total:.2f} s{of}: {shares}; {rate}{use}"
    text += _calls_text(ledger) if evaluation.is_chunked else ""
    return f"{text}\n{ledger.advice}" if ledger.advice else text


def _calls_text(ledger: TimeLedger) -> str:
    """Return how often the policy was asked, and what was not rendered, such as `; 0.13 calls a vector step`."""
    text = ""
    if ledger.calls_per_step is not None and ledger.rows_per_call is not None:
        text = f"; {ledger.calls_per_step:.2f} calls a vector step, {ledger.rows_per_call:.1f} rows a call"
    return text + (f", {ledger.frames_skipped:,} frames not rendered" if ledger.frames_skipped else "")


def _last_lines(evaluation: Evaluation, *, strict: bool) -> list[str]:
    lines = []
    for verdict in evaluation.verdicts:
        if not verdict.passed:
            lines.append(_miss_text(verdict, evaluation))
    cautions = [advisory.code for advisory in evaluation.cautions]
    if strict and cautions:
        lines.append(f"missed --strict: {counted(len(cautions), 'caution')}: {', '.join(dict.fromkeys(cautions))}")
    if evaluation.baseline is not None:
        claim = evaluation.baseline["claim"]
        lines.append(f"baseline {evaluation.baseline['base']['run']}: {claim['verdict'].replace('_', ' ')}")
        lines.append(claim["sentence"])
    if evaluation.verification is not None:
        lines.append(verification_text(evaluation.verification))
    if evaluation.status == "interrupted":
        lines.append(
            f"interrupted: {evaluation.summary.episodes} of {evaluation.summary.planned} episodes are saved"
        )
        if evaluation.seeded:
            lines.append(f"go on with: rlmesh eval --resume {shlex.quote(_short(evaluation.folder))}")
    elif evaluation.broken_off:
        lines.append(f"interrupted: {evaluation.broken_off} was broken off; all episodes are saved")
    elif evaluation.status == "stopped":
        errors, played = evaluation.summary.errors, evaluation.summary.episodes
        lines.append(f"stopped by --max-errors: {errors} of {played} episodes errored")
        lines.append(f"go on with: rlmesh eval --resume {shlex.quote(_short(evaluation.folder))} --max-errors N")
    elif evaluation.summary.errors:
        lines.append(f"{evaluation.summary.errors} of {evaluation.summary.episodes} episodes errored")
    recorded = [f"{count:,} in {name}/" for name, count in evaluation.recorded.items()]
    if recorded:
        lines.append(f"recorded {', '.join(recorded)}")
    lines.append(f"run {_short(evaluation.folder)}")
    return lines


def _miss_text(verdict: GateVerdict, evaluation: Evaluation) -> str:
    if verdict.value is None:
        if verdict.point is not None:
            point = _precise(verdict.point)
            return f"missed {verdict.gate}: {verdict.metric} is {point}, of which there is no interval"
        named = _MEANT.get(verdict.metric)
        meant = [named] if named else nearest(verdict.metric, BUILT_IN, limit=1)
        meant = [] if verdict.metric in BUILT_IN else meant
        hint = f"; did you mean {meant[0]}?" if meant else ""
        if verdict.metric == SUCCESS_RATE and evaluation.summary.errors < evaluation.summary.episodes:
            hint = "; name what counts with --success, such as 'return >= X' or a key of the infos"
        return f"missed {verdict.gate}: {verdict.metric} was not measured{hint}"
    if verdict.is_open:
        return f"open {verdict.gate}: {verdict.metric} is {_precise(verdict.value)}, which does not settle it"
    what = verdict.metric if verdict.held == "value" else f"the {verdict.held} end of {verdict.metric}"
    return f"missed {verdict.gate}: {what} is {_precise(verdict.value)}"


def _precise(value: float) -> str:
    """Return a number with so many digits that it does not look like the bar that it misses."""
    return number(value) if value.is_integer() else f"{value:.5g}"


def verification_text(verification: Verification) -> str:
    """Return what playing some episodes again on one lane came to."""
    text = f"lanes: {verification.episodes} episodes played again on one lane: {verification.verdict}"
    first = verification.first
    if first is None:
        return text
    leaf = first["leaf"] + "".join(f"[{place}]" for place in first["dimension"] or ())
    step = "" if first["step"] is None else f", step {first['step']}"
    value, beside = (number(value) if isinstance(value, float) else value for value in first["values"])
    (length, again), (paid, paid_again) = first["length"], first["return"]
    return (
        f"{text}; first in episode {first['index']} (seed {first['seed']}){step}: "
        f"{leaf} is {value}, alone {beside}; "
        f"length {length} and {again}, return {_return_text(paid)} and {_return_text(paid_again)}"
    )


def _return_text(paid: float | None) -> str:
    return "not finite" if paid is None else number(paid)


def _short(folder: Path) -> str:
    try:
        return str(folder.relative_to(Path.cwd()))
    except (ValueError, OSError):  # elsewhere, or nowhere any more
        return str(folder)
