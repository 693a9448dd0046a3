"""Resuming: which run is gone on with, and whether it is the same evaluation, field by field."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rlmesh_adapters.errors import HarnessError, RouteError

from .changes import changes_of
from .documents import Document
from .records import to_plain
from .run_reader import StoredRun, StoredRunError, find_run, list_runs, read_run
from .sources import at_file, split_source
from .store import RunStore

AUTO = "auto"
#: Places that are named of one field.
_FEW = 3
_DIGITS = 12


def fingerprint(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything in a run's record that its numbers depend on, by name.

    How a run is arranged (lanes, worker processes), what it is judged by, and paths are not among it.
    """
    route, env, policy = record["route"], record["env"], record["policy"]
    known = {
        "policy": (policy.get("file") or {}).get("sha256", route["policy"].get("source")),
        "policy.name": split_source(str(route["policy"].get("source", "")))[1] or None,
        "policy.params": route["policy"].get("params"),
        "weights": sorted([Path(file["path"]).name, file["sha256"]] for file in policy.get("weights") or ()),
        "env.id": env["id"],
        "env.named": route["env"]["id"],
        "env.kwargs": route["env"].get("kwargs"),
        "env.wrappers": route["env"].get("wrappers"),
        "env layers": env.get("layers"),
        "env.autoreset": env.get("autoreset"),
        "observation space": env.get("observation_space"),
        "action space": env.get("action_space"),
        "limits": record.get("limits"),
        "success rule": record.get("success_rule"),
        "adapter plan": record.get("adapter"),
        "seeds": record.get("seeds"),
    }
    for name in ("horizon", "ensemble", "batch_rows", "instances", "env_tags", "model_spec", "until"):
        if name in route:
            known[name] = route[name]
    if "conversion" in record:
        known["conversion"] = record["conversion"]
    if "files" in env:
        known["env.files"] = sorted([Path(file["path"]).name, file["sha256"]] for file in env["files"])
    known |= {f"module {file['path']}": file["sha256"][:_DIGITS] for file in record.get("modules", ())}
    if "metrics" in record:
        known["metrics"] = record["metrics"]
    return known | {f"version of {name}": version for name, version in record.get("versions", {}).items()}


def differences(
    stored: Mapping[str, Any], record: Mapping[str, Any], *, apart_from: Collection[str] = ()
) -> list[str]:
    """Return a line for each place that differs between two records; what an old one lacks is no difference.

    Seeds that go on where the stored ones end are no difference. apart_from: names that are not looked at.
    """
    # Both as JSON has them: what was read back holds lists where a new record holds tuples.
    before, now = (to_plain(fingerprint(known))[0] for known in (stored, record))
    lines = []
    for name in sorted(before.keys() & now.keys() - set(apart_from)):
        one, other = before[name], now[name]
        if one == other or (name == "seeds" and other[: len(one)] == one):
            continue
        found = list(changes_of(name, one, other))
        for change in found[:_FEW]:
            was, now_is = change.texts
            lines.append(f"{change.path}: was {was}, is {now_is}")
        if len(found) > _FEW:
            lines.append(f"{name}: and {len(found) - _FEW} more")
    return lines


def edited_modules(stored: StoredRun, record: Mapping[str, Any]) -> list[str]:
    """Return a line for each file that a run imported, and that is not loaded yet, but another one on disk now."""
    from .provenance import files_of  # noqa: PLC0415 - gymnasium starts with it, and comparing has no need of it

    loaded = {file["path"] for file in record.get("modules", ())}
    lines = []
    for file in stored.record.get("modules", ()):
        if file["path"] not in loaded:
            now = next(files_of([file["path"]]), None)
            if now is None or now["sha256"] != file["sha256"]:
                shown = "not there" if now is None else now["sha256"][:_DIGITS]
                lines.append(f"module {file['path']}: was {file['sha256'][:_DIGITS]}, is {shown}")
    return lines


def refuse_other(stored: StoredRun, record: Mapping[str, Any]) -> None:
    """Raise HarnessError, field by field, if what is to be played is not the evaluation that was begun."""
    differing = differences(stored.record, record) + edited_modules(stored, record)
    if differing:
        raise HarnessError(
            f"this is not the evaluation that was begun in {stored.folder}:\n    " + "\n    ".join(differing),
            where="--resume",
            mend="put back what differs, or start a new run without --resume",
        )


