"""Route keys: those that a route file may hold, and what is meant by one that it may not."""

from __future__ import annotations

from typing import Any

import msgspec

from rlmesh_adapters.errors import RouteError, nearest

from .documents import Document, KeyPath, show_path
from .schema import SECTIONS, Route, WrapperRoute

#: Flags of `rlmesh eval` that say how a run is made and shown, not what it measures: no key stands for them.
FLAGS_ONLY = (
    *(
        "route",
        "resume",
        "extend",
        "verify_lanes",
        "no_probe",
        "force",
        "trust_entrypoints",
        "strict",
        "out",
        "all",
    ),
    *("json", "quiet", "junit", "summary", "csv", "report", "report_file"),
)
#: Flags whose key is called otherwise.
_OTHERWISE = {"env_arg": "env.kwargs", "policy_arg": "policy.params", "env_workers": "env.workers"}
#: What arguments are called in a section -> in another one.
_ARGUMENTS = {"kwargs": "params", "params": "kwargs"}


def refuse_unknown(document: Document) -> None:
    """Raise RouteError for a key that no route has, saying what may be meant; document: a mapping."""
    _refuse_in(document.value, Route, (), document)


def _refuse_in(value: Any, struct: type[msgspec.Struct], path: KeyPath, document: Document) -> None:
    known = struct.__struct_fields__
    for key, part in value.items():
        here = (*path, key)
        if key not in known:
            raise RouteError(
                f"unknown key `{show_path(here)}`", where=document.place(here), mend=_advice(key, known, path)
            )
        inner = SECTIONS.get(here)
        if inner is not None and isinstance(part, dict):
            _refuse_in(part, inner, here, document)
        if here == ("env", "wrappers") and isinstance(part, list):
            for position, wrapper in enumerate(part):
                if isinstance(wrapper, dict):
                    _refuse_in(wrapper, WrapperRoute, (*here, position), document)


def _advice(key: str, known: tuple[str, ...], path: KeyPath) -> str:
    """Return what to do about a key; known: those that may stand in its place, at `path`."""
    name = key.replace("-", "_")
    beyond = (
        {} if path else {inner: show_path((*at, inner)) for at, inner in _section_keys() if inner not in known}
    )
    if name in known:
        return f"did you mean `{name}`?"
    if name in beyond:
        return f"did you mean `{beyond[name]}`?"
    if path and name in Route.__struct_fields__:
        return f"did you mean `{name}`, outside of `{path[0]}`?"
    if _ARGUMENTS.get(name) in known:
        return f"did you mean `{_ARGUMENTS[name]}`?"
    if name in _OTHERWISE:
        return f"did you mean `{_OTHERWISE[name]}`?"
    if name in FLAGS_ONLY:
        return f"`{name}` is a flag of the command line: --{name.replace('_', '-')}"
    near = nearest(name, (*known, *beyond), limit=1)
    return f"did you mean `{beyond.get(near[0], near[0])}`?" if near else f"known here: {', '.join(known)}"


def _section_keys() -> list[tuple[KeyPath, str]]:
    return [(at, key) for at, struct in SECTIONS.items() for key in struct.__struct_fields__]
