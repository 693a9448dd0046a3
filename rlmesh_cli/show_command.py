"""What `rlmesh show` does between its flags and its exit code."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rlmesh_adapters.errors import RouteError

from .answering import answer_with, write_json, write_out
from .exits import Exit
from .run_reader import find_run, read_run
from .stored_evaluation import evaluation_of, notes_on, stored_record


class ShowRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of `rlmesh show`, as typed.

    run: a path, a name in `out`, how it begins or ends, or `latest`. episode: index or id of the one to be shown.
    """

    run: str
    out: Path = Path("runs")
    show_all: bool = False
    as_json: bool = False
    episode: str | None = None
    trusts_entrypoints: bool = False


def run(request: ShowRequest) -> Exit:
    """Show a run, and return the exit code: a run that missed its bars is shown as well as any."""
    return answer_with(lambda: _answer(request))


def _answer(request: ShowRequest) -> Exit:
    if request.episode is not None and request.show_all:
        raise RouteError(
            "--all lists every episode, and --episode shows one", where="--all", mend="drop one of the two"
        )
    stored = read_run(find_run(request.run, request.out))
    if request.episode is not None:
        from .episode_command import show_episode  # noqa: PLC0415 - gymnasium starts with it

        return show_episode(
            stored, request.episode, as_json=request.as_json, trusts_entrypoints=request.trusts_entrypoints
        )
    evaluation = evaluation_of(stored)
    notes = notes_on(stored, evaluation.summary)
    if request.as_json:
        write_json(stored_record(stored, evaluation, notes))
        return Exit.DONE
    from .stored_tables import show_stored  # noqa: PLC0415 - rich is not needed for --json

    write_out(lambda: show_stored(stored, evaluation, notes, every=request.show_all))
    return Exit.DONE
