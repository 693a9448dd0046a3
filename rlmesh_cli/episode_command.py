"""What `rlmesh show --episode` does between its flags and its exit code."""

from __future__ import annotations

from typing import Any

from rlmesh_adapters.errors import HarnessError

from .answering import write_json, write_out
from .encores import Encore, EncoreError, find_row
from .episode_traces import EpisodeTrace, NoTraceError, recorded_trace, replayed_trace
from .episodes import EpisodeResult
from .exits import Exit
from .run_reader import StoredRun
from .streams import user_output_to_stderr


def show_episode(stored: StoredRun, wanted: str, *, as_json: bool, trusts_entrypoints: bool = False) -> Exit:
    """Show one episode: what its row says, and its steps.

    wanted: index or id. The steps are those that the run kept; where it kept none, the episode is played again,
    and they are shown if it is the same.

    Raises HarnessError for an episode that is not there, and, after its row, for one that cannot be played again.
    """
    try:
        row = find_row(stored, wanted)
    except EncoreError as error:
        raise EncoreError(error.cause, where="--episode", mend=error.mend) from error
    notes: list[str] = []
    failure: HarnessError | None = None
    trace: EpisodeTrace | None = None
    try:
        trace = _trace_of(stored, row, notes, trusts_entrypoints=trusts_entrypoints)
    except NoTraceError as error:
        notes += [error.cause, error.mend]
    except HarnessError as error:
        failure = error
    if as_json:
        causes = [] if failure is None else [failure.cause]
        write_json(episode_record(stored, row, trace, notes + causes))
    else:
        from .episode_tables import print_episode  # noqa: PLC0415 - rich is not needed for --json

        write_out(lambda: print_episode(stored, row, trace, notes))
    if failure is not None:
        raise failure
    return Exit.DONE


def _trace_of(
    stored: StoredRun, row: EpisodeResult, notes: list[str], *, trusts_entrypoints: bool
) -> EpisodeTrace:
    try:
        trace = recorded_trace(stored, row)
    except NoTraceError as error:
        notes.append(f"{error.cause}; so the episode was played again")
        trace = None
    if trace is not None:
        return trace
    with user_output_to_stderr():
        return replayed_trace(Encore(stored, row, trusts_entrypoints=trusts_entrypoints))


def episode_record(
    stored: StoredRun, row: EpisodeResult, trace: EpisodeTrace | None, notes: list[str]
) -> dict[str, Any]:
    """Return what `--json` prints; without a trace, `notes` say why there is none."""
    return {
        "schema": "rlmesh.episode.v1",
        "run": stored.name,
        "index": row.index,
        "episode_id": row.episode_id,
        "row": row,
        "source": None if trace is None else trace.source,
        "notes": notes,
        "rewards": None if trace is None else trace.rewards,
        "actions": None if trace is None else trace.actions,
    }
