"""What `rlmesh doctor` does between its flags and its exit code."""

from __future__ import annotations

from pathlib import Path

from .answering import answer_with, write_json, write_out
from .doctor.examination import examination_record, examine, is_sound
from .exits import Exit


def run(out: Path, *, as_json: bool) -> Exit:
    """Look at everything, say what was found, and return the exit code: 2 if nothing could be run here."""
    return answer_with(lambda: _answer(out, as_json=as_json))


def _answer(out: Path, *, as_json: bool) -> Exit:
    checks = examine(out)
    if as_json:
        write_json(examination_record(checks))
    else:
        from .doctor_tables import show_examination  # noqa: PLC0415 - rich is not needed for --json

        write_out(lambda: show_examination(checks))
    return Exit.DONE if is_sound(checks) else Exit.USAGE
