"""Reading runs back: one run folder as it is on disk, and which folder a name means."""

from __future__ import annotations

import datetime
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError, nearest

from .episodes import EpisodeResult
from .records import restored
from .row_reader import RESTORE, check_rows, read_lines
from .run_forms import RecordForm, SummaryForm
from .store import EPISODES, RUN_SCHEMA

RECORD, SUMMARY, SUMMARY_SCHEMA = "run.json", "summary.json", "rlmesh.summary.v1"
LATEST = "latest"
_STAMP = "%Y%m%dT%H%M%SZ"
_STAMPED = re.compile(r"\d{8}T\d{6}Z")
_NEAR = 5
# Episodes of a sitting below 0 are the doing of no editor.
_UNCOUNTED = "write null there: an rlmesh of before miscounted where a row was lost"


class StoredRunError(HarnessError):
    """A folder cannot be read as a run."""


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run as its folder tells it.

    record: `run.json`. rows: finished episodes that count, in index order.
    summary: `summary.json`, None if the run did not come to its end.
    is_torn: a last line of `episodes.jsonl` was half written and is left out.
    beyond: rows of episodes that were played but do not count, for the run was stopped before them.
    """

    folder: Path
    record: dict[str, Any]
    rows: list[EpisodeResult]
    summary: dict[str, Any] | None = None
    is_torn: bool = False
    beyond: list[EpisodeResult] = []

    @property
    def discarded(self) -> int:
        """How many episodes were played and do not count."""
        return len(self.beyond)

    @property
    def every_row(self) -> list[EpisodeResult]:
        """All rows, in index order."""
        return sorted([*self.rows, *self.beyond], key=lambda row: row.index)

    @property
    def name(self) -> str:
        """Name of the folder."""
        name = self.folder.name
        return name if name not in ("", "..") else self.folder.resolve().name

    @property
    def planned(self) -> int:
        """Episodes that were asked for."""
        return len(self.record["seeds"])

    @property
    def is_seeded(self) -> bool:
        """Whether single episodes started from their own seed."""
        return bool(self.record.get("seeded", True))


def read_run(path: Path) -> StoredRun:
    """Read a run folder.

    Raises HarnessError, with cause, place and mend, for what is no run, is damaged, or was edited.
    """
    if not os.path.isdir(path):
        what = "is a file" if os.path.lexists(path) else "is not there"
        raise StoredRunError(
            f"{path} {what}", where=str(path), mend="name the folder of a run; `rlmesh runs` lists them"
        )
    record = _read_json(path / RECORD, RecordForm, RUN_SCHEMA)
    if record is None:
        raise StoredRunError(
            f"{path} is not a run: it holds no {RECORD}",
            where=str(path),
            mend="name a folder that `rlmesh eval` made; `rlmesh runs` lists them",
        )
    try:
        lines = read_lines(path / EPISODES)
    except OSError as error:
        raise _unreadable(path / EPISODES, error) from error
    seeds, is_seeded = record["seeds"], record.get("seeded", True)
    rows = check_rows(lines.rows, path / EPISODES, seeds=seeds, is_seeded=is_seeded)
    stopped_at = record.get("stopped_at")
    counted = rows if stopped_at is None else [row for row in rows if row.index < stopped_at]
    return StoredRun(
        folder=path,
        record=record,
        rows=counted,
        summary=_read_json(path / SUMMARY, SummaryForm, SUMMARY_SCHEMA),
        is_torn=lines.is_torn,
        beyond=[] if stopped_at is None else [row for row in rows if row.index >= stopped_at],
    )


def _read_json(file: Path, form: type[msgspec.Struct], schema: str) -> dict[str, Any] | None:
    """Return a JSON object whose fields have the types that readers rely on; None if there is no such file."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(file, error) from error
    try:
        plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoredRunError(f"{file.name} is damaged: {error}", where=str(file), mend=RESTORE) from None
    if not isinstance(plain, dict):
        raise StoredRunError(f"{file.name} holds no JSON object", where=str(file), mend=RESTORE)
    if plain.get("schema") != schema:
        raise _other_schema(file, plain.get("schema"), schema)
    try:
        plain = restored(plain)
        msgspec.convert(plain, form)
    except msgspec.ValidationError as error:
        is_below_0 = str(error).startswith("Expected `int` >= 0") and str(error).endswith(".played`")
        mend = _UNCOUNTED if is_below_0 else RESTORE
        raise StoredRunError(
            f"{file.name} is not as a run writes it: {error}", where=str(file), mend=mend
        ) from None
    return plain


def _unreadable(file: Path, error: OSError) -> StoredRunError:
    return StoredRunError(
        f"{file.name} cannot be read: {error.strerror}",
        where=str(file),
        mend="see that it is there and may be read",
    )


