"""Shipping: which files a cluster's workers get, and under which names they find them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.schema import Route
from rlmesh_cli.sources import at_file, split_source

from .messages import Refused, Report, Task, Word

#: Most that is shipped.
LIMIT_BYTES = 100_000_000
#: Folders that are left out.
LEFT_OUT = ("runs", ".git", ".venv", "__pycache__")


class Shipment(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster's workers get.

    folder: that is shipped, None if nothing has to be. policy: the policy's file, seen from it.
    route_file: the route's file, seen from it, None if it is elsewhere.
    """

    folder: Path | None = None
    policy: str | None = None
    route_file: str | None = None

    def placed(self, task: Task, folder: str) -> Task:
        """Return a task as a worker needs it that finds the shipment in a folder."""
        route, source = task.route, dict(task.source)
        if self.policy is not None:
            source_there = at_file(route.policy.source, os.path.join(folder, self.policy))
            policy = msgspec.structs.replace(route.policy, source=source_there)
            route = msgspec.structs.replace(route, policy=policy)
        source["route_file"] = None if self.route_file is None else os.path.join(folder, self.route_file)
        return msgspec.structs.replace(task, route=route, source=source)

    def returned(self, word: Word, folder: str) -> Word:
        """Return a worker's word with the places in shipped files as they are called here."""

        def home(place: str) -> str:
            return place.replace(folder, str(self.folder)) if self.folder is not None else place

        if isinstance(word, Refused):
            return Refused(home(word.cause), home(word.where), word.mend)
        if isinstance(word, Report) and any(row.error is not None and row.error.place for row in word.rows):
            return msgspec.structs.replace(word, rows=tuple(_placed_at_home(row, home) for row in word.rows))
        return word


def _placed_at_home(row: EpisodeResult, home: Callable[[str], str]) -> EpisodeResult:
    error = row.error
    if error is None or error.place is None:
        return row
    return msgspec.structs.replace(row, error=msgspec.structs.replace(error, place=home(error.place)))


def pack(route: Route, source: dict[str, Any]) -> Shipment:
    """Return what is shipped for a route: the folder of its policy, or this one where modules are named.

    source: see evaluate.

    Raises HarnessError where it is too much.
    """
    target, _ = split_source(route.policy.source)
    policy = None
    if target.endswith(".py"):
        file = Path(target).resolve()
        folder, policy = file.parent, file.name
    elif target not in BASELINES or ":" in route.env.id or route.env.imports:
        folder = Path.cwd()
    else:
        return Shipment()
    _refuse_much(folder)
    known = source.get("route_file")
    inside = known is not None and Path(known).resolve().is_relative_to(folder)
    return Shipment(
        folder=folder,
        policy=policy,
        route_file=str(Path(known).resolve().relative_to(folder)) if known is not None and inside else None,
    )


def _refuse_much(folder: Path) -> None:
    sizes: dict[str, int] = {}
    for path, size in _files(folder):
        first = path.relative_to(folder).parts[0]
        sizes[first] = sizes.get(first, 0) + size
    total = sum(sizes.values())
    if total > LIMIT_BYTES:
        largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
        shown = ", ".join(f"{name} ({sizes[name] / 1e6:.0f} MB)" for name in largest)
        raise HarnessError(
            f"the policy's folder {folder} holds {total / 1e6:.0f} MB, and at most {LIMIT_BYTES / 1e6:.0f} MB are "
            f"sent to a cluster; most are {shown}",
            where="--cluster",
            mend="put the policy in a folder of its own, and weights where every node finds them by one path; "
            f"{', '.join(LEFT_OUT)} are left out",
        )


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        for name in names:
            path = Path(place, name)
            if path.is_file():
                yield path, path.stat().st_size
