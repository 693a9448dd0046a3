"""Run folders: the only place that writes them.

`run.json` says what was run, `episodes.jsonl` gets a line as soon as an episode ends, `summary.json` comes last.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .episodes import EpisodeResult
from .records import strict_json

RUN_SCHEMA = "rlmesh.run.v1"
EPISODES = "episodes.jsonl"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 48
_TRIES = 16


class RunStore:
    """One run's folder, made when the first policy call went well, so that a false start leaves nothing.

    parent: folder that holds runs. env, policy: names for the folder's own name.
    """

    def __init__(self, parent: Path, *, env: str, policy: str) -> None:
        self._open(_make_folder(parent, _safe(env), _safe(policy)))

    @classmethod
    def reopen(cls, path: Path) -> RunStore:
        """Go on with a run that is there already; half a line at the end of its rows is cut off.

        Raises HarnessError if another process has it open, or it cannot be written to.
        """
        store = cls.__new__(cls)
        try:
            if not os.access(path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            store._open(path)
        except OSError as error:
            raise HarnessError(
                f"{path} cannot be written to: {error.strerror}",
                where=str(path),
                mend="see that the folder may be written to",
            ) from error
        file = store._episodes
        end = file.seek(0, os.SEEK_END)
        whole = (path / EPISODES).read_bytes().rfind(b"\n") + 1
        if whole < end:
            file.truncate(whole)
        return store

    def _open(self, path: Path) -> None:
        self.path = path
        self._encoder = msgspec.json.Encoder()
        # Unbuffered: a line is with the system as soon as its episode ends, whatever stops the process next.
        self._episodes = (path / EPISODES).open("ab", buffering=0)
        try:
            # The lock goes with the process, however it ends.
            fcntl.flock(self._episodes, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._episodes.close()
            raise HarnessError(
                f"another process is writing to {path}",
                where=str(path),
                mend="wait until it has ended, or stop it; two processes cannot share one run",
            ) from None
        except OSError:  # a file system without locks
            pass

    def append(self, *results: EpisodeResult) -> None:
        """Write a line for each episode, all in one system call as a rule.

        Raises HarnessError where the disk takes no more of them.
        """
        # Of what a row holds only these may be no finite number; strict_json flags them, and is slow.
        if isfinite(sum([result.return_ for result in results])) and all(map(_has_finite_metrics, results)):
            data = self._encoder.encode_lines(results)
        else:
            data = b"".join([strict_json(result) + b"\n" for result in results])
        try:
            written = self._episodes.write(data)
            # A disk that is nearly full takes a part; the call after that says so.
            while written is not None and written < len(data):
                data = data[written:]
                written = self._episodes.write(data)
        except OSError as error:
            raise self._cannot_write(EPISODES, error) from error

    def write(self, name: str, record: dict[str, Any]) -> None:
        """Write a JSON file in one piece: it is there whole, or as it was before.

        Raises HarnessError where it cannot be written.
        """
        text = msgspec.json.format(strict_json(record), indent=2)
        try:
            _write_whole(self.path / name, text + b"\n")
        except OSError as error:
            raise self._cannot_write(name, error) from error

    def _cannot_write(self, name: str, error: OSError) -> HarnessError:
        return HarnessError(
            f"{self.path / name} cannot be written: {error.strerror}",
            where=str(self.path),
            mend="see that there is room on the disk; rlmesh eval --resume goes on with the run",
        )

    def discard(self) -> None:
        """Remove a folder that holds no episode yet."""
        self.close()
        with contextlib.suppress(OSError):
            for path in self.path.iterdir():
                path.unlink()
            self.path.rmdir()

    def write_rows(self, name: str, rows: Sequence[EpisodeResult]) -> None:
        """Write rows of episodes that are not the run's own, such as those of a control."""
        _write_whole(self.path / name, b"".join([strict_json(row) + b"\n" for row in rows]))

    def write_file(self, name: str, data: bytes) -> None:
        """Write a file of the run in one piece; name: with the folder in the run's that it belongs into.

        Raises HarnessError where it cannot be written.
        """
        path = self.path / name
        try:
            path.parent.mkdir(exist_ok=True)
            _write_whole(path, data)
        except OSError as error:
            raise self._cannot_write(name, error) from error

    def files(self, pattern: str) -> list[str]:
        """Return the names of the run's files that fit a pattern, such as `videos/ep-000001.*`."""
        return sorted(str(path.relative_to(self.path)) for path in self.path.glob(pattern))

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.path / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the open files; idempotent."""
        self._episodes.close()


def is_open(path: Path) -> bool:
    """Tell whether a process is at a run; where the file system knows no locks, that may be."""
    try:
        with (path / EPISODES).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def state_of(record: Mapping[str, Any], folder: Path) -> str:
    """Return the status of a run as it is: `killed` where nobody is at one that is said to be running.

    Whoever was killed could not write it down.
    """
    status = str(record["status"])
    return "killed" if status == "running" and not is_open(folder) else status


def _has_finite_metrics(result: EpisodeResult) -> bool:
    metrics = result.metrics
    return not metrics or all(number is None or isfinite(number) for number in metrics.values())


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file in one piece: it is there whole, or as it was before."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_bytes(data)
        os.replace(partial, path)
    except BaseException:  # also of somebody who does not wait for the end
        partial.unlink(missing_ok=True)
        raise


def _make_folder(parent: Path, env: str, policy: str) -> Path:
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    for _ in range(_TRIES):
        path = parent / f"{stamp}-{env}-{policy}-{secrets.token_hex(2)}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            if parent.is_dir():
                continue
            raise HarnessError(
                f"{parent} is a file", where="--out", mend="name a folder for runs to be put into"
            ) from None
        except OSError as error:
            raise HarnessError(
                f"no run folder can be made in {parent}: {error.strerror}",
                where="--out",
                mend="name a folder that can be written to",
            ) from error
        return path
    raise HarnessError(f"no free name for a run in {parent}", where="--out", mend="try again")


def _safe(name: str) -> str:
    """Return a name that every file system takes: letters, digits, dot, dash and underscore."""
    return _UNSAFE.sub("-", name).strip("-.")[:_LONGEST] or "unnamed"
