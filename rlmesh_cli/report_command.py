"""What `rlmesh report` does between its flags and its exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from rlmesh_adapters.errors import HarnessError

from .answering import answer_with, write_out
from .compare_command import NoDivergenceError, divergence_text, find_divergence, refuse_edited
from .comparing import Judging, compare
from .documents import printable
from .exits import Exit
from .margins import parse_margins
from .pages.extra import REPORT, check_extra
from .protocols import check_allowed
from .reports.writing import Target, open_target, refuse_inputs, write_report
from .run_reader import StoredRun, find_run, read_run

#: Endings of the files that a run is made of.
_HELD = (".json", ".jsonl", ".mp4", ".parquet")


class ReportRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `rlmesh report`, as typed.

    runs: each as `show` takes a run. file: where the page is put, if not into the folder of the last run.
    The others are as in `compare`, for two runs.
    """

    runs: tuple[str, ...]
    out: Path = Path("runs")
    file: Path | None = None
    margins: tuple[str, ...] = ()
    alpha: float = 0.05
    metrics: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    wants_divergence: bool = False
    trusts_entrypoints: bool = False


def run(request: ReportRequest) -> Exit:
    """Write the page, say where it is, and return the exit code: what the runs came to is on the page.

    2 where a divergence cannot be looked for, after the page was written, which says why.
    """
    return answer_with(lambda: _answer(request))


def _answer(request: ReportRequest) -> Exit:
    check_extra("rlmesh report")
    judging = Judging(
        margins=parse_margins(request.margins),
        alpha=request.alpha,
        metrics=request.metrics,
        allowed=request.allowed,
    )
    check_allowed(judging.allowed)
    if request.wants_divergence and len(request.runs) != 2:
        raise HarnessError(
            f"{len(request.runs)} run{'s' if len(request.runs) > 1 else ''} cannot part from one another",
            where="--first-divergence",
            mend="name two runs, or drop the flag",
        )
    runs = [read_run(find_run(name, request.out)) for name in request.runs]
    target = _target(request, runs)
    data, hindrance = _page(runs, target.folder, request, judging)
    write_report(target, data)
    if target.way != "output":
        write_out(lambda: sys.stdout.write(printable(f"report {target.path}") + "\n"))
    if hindrance is not None:
        raise hindrance
    return Exit.DONE


def _target(request: ReportRequest, runs: list[StoredRun]) -> Target:
    if request.file is not None:
        target = open_target(request.file, "--file")
        _refuse_held_files(target.path, runs)
        for run in runs:
            refuse_inputs([target], _inputs_of(run))
        return target
    folder = runs[-1].folder
    try:
        return open_target(folder / REPORT, str(folder))
    except HarnessError as error:
        raise HarnessError(
            error.cause, where=error.where, mend="put the page elsewhere: --file report.html"
        ) from error


def _inputs_of(run: StoredRun) -> dict[str, Path]:
    policy, route = (run.record.get("policy") or {}).get("file"), run.record.get("route_file")
    found = {} if policy is None else {f"the policy's file of run `{run.name}`": Path(policy["path"])}
    return found if route is None else {**found, f"the route's file of run `{run.name}`": Path(route)}


def _refuse_held_files(path: Path, runs: list[StoredRun]) -> None:
    """Raise HarnessError for a file that a run was written as: the page would take its place."""
    for run in runs:
        if path.is_relative_to(run.folder.resolve()) and path.suffix in _HELD:
            raise HarnessError(
                f"{path} belongs to run `{run.name}`", where="--file", mend="name another file, such as page.html"
            )


def _page(
    runs: list[StoredRun], folder: Path, request: ReportRequest, judging: Judging
) -> tuple[bytes, NoDivergenceError | None]:
    """Return the page, and why no divergence could be looked for, if one was wanted."""
    from .pages.making import pair_html, run_html, several_html  # noqa: PLC0415 - an extra

    if len(runs) == 1:
        return run_html(runs[0], folder), None
    if len(runs) > 2:
        return several_html(runs, folder), None
    for stored in runs:
        refuse_edited(stored)
    comparison = compare(runs[0], runs[1], judging)
    divergence = None
    hindrance = None
    if request.wants_divergence:
        try:
            found = find_divergence(comparison, trusts_entrypoints=request.trusts_entrypoints)
            divergence = divergence_text(found, comparison).splitlines()
        except NoDivergenceError as error:
            hindrance = error
            divergence = str(error).splitlines()
    return pair_html(comparison, folder, divergence), hindrance
