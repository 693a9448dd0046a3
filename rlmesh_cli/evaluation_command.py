"""What `rlmesh eval` does between its flags and its exit code."""

from __future__ import annotations

import gc
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rlmesh_adapters.errors import HarnessError, RouteError

from .answering import write_out
from .evaluate import evaluate
from .evaluation import Evaluation, RunInterruptedError, summary_record
from .exits import Exit
from .flags import RouteRequest, read_flags
from .guests import own_folder
from .progress import make_watcher
from .records import strict_json
from .route import read_route
from .signals import StopOnSignal
from .sources import split_source
from .streams import user_output_to_stderr
from .telling import say, say_bug, say_mistake

if TYPE_CHECKING:
    from .documents import Document
    from .resuming import Resumption
    from .schema import Flags, Route


class Request(RouteRequest, frozen=True, kw_only=True):
    """The flags of `rlmesh eval`, as typed; None is a flag that was not given."""

    strict: bool = False
    out: Path = Path("runs")
    show_all: bool = False
    as_json: bool = False
    quiet: bool = False
    trusts_entrypoints: bool = False
    verify_lanes: int | None = None
    is_probed: bool = True
    is_forced: bool = False
    resume: str | None = None
    extend: int | None = None
    junit: Path | None = None
    summary: Path | None = None
    csv: Path | None = None
    report: bool = False
    report_file: Path | None = None


class Reports(Protocol):
    """Files that are written when a run is over."""

    #: Whether standard output is one of them.
    owns_output: bool

    def refuse(self, inputs: Mapping[str, Path]) -> None:
        """Raise HarnessError if a file would take the place of an input; inputs: what a file is -> the file."""
        ...

    def finish(self, evaluation: Evaluation, code: Exit) -> HarnessError | None:
        """Write what came of a run; return what kept a file from being written."""
        ...

    def fail(self, code: Exit, cause: str, folder: Path | None = None) -> None:
        """Write why there is no result, if nothing was written yet; folder: what the run left."""
        ...


def run(request: Request) -> Exit:
    """Evaluate, show, and return the exit code; a user's mistake is one message, a fault of ours a traceback."""
    if not gc.isenabled():  # see rlmesh_cli.app.main
        gc.freeze()
        gc.enable()
    evaluation: Evaluation | None = None
    reports: Reports | None = None
    try:
        reports = _open_reports(request)
        if request.verify_lanes is not None and request.verify_lanes < 1:
            raise RouteError(f"{request.verify_lanes} episodes", where="--verify-lanes", mend="give 1 or more")
        with user_output_to_stderr(), StopOnSignal() as stopper, own_folder() as home:
            out = home / request.out
            flags = read_flags(request)
            resumption, base = _resumption(request, out, flags)
            route, digest = read_route(request.route, flags, base)
            if reports is not None:
                reports.refuse(_inputs(route, request.route))
            source = source_record(request.route, digest)
            watcher = make_watcher(is_silent=request.as_json or request.quiet)
            evaluation = evaluate(
                route,
                out=out,
                watcher=watcher,
                stopper=stopper,
                source=source,
                resumption=resumption,
                trusts_entrypoints=request.trusts_entrypoints,
                verified=request.verify_lanes or 0,
                is_probed=request.is_probed,
                is_forced=request.is_forced,
            )
        code = exit_code(evaluation, strict=request.strict)
        unwritten = reports.finish(evaluation, code) if reports is not None else None
        if reports is None or not reports.owns_output:
            _show(evaluation, code, request)
        if unwritten is not None:
            raise unwritten
    except HarnessError as error:
        return _without_result(reports, say_mistake(error), str(error), getattr(error, "folder", None))
    except (KeyboardInterrupt, RunInterruptedError) as error:
        known = error if isinstance(error, RunInterruptedError) else evaluation
        say(
            "rlmesh: interrupted before the first episode; nothing was written"
            if known is None
            else f"rlmesh: interrupted; what had finished is in {known.folder}\n"
            f"rlmesh: go on with: rlmesh eval --resume {shlex.quote(str(known.folder))}"
        )
        folder = known.folder if known is not None else None
        return _without_result(reports, Exit.INTERRUPTED, "interrupted", folder)
    except BrokenPipeError:
        raise
    except BaseException as error:  # user code that leaves must not end us without a result
        return _without_result(reports, say_bug(), f"a bug of rlmesh: {type(error).__name__}")
    return code


