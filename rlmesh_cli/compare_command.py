"""What `rlmesh compare` does between its flags and its exit code."""

from __future__ import annotations

from pathlib import Path

import msgspec

from .claims import CODES, comparison_record
from .comparing import Judging, compare
from .exits import Exit
from .margins import parse_margins
from .protocols import check_allowed
from .reading_command import run_reading, write_json, write_out
from .row_reader import RESTORE
from .run_reader import StoredRun, StoredRunError, find_run, read_run
from .stored_evaluation import COUNTING, contradiction_of, summary_of


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `rlmesh compare`, as typed. base, new: as `show` takes a run."""

    base: str
    new: str
    margins: tuple[str, ...] = ()
    alpha: float = 0.05
    metrics: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    out: Path = Path("runs")
    as_json: bool = False


def run(request: CompareRequest) -> Exit:
    """Compare, show, and return the exit code: 0 not worse, 1 worse, 3 inconclusive."""
    return run_reading(lambda: _answer(request))


def _answer(request: CompareRequest) -> Exit:
    judging = Judging(
        margins=parse_margins(request.margins),
        alpha=request.alpha,
        metrics=request.metrics,
        allowed=request.allowed,
    )
    check_allowed(judging.allowed)
    base, new = (_read(name, request.out) for name in (request.base, request.new))
    comparison = compare(base, new, judging)
    if request.as_json:
        write_json(comparison_record(comparison))
        return CODES[comparison.verdict]
    from .comparison_tables import show_comparison  # noqa: PLC0415 - rich is not needed for --json

    write_out(lambda: show_comparison(comparison))
    return CODES[comparison.verdict]


def _read(name: str, parent: Path) -> StoredRun:
    """Read a run whose rows add up to what it said when it was over.

    Raises HarnessError if they do not: what was edited proves nothing.
    """
    run = read_run(find_run(name, parent))
    contradiction = contradiction_of(run, summary_of(run, COUNTING))
    if contradiction is not None:
        raise StoredRunError(contradiction, where=str(run.folder), mend=RESTORE)
    return run
