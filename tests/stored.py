"""Run folders without a run: a record and rows, written as a run writes them, for what reads them back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cli_toys import row

from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.records import strict_json
from rlmesh_cli.run_reader import StoredRun

GOLDEN = Path(__file__).resolve().parent / "golden" / "run-v1"


def record(seeds: Sequence[int], **changes: Any) -> dict[str, Any]:
    """Return a `run.json` of CartPole-v1; a change named `a__b` is made inside of `a`."""
    made: dict[str, Any] = json.loads((GOLDEN / "run.json").read_text(encoding="utf-8"))
    made["seeds"] = list(seeds)
    made["route"] |= {"episodes": len(seeds), "seed": 0, "gates": []}
    made["success_rule"] = "is_success, last value"
    for path, value in changes.items():
        *sections, name = path.split("__")
        place = made
        for section in sections:
            place = place[section]
        place[name] = value
    return made


def rows(values: Sequence[bool | None], *, first_seed: int = 0, **changes: Any) -> list[EpisodeResult]:
    """Return a row for each success, with seeds that count up and a trace of its own each."""
    return [
        row(
            index,
            **{
                "seed": first_seed + index,
                "success": success,
                "return_": float(bool(success)),
                "start_hash": f"{first_seed + index:016x}",
                "trace_hash": f"{index:015x}{int(bool(success))}",
                **changes,
            },
        )
        for index, success in enumerate(values)
    ]


def stored(made: Sequence[EpisodeResult], *, name: str = "run", **changes: Any) -> StoredRun:
    """Return a run of such rows that no folder holds."""
    seeds = changes.pop("seeds", [one.seed or 0 for one in made])
    return StoredRun(folder=Path("/nowhere") / name, record=record(seeds, **changes), rows=list(made))


def written(folder: Path, run: StoredRun) -> Path:
    """Write a run's record and rows, and return its folder."""
    folder.mkdir(parents=True)
    (folder / "run.json").write_bytes(strict_json(run.record))
    (folder / "episodes.jsonl").write_bytes(b"".join(strict_json(one) + b"\n" for one in run.rows))
    return folder


def golden_copy(parent: Path, name: str = "20260101T000000Z-CartPole-v1-policy-abcd") -> Path:
    """Return a copy of the golden run that a test may damage."""
    return Path(shutil.copytree(GOLDEN, parent / name))


def change_line(folder: Path, number: int, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit a line of `episodes.jsonl`, from 1, as a user with an editor would."""
    file = folder / "episodes.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    plain = json.loads(lines[number - 1])
    change(plain)
    lines[number - 1] = json.dumps(plain)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def change_json(folder: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Edit a JSON file of a run."""
    plain = json.loads((folder / name).read_text(encoding="utf-8"))
    change(plain)
    (folder / name).write_text(json.dumps(plain), encoding="utf-8")