def _other_schema(file: Path, found: object, known: str) -> StoredRunError:
    stem, _, version = known.rpartition(".v")
    match = re.fullmatch(re.escape(stem) + r"\.v(\d+)", found) if isinstance(found, str) else None
    if match is not None and int(match[1]) > int(version):
        cause = f"{file.name} was written by a newer rlmesh: its schema is {found}, this one reads {known}"
        return StoredRunError(cause, where=str(file), mend="update rlmesh")
    cause = f"{file.name} has no `schema`" if found is None else f"the schema of {file.name} is {found!r}"
    return StoredRunError(
        f"{cause}, where {known} is meant", where=str(file), mend="name a folder that `rlmesh eval` made"
    )


def find_in(name: str, folders: Sequence[Path]) -> Path:
    """Return the run that is meant, where several folders may hold it; a part of a name is looked for in the last.

    Raises StoredRunError as `find_run` does.
    """
    return _find(name, (*folders, Path()), folders[-1])


def list_runs(parent: Path) -> list[Path]:
    """Return the folders in `parent` that look like runs, damaged ones too, newest first.

    Raises StoredRunError if there is no such folder.
    """
    try:
        entries = [Path(entry.path) for entry in os.scandir(parent) if entry.is_dir()]
    except OSError as error:
        raise StoredRunError(
            f"no runs can be listed in {parent}: {error.strerror}",
            where=str(parent),
            mend="name the folder that runs were put into with --out; `rlmesh eval` makes `runs`",
        ) from error
    found = [path for path in entries if any(os.path.lexists(path / name) for name in (RECORD, EPISODES))]
    return sorted(found, key=_age, reverse=True)


def _age(path: Path) -> tuple[str, int, str]:
    """Return what sorts folders by time: the stamp in the name, or when it last changed."""
    changed = path.stat().st_mtime_ns
    stamp = _STAMPED.match(path.name)
    moment = datetime.datetime.fromtimestamp(changed / 1e9, datetime.UTC)
    return stamp[0] if stamp else moment.strftime(_STAMP), changed, path.name


def find_run(name: str, parent: Path) -> Path:
    """Return the run folder that a name means.

    name: a path, the name of a folder in `parent`, how one of them alone begins or ends, or `latest`; a folder
        that holds one run; or a folder of runs with one of these below it, such as `base/latest`.
    Raises StoredRunError that names what is near.
    """
    return _find(name, (Path(), parent), parent)


def _find(name: str, places: Sequence[Path], parent: Path) -> Path:
    """Return the run that a name means; places: folders that paths are seen from, parent: that of other names."""
    direct = [path for path in (place / name for place in places) if name and os.path.isdir(path)]
    for path in direct:
        if os.path.lexists(path / RECORD):
            return path
    for path in direct:
        if held := list_runs(path):
            return _only(path, held)
    above, last = os.path.split(name.rstrip(os.sep))
    if above and not direct:
        for folder in (place / above for place in places):
            if os.path.isdir(folder):
                return _named(last, folder, list_runs(folder))
    runs = list_runs(parent) if os.path.isdir(parent) else []
    if direct and not _matching(name, runs):
        return direct[0]  # read_run says what it lacks
    return _named(name, parent, runs)


def _only(folder: Path, runs: list[Path]) -> Path:
    """Return the one run of a folder."""
    if len(runs) == 1:
        return runs[0]
    shown = ", ".join(map(str, runs[:_NEAR]))
    raise StoredRunError(
        f"{folder} holds {len(runs)} runs, and one is meant",
        where=str(folder),
        mend=f"name one: {shown}{_more(runs)}; {folder / LATEST} is the newest",
    )


def _matching(name: str, runs: list[Path]) -> list[Path]:
    """Return the runs that begin or end so, or the newest."""
    if name == LATEST:
        return runs[:1]
    return [path for path in runs if name and (path.name.startswith(name) or path.name.endswith(name))]


def _named(name: str, folder: Path, runs: list[Path]) -> Path:
    """Return the one run of a folder that a name means."""
    matching = _matching(name, runs)
    if len(matching) == 1:
        return matching[0]
    raise _no_run(name, folder, runs, matching)


def _more(paths: list[Path]) -> str:
    """Return how many are not shown, such as ` and 3 more`."""
    return f" and {len(paths) - _NEAR} more" if len(paths) > _NEAR else ""


def _no_run(name: str, parent: Path, runs: list[Path], matching: list[Path]) -> StoredRunError:
    if not runs:
        return StoredRunError(
            f"there is no run `{name}`, nor any other in {parent}",
            where=str(parent),
            mend="name the folder of a run, or with --out the folder that runs were put into",
        )
    if matching:
        shown = ", ".join(path.name for path in matching[:_NEAR])
        return StoredRunError(
            f"`{name}` means {len(matching)} runs: {shown}{_more(matching)}",
            where=str(parent),
            mend="write more of the name",
        )
    names = [path.name for path in runs]
    near = [known for known in names if name and name.lower() in known.lower()] or nearest(name, names)
    listed = ", ".join((near or names)[:_NEAR])
    return StoredRunError(
        f"there is no run `{name}`; {'near to it are' if near else 'the newest are'} {listed}",
        where=str(parent),
        mend=f"write the name as `rlmesh runs --out {shlex.quote(str(parent))}` lists it, or `{LATEST}` in its "
        "place for the newest",
    )
