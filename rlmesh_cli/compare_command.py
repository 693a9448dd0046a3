"""What `rlmesh compare` does between its flags and its exit code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .answering import answer_with, write_json, write_out
from .claims import CODES, comparison_record
from .comparing import Comparison, Judging, compare
from .documents import printable
from .exits import Exit
from .margins import parse_margins
from .protocols import check_allowed
from .row_reader import RESTORE
from .run_reader import StoredRun, StoredRunError, find_run, read_run
from .stored_evaluation import COUNTING, contradiction_of, summary_of
from .streams import user_output_to_stderr
from .wording import counted


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `rlmesh compare`, as typed.

    base, new: as `show` takes a run. wants_divergence: whether an episode of both is played again.
    """

    base: str
    new: str
    margins: tuple[str, ...] = ()
    alpha: float = 0.05
    metrics: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    out: Path = Path("runs")
    as_json: bool = False
    wants_divergence: bool = False
    trusts_entrypoints: bool = False


class NoDivergenceError(HarnessError):
    """Two runs are judged, but no episode of theirs can be played again."""

    def __init__(self, error: HarnessError) -> None:
        cause = f"no divergence could be looked for: {error.cause}"
        super().__init__(cause, where=error.where, mend=error.mend)


def run(request: CompareRequest) -> Exit:
    """Compare, show, and return the exit code: 0 not worse, 1 worse, 3 inconclusive.

    2 where a divergence cannot be looked for, after the verdict was shown, which needs no episode played again.
    """
    return answer_with(lambda: _answer(request))


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
        return _answer_json(comparison, request)
    from .comparison_tables import show_comparison  # noqa: PLC0415 - rich is not needed for --json

    write_out(lambda: show_comparison(comparison))
    if request.wants_divergence:
        found = find_divergence(comparison, trusts_entrypoints=request.trusts_entrypoints)
        write_out(lambda: sys.stdout.write(printable(divergence_text(found, comparison)) + "\n"))
    return CODES[comparison.verdict]


def _answer_json(comparison: Comparison, request: CompareRequest) -> Exit:
    record = comparison_record(comparison)
    if not request.wants_divergence:
        write_json(record)
        return CODES[comparison.verdict]
    try:
        record["first_divergence"] = find_divergence(comparison, trusts_entrypoints=request.trusts_entrypoints)
    except NoDivergenceError as error:
        told = {"cause": error.cause, "where": error.where, "mend": error.mend}
        write_json({**record, "first_divergence": None, "first_divergence_error": told, "exit_code": Exit.USAGE})
        raise
    write_json(record)
    return CODES[comparison.verdict]


def find_divergence(comparison: Comparison, *, trusts_entrypoints: bool) -> dict[str, Any] | None:
    """Play an episode that flipped, or else one that went another way, and return where both runs part.

    None if all pairs are alike. Raises NoDivergenceError where it cannot be played.
    """
    indices = _parted(comparison)
    if indices is None:
        return None
    from .divergence import divergence_record, first_divergence  # noqa: PLC0415 - gymnasium starts with it

    with user_output_to_stderr():
        try:
            found = first_divergence(
                comparison.base, comparison.new, indices, trusts_entrypoints=trusts_entrypoints
            )
        except HarnessError as error:
            raise NoDivergenceError(error) from error
        return divergence_record(found)


def _parted(comparison: Comparison) -> tuple[int, int] | None:
    """Return the indices of a pair that was lost, or was gained, or went another way; None if all are alike."""
    for flips in (flips for metric in comparison.metrics for flips in (metric.lost, metric.gained)):
        if flips:
            return flips[0].base_index, flips[0].new_index
    others = (pair for pair in comparison.pairs.pairs if not pair.is_alike)
    pair = next(others, None)
    return None if pair is None else (pair.base.index, pair.new.index)


def divergence_text(found: dict[str, Any] | None, comparison: Comparison) -> str:
    """Return where both runs part, in words; what is beside it in lines of its own."""
    if found is None:
        errored = sum(pair.is_error for pair in comparison.pairs.pairs)
        pairs = "every finished pair" if errored else "every pair"
        text = f"first divergence: none; {pairs} took the same actions and was paid the same rewards"
        return f"{text}, and {counted(errored, 'pair')} errored alike" if errored else text
    return "\n".join([f"first divergence: {found['sentence']}", *found["notes"]])


def _read(name: str, parent: Path) -> StoredRun:
    run = read_run(find_run(name, parent))
    refuse_edited(run)
    return run


def refuse_edited(run: StoredRun) -> None:
    """Raise HarnessError for a run whose rows do not add up to what it said: what was edited proves nothing."""
    contradiction = contradiction_of(run, summary_of(run, COUNTING))
    if contradiction is not None:
        raise StoredRunError(contradiction, where=str(run.folder), mend=RESTORE)
