"""Run folders: the only place that writes them.

`run.json` says what was run, `episodes.jsonl` gets a line as soon as an episode ends, `summary.json` comes last.
"""

from __future__ import annotations

import datetime
import math
import os
import re
import secrets
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .episodes import EpisodeResult
from .records import strict_json

RUN_SCHEMA = "rlmesh.run.v1"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 48
_TRIES = 16


class RunStore:
    """One run's folder, made when the first policy call went well, so that a false start leaves nothing.

    parent: folder that holds runs. env, policy: names for the folder's own name.
    """

    def __init__(self, parent: Path, *, env: str, policy: str) -> None:
        self.path = _make_folder(parent, _safe(env), _safe(policy))
        self._encoder = msgspec.json.Encoder()
        # Unbuffered: a line is with the system as soon as its episode ends, whatever stops the process next.
        self._episodes = (self.path / "episodes.jsonl").open("ab", buffering=0)

    def append(self, *results: EpisodeResult) -> None:
        """Write a line for each episode, all in one system call as a rule."""
        # Of what a row holds only the return can be infinite; strict_json flags it, and is slow.
        if isfinite(sum([result.return_ for result in results])):
            data = self._encoder.encode_lines(results)
        else:
            data = b"".join([strict_json(result) + b"\n" for result in results])
        written = self._episodes.write(data)
        # A disk that is nearly full takes a part; the call after that says so.
        while written is not None and written < len(data):
            data = data[written:]
            written = self._episodes.write(data)

    def write(self, name: str, record: dict[str, Any]) -> None:
        """Write a JSON file in one piece: it is there whole, or as it was before."""
        text = msgspec.json.format(strict_json(record), indent=2)
        partial = self.path / f".{name}.partial"
        partial.write_bytes(text + b"\n")
        os.replace(partial, self.path / name)

    def close(self) -> None:
        """Close the open files; idempotent."""
        self._episodes.close()


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


def read_episodes(path: Path) -> list[EpisodeResult]:
    """Return the rows of a run folder's `episodes.jsonl`, in index order; a torn last line is left out."""
    rows = []
    decoder = msgspec.json.Decoder(EpisodeResult)
    for line in (path / "episodes.jsonl").read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            rows.append(decoder.decode(line) if b'"nonfinite"' not in line else _with_nan(line))
    return sorted(rows, key=lambda row: row.index)


def _with_nan(line: bytes) -> EpisodeResult:
    """Return a row whose return is flagged as not finite; the file does not say which infinity it was."""
    plain = msgspec.json.decode(line)
    if "return" in plain.get("nonfinite", ()):
        plain["return"] = math.nan
    return msgspec.convert(plain, EpisodeResult)
