"""Protocols: what two runs must have in common before their numbers may be held against one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError, nearest

from .changes import Change, changes_of
from .run_reader import StoredRun

#: Packages that are no environment's; what they change is seen in the rows.
_NOT_OF_ENVIRONMENTS = {"python", "rlmesh-cli", "numpy", "msgspec", "torch", "jax"}
#: How the module of a policy file is named, see rlmesh_cli.guests.
POLICY_MODULE = "rlmesh_policy_"
#: Fields that must agree.
FIELDS = (
    "env",
    "env.kwargs",
    "env.wrappers",
    "env.version",
    "env.files",
    "horizon",
    "ensemble",
    "limits.steps",
    "limits.seconds",
    "success_rule",
    "adapter",
    "seeded",
)
_LONGEST = 60
_DIGITS = 12


class ProtocolError(HarnessError):
    """Two runs were not made by the same protocol."""


class Difference(msgspec.Struct, frozen=True):
    """A field of the protocol, and what BASE and NEW say there."""

    field: str
    base: Any
    new: Any

    def describe(self) -> str:
        """Return both values in a line, such as `1 in BASE, 8 in NEW`; of long texts where they part."""
        if self.field == "seeded":
            unseeded = [name for name, value in (("BASE", self.base), ("NEW", self.new)) if not value]
            return f"false in {' and '.join(unseeded)}"
        base, new = _where_they_part(self.base, self.new)
        texts = _text(base), _text(new)
        if max(map(len, texts)) <= _LONGEST:
            return f"{texts[0]} in BASE, {texts[1]} in NEW"
        return _described([*changes_of("", base, new)])


def _described(found: Sequence[Change]) -> str:
    """Return where long values differ first, and in how many places more."""
    (one, other), path = found[0].texts, found[0].path.removeprefix(".")
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{path}{': ' if path else ''}{one} in BASE, {other} in NEW{more}"


def _where_they_part(base: Any, new: Any) -> tuple[Any, Any]:
    """Return the first lines of two texts, or entries of two mappings, that are not the same."""
    if isinstance(base, list) and isinstance(new, list):
        longest = max(len(base), len(new))
        pairs = zip(_padded(base, longest), _padded(new, longest), strict=True)
        return next(((one, other) for one, other in pairs if one != other), (base, new))
    if isinstance(base, Mapping) and isinstance(new, Mapping):
        keys = [key for key in dict.fromkeys((*base, *new)) if base.get(key, ...) != new.get(key, ...)]
        return {key: base[key] for key in keys if key in base}, {key: new[key] for key in keys if key in new}
    return base, new


def _padded(values: list[Any], length: int) -> list[Any]:
    return [*values, *[None] * (length - len(values))]


def _text(value: Any) -> str:
    if value is None or value in ({}, []):
        return "none"
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {part}" for key, part in value.items())
    if isinstance(value, list):
        return "; ".join(str(part).strip() for part in value)
    return str(value)


def protocol_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a `run.json` says of each of FIELDS."""
    route, limits = record["route"], record.get("limits", {})
    env = route["env"]
    return {
        "env": env["id"],
        "env.kwargs": env.get("kwargs", {}),
        "env.wrappers": [_wrapper(wrapper) for wrapper in env.get("wrappers", ())],
        "env.version": _versions(record),
        "env.files": _env_files(record),
        "horizon": route.get("horizon", 1),
        "ensemble": route.get("ensemble"),
        "limits.steps": limits.get("steps"),
        "limits.seconds": limits.get("seconds"),
        "success_rule": record["success_rule"],
        "adapter": record.get("adapter"),
        "seeded": record.get("seeded", True),
    }


def _env_files(record: Mapping[str, Any]) -> dict[str, str]:
    """Return hashes of the environment's own files, as far as a run took them down.

    A file that is the policy's as well says nothing: another policy is what is to be compared.
    """
    policy = (record.get("policy", {}).get("file") or {}).get("path")
    files = record.get("env", {}).get("files", ())
    return hashes_by_name(file for file in files if file["path"] != policy)


def hashes_by_name(files: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the hashes of files by their names; those of one name in several folders are told together."""
    found: dict[str, list[str]] = {}
    for file in files:
        found.setdefault(Path(file["path"]).name, []).append(f"{file['sha256'][:_DIGITS]}..")
    return {name: ", ".join(sorted(hashes)) for name, hashes in found.items()}


def _wrapper(wrapper: Any) -> Any:
    """Return a wrapper with its name first; one without arguments may be written as its name alone."""
    if not isinstance(wrapper, Mapping):
        return {"name": wrapper}
    kwargs = wrapper.get("kwargs")
    return {"name": wrapper.get("name"), **({"kwargs": kwargs} if kwargs else {})}


def _versions(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of gymnasium and of what else was loaded for the environment, not for the policy."""
    source = str(record["route"].get("policy", {}).get("source", ""))
    policy = source.partition(":")[0].partition(".")[0]
    out = _NOT_OF_ENVIRONMENTS | {policy}
    return {
        name: version
        for name, version in record.get("versions", {}).items()
        if name not in out and not name.startswith(POLICY_MODULE)
    }


def differences(base: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Return the fields in which two records differ; a run that could not seed differs from any other."""
    ours, theirs = protocol_of(base), protocol_of(new)
    # The same steps may be taken with other numbers; older runs did not take those down.
    if ours["adapter"] == theirs["adapter"] and base.get("conversion") and new.get("conversion"):
        ours["adapter"], theirs["adapter"] = base["conversion"], new["conversion"]
    # A package that only one of them loaded may have come with its policy.
    ours["env.version"], theirs["env.version"] = _shared(ours["env.version"], theirs["env.version"])
    # One of them may have been made where the environment is installed, and not in its checkout.
    ours["env.files"], theirs["env.files"] = _shared(ours["env.files"], theirs["env.files"])
    return [
        Difference(field, ours[field], theirs[field])
        for field in FIELDS
        if ours[field] != theirs[field] or (field == "seeded" and not ours[field])
    ]


def _shared(one: dict[str, str], other: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what two mappings say of the names that both have."""
    names = [name for name in one if name in other]
    return {name: one[name] for name in names}, {name: other[name] for name in names}


def check_allowed(allowed: Iterable[str]) -> None:
    """Refuse names that are no field of the protocol.

    Raises ProtocolError that names those there are.
    """
    for name in allowed:
        if name not in FIELDS:
            near = nearest(name, FIELDS, limit=1)
            raise ProtocolError(
                f"`{name}` is no field of the protocol{f'; did you mean {near[0]}?' if near else ''}",
                where="--allow",
                mend=f"name one of {', '.join(FIELDS)}",
            )


def agree(base: StoredRun, new: StoredRun, allowed: Sequence[str]) -> list[Difference]:
    """Return the differences that are allowed.

    Raises ProtocolError that names every field that differs without being allowed, with both values.
    """
    check_allowed(allowed)
    found = differences(base.record, new.record)
    refused = [difference for difference in found if difference.field not in allowed]
    if refused:
        width = max(len(difference.field) for difference in refused)
        lines = [f"\n        {difference.field:<{width}}  {difference.describe()}" for difference in refused]
        flags = " ".join(f"--allow {difference.field}" for difference in refused)
        raise ProtocolError(
            f"BASE and NEW were not made by the same protocol:{''.join(lines)}",
            where=f"{base.folder} and {new.folder}",
            mend=f"run both alike, or let the difference pass with {flags}",
        )
    return found
