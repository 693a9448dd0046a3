"""Running the command, in this process or as one of its own, and reading what it left on disk."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rlmesh_cli.evaluation_command import Request, run
from rlmesh_cli.exits import Exit

TESTS = Path(__file__).resolve().parent
POLICIES = TESTS / "toy_policies"

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What a run left.

    code: exit code. out: the folder given as --out. folder: the run's own inside it, None if there is none.
    rows: of episodes.jsonl, by index. written: their indices in the order of the file.
    """

    code: int
    out: Path
    folder: Path | None
    record: dict[str, Any]
    rows: list[dict[str, Any]]
    written: list[int]
    summary: dict[str, Any]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]

    def advisory(self, code: str) -> dict[str, Any] | None:
        return next((known for known in self.record["advisories"] if known["code"] == code), None)


def policy(name: str) -> str:
    """Return the path of a toy policy; `name` may go on with `:Class`."""
    stem, colon, attribute = name.partition(":")
    return f"{POLICIES / stem}.py{colon}{attribute}"


def play(tmp: Path, source: str | None, env: str | None = None, **flags: Any) -> Played:
    """Run `rlmesh eval` in this process; `source` is a toy policy's name, or what the command line takes."""
    out = tmp / f"runs-{next(_numbers)}"
    flags.setdefault("quiet", True)
    if source is not None and (POLICIES / f"{source.partition(':')[0]}.py").exists():
        source = policy(source)
    code = run(Request(policy=source, env=env, out=out, **flags))
    assert code != Exit.BUG, "the traceback is on standard error"
    return read_run(out, int(code))


def read_run(out: Path, code: int) -> Played:
    """Read the only run in `out`, if there is one."""
    folders = sorted(out.iterdir()) if out.exists() else []
    assert len(folders) <= 1, folders
    folder = folders[0] if folders else None
    lines = [] if folder is None else (folder / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [strict_loads(line) for line in lines]
    return Played(
        code=code,
        out=out,
        folder=folder,
        record=_read_json(folder, "run.json"),
        rows=sorted(rows, key=lambda row: row["index"]),
        written=[row["index"] for row in rows],
        summary=_read_json(folder, "summary.json"),
    )


def _read_json(folder: Path | None, name: str) -> dict[str, Any]:
    if folder is None or not (folder / name).exists():
        return {}
    return strict_loads((folder / name).read_text(encoding="utf-8"))


def strict_loads(text: str) -> Any:
    """Parse JSON; NaN, Infinity and a key that stands twice are errors."""
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)


def _refuse(literal: str) -> NoReturn:
    raise AssertionError(f"not JSON: {literal}")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), f"a key stands twice: {[key for key, _ in pairs]}"
    return found


def unarranged(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without what may depend on how a run was arranged."""
    return [{key: value for key, value in row.items() if key not in ("lane", "seconds")} for row in rows]


def start(*arguments: str, cwd: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start `rlmesh eval` as a process in a session of its own, with the toys on its path."""
    path = os.pathsep.join(part for part in (str(TESTS), os.environ.get("PYTHONPATH")) if part)
    return subprocess.Popen(
        [sys.executable, "-m", "rlmesh_cli", "eval", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[bytes], *, seconds: float = 60) -> tuple[int, bytes, bytes]:
    """Return (exit code, stdout, stderr) of a process that ends by itself in time."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err
