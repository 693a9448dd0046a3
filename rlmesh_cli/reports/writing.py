"""Writing reports: a file that cannot be written is found before the run, and is written in one piece after it."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from rlmesh_adapters.errors import HarnessError

#: `whole`: another name first, then put in its place. `stream`: a pipe or a device. `output`: our standard output.
Way = Literal["whole", "append", "stream", "output"]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was found fit to be written.

    flag: what names it, for messages. path: absolute, links followed where it is a plain file.
    """

    flag: str
    path: Path
    way: Way

    @property
    def folder(self) -> Path:
        """Where it will be looked for: the folder of the file, of a pipe or a device the one we were called in."""
        real = self.path.resolve()
        return real.parent if self.way in ("whole", "append") or real.is_file() else Path.cwd()


def open_target(path: Path, flag: str, *, appends: bool = False) -> Target:
    """Look at the file that a flag names, without touching it.

    Raises HarnessError where it could not be written: no such folder, a folder itself, no permission.
    """
    path = path.absolute()
    try:
        found = _stat(path)
        if found is None or stat.S_ISREG(found.st_mode):
            if found is not None and _is_output(found):
                return Target(flag=flag, path=path, way="output")
            return _plain_file(path, flag, is_there=found is not None, appends=appends)
    except (OSError, RuntimeError) as error:  # RuntimeError: links that go round in a circle
        raise HarnessError(
            f"{path} cannot be written: {getattr(error, 'strerror', None) or error}",
            where=flag,
            mend="name a file in a folder that is there",
        ) from error
    if stat.S_ISDIR(found.st_mode):
        raise HarnessError(f"{path} is a folder", where=flag, mend=f"name a file in it, such as {path}/rlmesh.out")
    if not (stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode)) or not os.access(path, os.W_OK):
        raise HarnessError(f"{path} cannot be written to", where=flag, mend="name a file or a pipe of yours")
    return Target(flag=flag, path=path, way="output" if _is_output(found) else "stream")


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_output(found: os.stat_result) -> bool:
    """Tell whether a file is what our standard output goes to; a second handle would write over the first."""
    try:
        return sys.stdout is not None and os.path.samestat(found, os.fstat(1))
    except OSError:
        return False


def _plain_file(path: Path, flag: str, *, is_there: bool, appends: bool) -> Target:
    # What a link leads to is written, and the link stays.
    real = path.resolve()
    folder = real.parent
    if not folder.is_dir():
        raise HarnessError(
            f"there is no folder {folder} for {real.name}", where=flag, mend=f"make it first: mkdir -p {folder}"
        )
    if is_there and not os.access(real, os.W_OK):
        raise HarnessError(f"{real} is read-only", where=flag, mend="name another file, or let it be written")
    if not (is_there and appends) and not os.access(folder, os.W_OK | os.X_OK):
        raise HarnessError(
            f"the folder {folder} cannot be written to", where=flag, mend="name a file in a folder of yours"
        )
    return Target(flag=flag, path=real, way="append" if appends else "whole")


def refuse_shared_files(targets: list[Target]) -> None:
    """Raise HarnessError if two flags name one file: the second report would take the place of the first."""
    for place, target in enumerate(targets):
        for other in targets[:place]:
            if target.path == other.path or target.way == other.way == "output" or _is_same(target, other):
                raise HarnessError(
                    f"{target.path} is named by {other.flag} as well",
                    where=target.flag,
                    mend="give each report a file of its own",
                )


def refuse_inputs(targets: Iterable[Target], inputs: Mapping[str, Path]) -> None:
    """Raise HarnessError if a report would take the place of what it is made from.

    inputs: what a file is -> the file.
    """
    for target in targets:
        for what, path in inputs.items():
            with contextlib.suppress(OSError):
                if target.way != "append" and target.path.samefile(path):
                    raise HarnessError(
                        f"{target.path} is {what}, and a report would take its place",
                        where=target.flag,
                        mend="name another file",
                    )


def _is_same(one: Target, other: Target) -> bool:
    try:
        return one.path.samefile(other.path)
    except OSError:
        return False


def write_report(target: Target, data: bytes) -> None:
    """Write a report.

    Raises HarnessError if it cannot be written after all, BrokenPipeError if nobody reads our standard output.
    """
    try:
        _WAYS[target.way](target.path, data)
    except OSError as error:
        if target.way == "output" and isinstance(error, BrokenPipeError):
            raise
        raise HarnessError(
            f"{target.path} cannot be written: {error.strerror or error}",
            where=target.flag,
            mend="make room, or name another file; the run folder is not touched by this",
        ) from error


def make_folder(folder: Path, flag: str) -> None:
    """Make a folder for a report inside a run, if it is not there.

    Raises HarnessError if it cannot be made.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise HarnessError(
            f"{folder} cannot be made: {error.strerror}", where=flag, mend="name a file elsewhere"
        ) from error


def refuse_existing(paths: Iterable[Path], mend: str) -> None:
    """Raise HarnessError if one of some files is there already, whatever it is."""
    there = [path for path in paths if os.path.lexists(path)]
    if there:
        names = " and ".join(path.name for path in there)
        raise HarnessError(
            f"{names} {'is' if len(there) == 1 else 'are'} there already, and nothing is written over",
            where=str(there[0].parent.absolute()),
            mend=mend,
        )


def write_new_files(files: Mapping[Path, bytes], mend: str) -> None:
    """Write files that are not there yet, all of them or none; the folder of the first is made if it is missing.

    mend: what is told where one is there.

    Raises HarnessError if one is there, or cannot be written.
    """
    refuse_existing(files, mend)
    folder = next(iter(files)).parent
    made: list[Path] = []
    try:
        folder.mkdir(exist_ok=True)
        for path, data in files.items():
            with path.open("xb") as file:
                made.append(path)
                file.write(data)
    except BaseException as error:
        for path in made:
            with contextlib.suppress(OSError):
                path.unlink()
        if not isinstance(error, OSError):
            raise
        refuse_existing(files, mend)
        raise HarnessError(
            f"{error.filename or folder} cannot be written: {error.strerror or error}",
            where=str(folder.absolute()),
            mend="name a folder of yours with --dir",
        ) from error


def room_left(target: Target, most: int) -> int:
    """Return how many bytes may be written so that the file has no more than `most`."""
    found = _stat(target.path) if target.way == "append" else None
    return most if found is None else max(0, most - found.st_size)


def _write_whole(path: Path, data: bytes) -> None:
    partial = path.parent / f".rlmesh-{secrets.token_hex(4)}.partial"
    try:
        with partial.open("xb") as file:
            file.write(data)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def _write_output(path: Path, data: bytes) -> None:
    if sys.stdout is not None:
        sys.stdout.write(data.decode())
        sys.stdout.flush()


_WAYS = {"whole": _write_whole, "append": _append, "stream": _append, "output": _write_output}
