"""What `rlmesh runs` does between its flags and its exit code."""

from __future__ import annotations

from pathlib import Path

from .answering import answer_with, write_json, write_out
from .exits import Exit
from .run_lists import list_record, listed_runs


def run(out: Path, *, as_json: bool) -> Exit:
    """List the runs in a folder, and return the exit code; damaged ones are no reason to fail."""
    return answer_with(lambda: _answer(out, as_json=as_json))


def _answer(out: Path, *, as_json: bool) -> Exit:
    runs = listed_runs(out)
    if as_json:
        write_json(list_record(out, runs))
        return Exit.DONE
    from .stored_tables import show_runs  # noqa: PLC0415 - rich is not needed for --json

    write_out(lambda: show_runs(out, runs))
    return Exit.DONE