def _open_reports(request: Request) -> Reports | None:
    files = (request.junit, request.summary, request.csv, request.report_file)
    if not request.report and all(file is None for file in files):
        return None
    from .reports.reporting import Reporting  # noqa: PLC0415 - most runs want no such file

    return Reporting(
        junit=request.junit,
        summary=request.summary,
        csv=request.csv,
        report=request.report,
        report_file=request.report_file,
        strict=request.strict,
        as_json=request.as_json,
    )


def _inputs(route: Route, file: Path | None) -> dict[str, Path]:
    """Return what a run is made from, by what it is."""
    target, _ = split_source(route.policy.source)
    policy = {"the policy's file": Path(target)} if target.endswith(".py") else {}
    return policy if file is None else {**policy, "the route's file": file}


def _without_result(reports: Reports | None, code: Exit, cause: str, folder: Path | None = None) -> Exit:
    """Let the reports say why a run has no result, and return its exit code."""
    if reports is not None:
        reports.fail(code, cause, folder)
    return code


def _resumption(request: Request, out: Path, flags: Flags) -> tuple[Resumption | None, Document | None]:
    """Return which run is gone on with, and its route, for what is not said; put the longer plan into the flags.

    A command with `auto` says all of an evaluation, for it begins one where there is none to go on with.
    """
    if request.extend is not None and request.resume is None:
        raise RouteError("it is not said which run gets more episodes", where="--extend", mend="add --resume RUN")
    if request.resume is None:
        return None, None
    from .resuming import AUTO, Resumption, extended, recorded_route  # noqa: PLC0415 - most runs are new

    if request.resume == AUTO and request.extend is not None:
        raise RouteError("a finished run has to be named", where="--extend", mend="give --resume RUN, not auto")
    resumption = Resumption(request.resume, out)
    stored = resumption.stored
    if stored is None:
        return resumption, None
    if request.extend is not None:
        flags.values[("episodes",)] = extended(stored, request.extend, is_counted=request.episodes is not None)
        flags.names[("episodes",)] = "--extend"
    # What is given stands in place of what is recorded, and is then found to be something else, or not. For the
    # rest, defaults are those of a new run: with them this one would grow to as many episodes, and lose its gates.
    return resumption, recorded_route(stored, policy=request.policy, env=request.env)


def exit_code(evaluation: Evaluation, *, strict: bool) -> Exit:
    """Return what a run means to a script.

    A missed bar comes before one that is open, and that before errored episodes. Errored episodes that a passed
    gate on `errors` allows are no reason to fail, unless they ended the run.
    """
    if evaluation.status == "interrupted" or evaluation.broken_off:
        return Exit.INTERRUPTED
    differs = evaluation.verification is not None and evaluation.verification.verdict == "differs"
    is_missed = any(not verdict.passed and not verdict.is_open for verdict in evaluation.verdicts)
    against = evaluation.baseline_verdict
    if is_missed or differs or against == "worse" or (strict and evaluation.cautions):
        return Exit.MISSED
    if evaluation.status == "stopped":
        return Exit.ERRORED
    if against == "inconclusive" or any(verdict.is_open for verdict in evaluation.verdicts):
        return Exit.INCONCLUSIVE
    return Exit.ERRORED if evaluation.summary.errors and not evaluation.errors_are_allowed else Exit.DONE


def source_record(route_file: Path | None, digest: str | None) -> dict[str, Any]:
    """Return where the route came from, for the record."""
    return {
        "argv": sys.argv[1:],
        "route_file": str(route_file.absolute()) if route_file is not None else None,
        "route_file_sha256": digest,
    }


def _show(evaluation: Evaluation, code: Exit, request: Request) -> None:
    """Write the result to standard output.

    Raises BrokenPipeError if nobody reads it any more, HarnessError if it cannot be written otherwise.
    """
    mend = f"the run itself is complete, in {evaluation.folder}"
    write_out(lambda: _write(evaluation, code, request), mend=mend)


def _write(evaluation: Evaluation, code: Exit, request: Request) -> None:
    if request.as_json:
        record = {**summary_record(evaluation), "exit_code": int(code)}
        sys.stdout.write(strict_json(record).decode() + "\n")
        return
    from .tables import show_evaluation  # noqa: PLC0415 - rich is not needed for --json

    show_evaluation(evaluation, strict=request.strict, every=request.show_all, quiet=request.quiet)
