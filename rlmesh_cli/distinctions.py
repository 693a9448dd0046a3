"""Distinctions: in what two runs differ by their records, beside the protocol that both were made by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from .changes import Change, changes_of
from .protocols import POLICY_MODULE, hashes_by_name
from .records import to_plain
from .resuming import fingerprint

#: Names of a fingerprint that the protocol speaks for: where they differ, that was allowed and is told.
_OF_PROTOCOL = {
    "env.id",
    "env.named",
    "env.kwargs",
    "env.wrappers",
    "env.files",
    "horizon",
    "ensemble",
    "limits",
    "success rule",
    "adapter plan",
    "conversion",
}
#: What is said in place of the lines if there are none.
NO_DISTINCTION = "nothing that is recorded"
#: Places that are named of one field.
_FEW = 3
_DIGITS = 12


def distinctions(base: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, list[Change]]:
    """Return by field where two `run.json` differ: policy, weights, modules, versions, git and so on.

    A field that one of them lacks is no difference: it may be older.
    """
    ours, theirs = (to_plain(_known(record))[0] for record in (base, new))
    fields = [name for name in ours if name in theirs and ours[name] != theirs[name]]
    return {name: list(changes_of(name, ours[name], theirs[name])) for name in fields}


def _known(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that a record says of what its rows came from, but for the protocol and the machine."""
    route, policy = record["route"], record.get("policy") or {}
    env = {"id": route["env"]["id"], **(record.get("env") or {})}
    # Older records, and those of others, lack sections that a new one has.
    whole = {**record, "route": {"policy": {}, **route}, "policy": policy, "env": env}
    of_lists = ("module ", "version of ")
    found = {
        name: value
        for name, value in fingerprint(whole).items()
        if name not in _OF_PROTOCOL and not name.startswith(of_lists)
    }
    if policy.get("file"):
        found["policy"] = f"{Path(policy['file']['path']).name} {policy['file']['sha256'][:_DIGITS]}.."
    for name in ("corner", "instances"):
        if name in policy:
            found[name] = policy[name]
    if "modules" in record:
        # By name: another checkout of the same files is no difference.
        found["modules"] = hashes_by_name(record["modules"])
    versions = record.get("versions") or {}
    found["versions"] = {name: text for name, text in versions.items() if not name.startswith(POLICY_MODULE)}
    git = record.get("git")
    if git:
        changed = " with changes" if git.get("dirty") else ""
        found["git"] = f"{(git.get('commit') or 'no commit')[:_DIGITS]}{changed}"
    return found


def distinction_lines(found: Mapping[str, list[Change]]) -> Iterator[str]:
    """Yield a line for each place, such as `policy.params.gain: 1 in BASE, -1 in NEW`; a few of one field."""
    for field, changes in found.items():
        for change in changes[:_FEW]:
            base, new = change.texts
            yield f"{change.path}: {base} in BASE, {new} in NEW"
        if len(changes) > _FEW:
            yield f"{field}: and {len(changes) - _FEW} more"


def distinction_records(found: Mapping[str, list[Change]]) -> list[dict[str, Any]]:
    """Return `field`, `base` and `new` of each place; a side that has nothing there is left out."""
    return [
        {"field": change.path}
        | {
            side: value
            for side, value in (("base", change.one), ("new", change.other))
            if value is not msgspec.UNSET
        }
        for changes in found.values()
        for change in changes
    ]
