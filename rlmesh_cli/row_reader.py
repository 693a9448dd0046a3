"""Reading the lines of `episodes.jsonl`, and holding them against the plan of their run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .episodes import Episode, EpisodeResult
from .records import restored

#: What mends a file of a run that is not as it was written.
RESTORE = "put the file back as the run wrote it, or run the evaluation again"
_DECODER = msgspec.json.Decoder(EpisodeResult)


class StoredRowError(HarnessError):
    """A line of `episodes.jsonl` cannot be what the run wrote."""

    def __init__(self, cause: str, file: Path, line: int) -> None:
        super().__init__(
            cause,
            where=f"{file}:{line}",
            mend=RESTORE,
        )


class Lines(msgspec.Struct, frozen=True):
    """What `episodes.jsonl` holds: rows with the line of each, from 1; is_torn: a last line was half written."""

    rows: list[tuple[int, EpisodeResult]]
    is_torn: bool


def read_lines(file: Path) -> Lines:
    """Read all rows in the order they were written; a last line without its end is left out.

    Raises StoredRowError for any other line that is no row; OSError if the file cannot be read.
    """
    lines = file.read_bytes().splitlines(keepends=True) if file.stat().st_size else []
    is_torn = bool(lines) and not lines[-1].endswith(b"\n")
    whole = lines[:-1] if is_torn else lines
    return Lines([(number, _row(line, file, number)) for number, line in enumerate(whole, 1)], is_torn)


def _row(line: bytes, file: Path, number: int) -> EpisodeResult:
    try:
        if b'"nonfinite"' not in line:
            return _DECODER.decode(line)
        return msgspec.convert(restored(msgspec.json.decode(line, type=dict[str, Any])), EpisodeResult)
    except msgspec.ValidationError as error:
        raise StoredRowError(f"line {number} is no row of an episode: {error}", file, number) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoredRowError(f"line {number} is damaged: {error}", file, number) from None


def check_rows(
    rows: Iterable[tuple[int, EpisodeResult]], file: Path, *, seeds: Sequence[int], is_seeded: bool
) -> list[EpisodeResult]:
    """Return rows in index order, each of them one that the plan asked for.

    seeds: one an episode of the plan. is_seeded: whether single episodes started from their own seed.
    Raises StoredRowError for a row that was edited: an index twice or beyond the plan, another seed or id.
    """
    known: dict[int, tuple[int, EpisodeResult]] = {}
    for line, row in rows:
        cause = _contradiction(row, seeds, is_seeded=is_seeded)
        if cause is None and row.index in known:
            cause = f"index {row.index} stands twice: in lines {known[row.index][0]} and {line}"
        if cause is not None:
            raise StoredRowError(cause, file, line)
        known[row.index] = (line, row)
    return [known[index][1] for index in sorted(known)]


def _contradiction(row: EpisodeResult, seeds: Sequence[int], *, is_seeded: bool) -> str | None:
    """Return what a row says that its run cannot have written, or None."""
    if not 0 <= row.index < len(seeds):
        return f"index {row.index} is outside the plan of {len(seeds)} episodes, 0 to {len(seeds) - 1}"
    planned = Episode(row.index, seeds[row.index])
    if row.episode_id != planned.id:
        return f"episode_id {row.episode_id!r} does not belong to index {row.index}, which is {planned.id!r}"
    if is_seeded and row.seed != planned.seed:
        return f"seed {row.seed} of index {row.index} is not the planned one, {planned.seed}"
    if row.is_error != (row.end == "error"):
        error = "an error" if row.is_error else "no error"
        return f"index {row.index} ended with {row.end!r}, but holds {error}"
    return None
