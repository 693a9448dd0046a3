"""CSV rows: one line an episode, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rlmesh_cli.documents import printable
from rlmesh_cli.episodes import EpisodeResult

_FIELDS = (
    *("index", "seed", "episode_id", "length", "return", "end"),
    *("success", "success_final", "success_any", "success_at_reset"),
    *("start_hash", "trace_hash", "policy_calls", "clipped_actions"),
)
_ERROR_FIELDS = ("error_phase", "error_step", "error_message")
#: A cell that begins with one of these is a formula to a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Cell = str | int | float | bool | None


def csv_text(rows: Sequence[EpisodeResult], metrics: Sequence[str] = ()) -> str:
    """Return a header and a line for each episode; what is not known is an empty cell.

    metrics: info keys that have a column even if no episode reported them.
    Floats are written so that the same number is read. Nothing depends on how the run was arranged.
    """
    names = list(dict.fromkeys([*metrics, *(name for row in rows for name in row.metrics)]))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow([*_FIELDS, *(printable(f"metric.{name}") for name in names), *_ERROR_FIELDS])
    for row in rows:
        writer.writerow([_cell(value) for value in _values(row, names)])
    return stream.getvalue()


def _values(row: EpisodeResult, names: Sequence[str]) -> list[Cell]:
    error = row.error
    return [
        *(getattr(row, "return_" if field == "return" else field) for field in _FIELDS),
        *(row.metrics.get(name) for name in names),
        *((error.phase, error.step, _message(error.message)) if error is not None else (None, None, None)),
    ]


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, float) else str(value)


def _message(text: str) -> str:
    return f"'{printable(text)}" if text.startswith(_FORMULA) else printable(text)
