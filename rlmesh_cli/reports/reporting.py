"""Reporting: the files that were asked for, written once when a run is over, however it ended."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.documents import printable
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.exits import Exit
from rlmesh_cli.pages.extra import REPORT, check_extra
from rlmesh_cli.run_reader import read_run
from rlmesh_cli.stored_evaluation import NoEpisodeError
from rlmesh_cli.telling import say, say_mistake

from .csv_rows import csv_text
from .junit import junit_xml
from .markdown import fitted, summary_markdown
from .report import Report, read_broken_run, read_record
from .writing import Target, open_target, refuse_inputs, refuse_shared_files, room_left, write_report

#: GitHub refuses a step's summary as a whole if it has more bytes.
_LARGEST_PAGE = 1 << 20
_GITHUB = "GITHUB_STEP_SUMMARY"


class Reporting:
    """The reports of one run.

    junit, summary, csv: their files; None is not wanted. strict: whether cautions count as a missed bar.
    report: whether a page is wanted; report_file: where, if not into the run's folder.
    as_json: whether standard output belongs to a JSON document.

    Raises HarnessError where a file could not be written, before anything is played.
    """

    def __init__(
        self,
        *,
        junit: Path | None,
        summary: Path | None,
        csv: Path | None,
        strict: bool,
        as_json: bool,
        report: bool = False,
        report_file: Path | None = None,
    ) -> None:
        self._strict = strict
        self._command = shlex.join(["rlmesh", *sys.argv[1:]])
        self._is_done = False
        self._writers: list[tuple[Target, Callable[[Target, Report], bytes]]] = []
        if junit is not None:
            self._writers.append((open_target(junit, "--junit"), _junit))
        if summary is not None:
            self._writers.append((_open_summary(summary), _summary))
        if csv is not None:
            self._writers.append((open_target(csv, "--csv"), _csv))
        self._has_page = report or report_file is not None
        self._page: Target | None = None
        if self._has_page:
            check_extra("--report" if report else "--report-file")
        if report_file is not None:
            self._page = open_target(report_file, "--report-file")
        targets = [target for target, _ in self._writers]
        if self._page is not None:
            targets.append(self._page)
        refuse_shared_files(targets)
        self._targets = targets
        flags = [target.flag for target in targets if target.way == "output"]
        if flags and as_json:
            raise HarnessError(
                "standard output belongs to the JSON document", where=flags[0], mend="name a file, or drop --json"
            )
        self.owns_output = bool(flags)

    def refuse(self, inputs: Mapping[str, Path]) -> None:
        """Raise HarnessError if a report would take the place of an input; inputs: what a file is -> the file."""
        try:
            refuse_inputs(self._targets, inputs)
        except HarnessError:
            self._is_done = True  # nor is it said there why there is no result
            raise

    def finish(self, evaluation: Evaluation, code: Exit) -> HarnessError | None:
        """Write the reports of a run that was played; return what kept one from being written."""
        unwritten = self._write(
            Report(
                code=code,
                evaluation=evaluation,
                strict=self._strict,
                command=self._command,
                record=read_record(evaluation.folder),
            )
        )
        return unwritten or self._write_page(evaluation.folder)

    def fail(self, code: Exit, cause: str, folder: Path | None = None) -> None:
        """Write the reports of a run that has no result, unless they were written; say what cannot be written.

        folder: what the run left, None if it left nothing.
        """
        if self._is_done:
            return
        evaluation, record = None, {}
        if folder is not None:
            record = read_record(folder)
            try:
                evaluation = read_broken_run(folder)
            except (HarnessError, KeyError) as error:
                say(f"rlmesh: {folder} cannot be read for the reports: {error!r}")
        unwritten = self._write(
            Report(
                code=code,
                evaluation=evaluation,
                strict=self._strict,
                command=self._command,
                cause=cause,
                record=record,
            )
        )
        if evaluation is not None:
            unwritten = unwritten or self._write_page(evaluation.folder)
        if unwritten is not None:
            say_mistake(unwritten)

    def _write_page(self, folder: Path) -> HarnessError | None:
        """Write the page of a run, if it is wanted, from what its folder holds; return what kept it from that."""
        if not self._has_page:
            return None
        from rlmesh_cli.pages.making import run_html  # noqa: PLC0415 - an extra, and slow to import

        try:
            target = self._page or open_target(folder / REPORT, "--report")
            write_report(target, run_html(read_run(folder), target.folder))
        except NoEpisodeError as error:
            say(f"rlmesh: no report: {printable(error.cause)}")
            return None
        except HarnessError as error:
            return error
        if target.way != "output":
            say(f"rlmesh: report {printable(str(target.path))}")
        return None

    def _write(self, report: Report) -> HarnessError | None:
        first: HarnessError | None = None
        for target, make in self._writers:
            try:
                write_report(target, make(target, report))
            except HarnessError as error:
                first = first or error
        self._is_done = True
        return first


def _open_summary(path: Path) -> Target:
    """Return the page's file; a step's summary, which may hold what earlier commands wrote, is added to."""
    if str(path) != os.environ.get(_GITHUB):
        return open_target(path, "--summary")
    try:
        return open_target(path, f"${_GITHUB}", appends=True)
    except HarnessError as error:
        mend = f"unset {_GITHUB}, or name a file with --summary"
        raise HarnessError(error.cause, where=error.where, mend=mend) from error


def _junit(target: Target, report: Report) -> bytes:
    return junit_xml(report)


def _csv(target: Target, report: Report) -> bytes:
    run = report.evaluation
    return csv_text(report.rows, tuple(run.summary.metrics) if run is not None else ()).encode()


def _summary(target: Target, report: Report) -> bytes:
    text = summary_markdown(report) + ("\n" if target.way == "append" else "")
    room = room_left(target, _LARGEST_PAGE)
    kept = fitted(text, room)
    if not kept:
        say(f"rlmesh: {target.path} is full ({_LARGEST_PAGE:,} bytes are taken); nothing was added")
    return kept.encode()
