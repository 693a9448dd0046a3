"""What `rlmesh doctor` does between its flags and its exit code."""

from __future__ import annotations

import sys
from pathlib import Path

from .answering import answer_with, write_json, write_out
from .doctor.checks import Check
from .doctor.examination import examination_record, examine, is_sound
from .documents import printable
from .exits import Exit


def run(out: Path, *, as_json: bool) -> Exit:
    """Look at everything, say what was found, and return the exit code: 2 if nothing could be run here."""
    return answer_with(lambda: _answer(out, as_json=as_json))


def _answer(out: Path, *, as_json: bool) -> Exit:
    checks = examine(out)
    if as_json:
        write_json(examination_record(checks))
    else:
        write_out(lambda: _show(checks))
    return Exit.DONE if is_sound(checks) else Exit.USAGE


def _show(checks: list[Check]) -> None:
    try:
        from .doctor_tables import show_examination  # noqa: PLC0415 - rich is not needed for --json
    except Exception:  # the doctor must speak where rich is what is broken
        for check in checks:
            mend = f" -> {check.mend}" if check.mend else ""
            sys.stdout.write(
                printable(f"{check.state:7} {check.name}: {check.found}{mend}").replace("\n", " ") + "\n"
            )
        return
    show_examination(checks)