class Resumption:
    """Which run an evaluation goes on with.

    wanted: name of a run, `auto` for the newest unfinished one of the same evaluation, None for a new run.
    out: folder that holds runs.

    Raises StoredRunError for a run that is named and cannot be read, or cannot be gone on with.
    """

    def __init__(self, wanted: str | None, out: Path) -> None:
        self._is_auto, self._out = wanted == AUTO, out
        self.stored: StoredRun | None = None
        if wanted is not None and not self._is_auto:
            self.stored = read_run(find_run(wanted, out))
            if not self.stored.is_seeded:
                raise StoredRunError(
                    f"the episodes of {self.stored.folder} have no seeds of their own",
                    where="--resume",
                    mend="start a new run: what is missing cannot be played as it would have been",
                )

    def reopen(self, record: Mapping[str, Any]) -> tuple[RunStore, StoredRun] | None:
        """Return the run that is gone on with, opened and locked, and what it holds; None for a new one.

        record: `run.json` as a new run would begin it.

        Raises HarnessError where the named run is another evaluation, or somebody else is at it.
        """
        if self.stored is not None:
            refuse_other(self.stored, record)
            return self._opened(self.stored.folder)
        if self._is_auto:
            for folder in list_runs(self._out) if self._out.is_dir() else ():
                try:
                    stored = read_run(folder)
                    is_open = stored.record["status"] != "finished" and stored.is_seeded
                    is_same = not (differences(stored.record, record) or edited_modules(stored, record))
                    if is_open and is_same:
                        return self._opened(folder)
                except HarnessError:  # damaged, or somebody is at it; another may do
                    continue
        return None

    def _opened(self, folder: Path) -> tuple[RunStore, StoredRun]:
        store = RunStore.reopen(folder)
        try:
            return store, read_run(folder)  # once more: it was not locked before
        except BaseException:
            store.close()
            raise


def recorded_route(stored: StoredRun, *, policy: str | None = None, env: str | None = None) -> Document:
    """Return the route of a run as a document, for an evaluation that goes on with it.

    The policy is looked for where it was found then, wherever the command is typed now.
    policy, env: as typed in their place. Others have arguments of their own, and are refused for what they are.
    """
    route: dict[str, Any] = dict(stored.record["route"])
    file = (stored.record.get("policy") or {}).get("file")
    source = str(route["policy"].get("source", ""))
    if file is not None and split_source(source)[0].endswith(".py"):
        route["policy"] = {**route["policy"], "source": at_file(source, file["path"])}
    if policy is not None and _found_at(policy) != _found_at(str(route["policy"].get("source", ""))):
        route["policy"] = {**route["policy"], "params": {}}
    if env is not None and env != route["env"]["id"]:
        route["env"] = {**route["env"], "kwargs": {}, "wrappers": []}
    return Document(f"{stored.folder.name}/run.json", route, {})


def _found_at(source: str) -> tuple[str, str]:
    """Return what a policy's source names, with the path of its file as it is from everywhere."""
    target, attribute = split_source(source)
    return (str(Path(target).resolve()) if target.endswith(".py") else target), attribute


def extended(stored: StoredRun, more: int, *, is_counted: bool) -> int:
    """Return how many episodes a run has after `more` were added.

    is_counted: whether their number was given in another way too.

    Raises RouteError where it is not said which ones.
    """
    if more < 1:
        raise RouteError(f"{more} episodes cannot be added", where="--extend", mend="give 1 or more")
    if stored.record["route"].get("seeds") is not None:
        raise RouteError(
            "the run's seeds were listed one by one",
            where="--extend",
            mend="give --seeds with the old ones and the new ones after them, in place of --extend",
        )
    if is_counted:
        raise RouteError(
            "--episodes and --extend contradict one another", where="--extend", mend="drop one of them"
        )
    if stored.record.get("stopped_at") is not None:
        raise RouteError(
            f"the run ended by its stopping rule, `{stored.record.get('stopping_rule')}`",
            where="--extend",
            mend="start a new run; more episodes would undo what the rule promises",
        )
    return stored.planned + more
