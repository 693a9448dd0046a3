"""Markdown: a run on one page, in GitHub's dialect, for the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rlmesh_adapters.errors import shortened
from rlmesh_cli.documents import printable
from rlmesh_cli.evaluation import Evaluation, summary_record
from rlmesh_cli.exits import Exit
from rlmesh_cli.summary_rows import spread_text
from rlmesh_cli.tables import time_line

from .report import MEANINGS, Bar, Report, bars, ending, seeds_text

_MOST_EPISODES = 10
_MOST_LINES = 20
_LONGEST = 300
_CUT = "\n\n(The rest is left out: the page would be larger than is taken.)\n"
# In a code span these either cannot be written or would end a cell of the table.
_HTML = {ord(letter): f"&#{ord(letter)};" for letter in "&<>|`\\*_[]~!$"}


def summary_markdown(report: Report) -> str:
    """Return a page that begins with the verdict and ends with how to run it again."""
    return "\n\n".join(["\n".join(block) for block in _blocks(report)]) + "\n"


def fitted(text: str, most: int) -> str:
    """Return text of at most so many bytes of UTF-8, cut at the end of a line; empty if there is no room."""
    if len(text.encode()) <= most:
        return text
    room = most - len(_CUT.encode())
    kept = text.encode()[: max(0, room)].rpartition(b"\n")[0]
    return kept.decode() + _CUT if kept else ""


def _blocks(report: Report) -> Iterator[list[str]]:
    run, judged = report.evaluation, bars(report)
    yield [f"## rlmesh: {_verdict(report, judged)} (exit code {int(report.code)}: {MEANINGS[report.code]})"]
    if report.policy is not None and report.env is not None:
        yield [f"{code(report.policy)} on {code(report.env)}"]
    cause = ending(report)
    if cause:
        yield [code(line) for line in cause.splitlines() if line.strip()]
    if run is not None:
        yield list(_table(["", ""], [*_facts(run), *_bar_rows(judged), *_origin(report)]))
        yield from _doubts(run)
    yield from _errored(report)
    last = [f"Command: {code(report.command, most=2000)}"]
    if run is not None:
        last += ["", f"Run folder: {code(str(run.folder))}"]
    yield last


def _verdict(report: Report, judged: Sequence[Bar]) -> str:
    missed = sum(bar.state == "missed" for bar in judged)
    if report.code == Exit.DONE:
        if not judged:
            return "finished, no bar was stated"
        return "passed, the bar is met" if len(judged) == 1 else f"passed, all {len(judged)} bars are met"
    if report.code == Exit.MISSED:
        return f"failed, {missed} of {len(judged)} bars missed"
    if report.code == Exit.ERRORED:
        return f"failed, {len(report.errored)} of {len(report.rows)} episodes errored"
    return "interrupted" if report.code == Exit.INTERRUPTED else "no result"


def _facts(run: Evaluation) -> Iterator[tuple[str, str]]:
    summary = run.summary
    broken = f" ({run.in_flight} broken off)" if run.in_flight else ""
    yield "episodes", f"{summary.episodes} of {summary.planned}{broken}"
    yield "success", _success(summary_record(run)["success"], summary.success.why_unknown)
    yield "return", spread_text(summary.returns)
    yield "length", spread_text(summary.lengths)
    for name, spread in summary.metrics.items():
        yield code(name), spread_text(spread)
    yield "errors", str(summary.errors)
    if run.seconds > 0:
        yield "time", " ".join(time_line(run).removeprefix("time ").split())


def _success(success: dict[str, Any], why_unknown: str) -> str:
    """Return the success with its counts, and with its interval where the record has one."""
    notes = [f"{name} {success[name]}" for name in ("errored", "unknown") if success[name]]
    if success["rate"] is None:
        return "; ".join([why_unknown, *notes])
    known = success["successes"] + success["failures"] + success["errored"]
    text = f"{success['rate'] * 100:.1f} % ({success['successes']} of {known})"
    interval = success.get("interval")
    if interval:
        share = f"{interval['confidence'] * 100:g} %"
        text += f", {share} interval {interval['low'] * 100:.1f} to {interval['high'] * 100:.1f} %"
        text += f" ({code(str(interval['method']))})" if interval.get("method") else ""
    return "; ".join([text, *notes])


def _bar_rows(judged: Iterable[Bar]) -> Iterator[tuple[str, str]]:
    for bar in judged:
        state = "**missed**" if bar.state == "missed" else bar.state
        yield code(bar.name), f"{state}: {code(bar.text)}"


def _origin(report: Report) -> Iterator[tuple[str, str]]:
    seeds, versions = report.record.get("seeds"), report.record.get("versions", {})
    if seeds:
        yield "seeds", seeds_text(seeds)
    if versions:
        yield "versions", code(", ".join(f"{name} {version}" for name, version in versions.items()))


def _doubts(run: Evaluation) -> Iterator[list[str]]:
    cautions = run.cautions
    if cautions:
        lines = [f"- {code(caution.message)} ({caution.count:,})" for caution in cautions[:_MOST_LINES]]
        yield [f"**Cautions** ({len(cautions)})", "", *lines, *_more(len(cautions) - _MOST_LINES)]


def _errored(report: Report) -> Iterator[list[str]]:
    errored = report.errored
    if not errored:
        return
    rows = []
    for row in errored[:_MOST_EPISODES]:
        error = row.error
        if error is not None:
            seed, step = (("-" if value is None else str(value)) for value in (row.seed, error.step))
            place = code(error.place) if error.place else "-"
            rows.append((str(row.index), seed, error.phase, step, code(error.message), place))
    yield [
        f"**Errored episodes** ({len(errored)})",
        "",
        *_table(["episode", "seed", "phase", "step", "message", "place"], rows),
        *_more(len(errored) - _MOST_EPISODES),
    ]


def _more(count: int) -> list[str]:
    return ["", f"and {count} more"] if count > 0 else []


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"| {' | '.join('---' for _ in header)} |"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def code(text: str, *, most: int = _LONGEST) -> str:
    """Return text of users as code on one line: no markup, no mention, no link, and no end of a table's cell."""
    line = shortened(" ".join(printable(text).split()), most)
    if not line:
        return ""
    if any(letter in line for letter in "`|"):
        return f"<code>{line.translate(_HTML)}</code>"
    return f"`{line}`"
