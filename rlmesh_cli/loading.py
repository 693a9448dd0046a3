"""From what a route calls its policy to something that builds it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.corners import corner_names
from rlmesh_adapters.errors import LoadError, is_fault, nearest
from rlmesh_adapters.spaces import SpaceView

from .constructing import FACTORY, builder, is_made, looks_like_policy, name_of, refuse_params
from .guests import append_folder, as_guest, run_file
from .load_errors import cannot_load, cannot_parse, no_policy_file
from .mistaken import refuse_mistaken
from .reading import files_read
from .sources import split_source

# Looked for in this order in a policy file that is named without an attribute, before a module-level corner.
_ENTRIES = (FACTORY, "Policy")
_MODULE = "module-level `predict`"
_MODULE_MEND = "define make_policy(**params) or a class Policy"


class PolicySource(msgspec.Struct, frozen=True):
    """A policy that can be built as often as it is needed.

    label: short name for the run's folder. file: the file it came from, None for modules and built-ins.
    read: files that were opened while it was loaded; see rlmesh_cli.reading.
    build: takes the action space of one lane and returns a policy. renew: runs the file anew and returns its
        build, so that nothing that classes or modules keep is left; None where that cannot be done.
    """

    label: str
    file: Path | None
    build: Callable[[SpaceView], Any]
    renew: Callable[[], Callable[[SpaceView], Any]] | None = None
    read: tuple[str, ...] = ()


# A file that was run before is not run again, and so reads nothing.
_read_before: dict[str, dict[str, None]] = {}


def load_policy(source: str, params: Mapping[str, Any], route_file: str | Path | None = None) -> PolicySource:
    """Find a policy by its name in a route.

    source: `policy.py`, `policy.py:Name`, `package.module`, `package.module:Name`, `random`, `zero` or
        `hold`.
    params: arguments of its constructor. route_file: that names it, beside which messages look for files.

    Raises LoadError with the place in the user's code: no such file, an error while it runs, nothing to find in
    it, parameters that are missing or unknown.
    """
    heard = _read_before.setdefault(os.path.abspath(split_source(source)[0]), {})
    with files_read(heard):
        found = _load(source, params, route_file)
    return msgspec.structs.replace(found, read=tuple(heard))


def _load(source: str, params: Mapping[str, Any], route_file: str | Path | None) -> PolicySource:
    if source in BASELINES:
        append_folder(Path.cwd())  # where there is no policy file, environments are looked for here
        return PolicySource(source, None, partial(_build_baseline, source, dict(params)))
    target, attribute = split_source(source)
    folders = [] if route_file is None else [Path(route_file).absolute().parent]
    if target.endswith(".py"):
        return _from_file(Path(target), attribute, dict(params), folders)
    if os.path.exists(target) and (os.sep in target or target.startswith(".")):
        raise no_policy_file(target)
    return _from_module(target, attribute, dict(params), folders)


def prepare_worker(source: str) -> None:
    """Run a policy's file or module in a worker process, for the environments that it registers."""
    target, _ = split_source(source)
    if target.endswith(".py"):
        run_file(Path(target).resolve())
    elif target in BASELINES:
        append_folder(Path.cwd())
    else:
        _import(target)


def _build_baseline(name: str, params: dict[str, Any], action: SpaceView) -> Any:
    refuse_params(params, f"the built-in policy `{name}`", where="policy.params", mend="drop --policy-arg")
    return BASELINES[name](action)


def _from_file(path: Path, attribute: str, params: dict[str, Any], folders: list[Path]) -> PolicySource:
    if not os.path.isfile(path):
        folder = path.parent if os.path.isdir(path.parent) else Path()
        near = nearest(path.name, [known.name for known in folder.glob("*.py")])
        mend = f"did you mean {' or '.join(near)}?" if near else "check the path"
        raise LoadError(f"no such policy file: {path}", where="policy", mend=mend)
    path = path.resolve()
    folders = [path.parent, *folders]
    module = _run(path)
    entry = _find_entry(module, attribute, path.name)
    if entry is module:
        refuse_params(params, _MODULE, where=path.name, mend=_MODULE_MEND)
        return PolicySource(path.stem, path, _AnewBuilder(module, lambda: _run(path, again=True)))
    label = path.stem if not attribute else f"{path.stem}-{attribute}"
    where = f"{path.name}:{name_of(entry)}"

    def again() -> Any:
        return _find_entry(_run(path, again=True), attribute, path.name)

    build = builder(entry, params, where, folders)
    if is_made(entry):
        return PolicySource(label, path, _AnewBuilder(entry, again))
    return PolicySource(label, path, build, lambda: builder(again(), params, where, folders))


def _from_module(target: str, attribute: str, params: dict[str, Any], folders: list[Path]) -> PolicySource:
    try:
        module = _import(target)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{target}.".startswith(f"{error.name}."):
            if os.path.exists(target):
                raise no_policy_file(target) from error
            refuse_mistaken(target, "policy", is_missing=True)
            raise LoadError(
                f"`{target}` is neither a built-in policy, a .py file nor a module that can be imported",
                where="policy",
                mend="give a path such as policy.py, or one of " + ", ".join(BASELINES),
            ) from error
        raise cannot_load(target, error) from error
    except BaseException as error:
        if not is_fault(error):
            raise
        raise cannot_load(target, error) from error
    entry = _find_entry(module, attribute, target)
    file = Path(module.__file__) if module.__file__ else None
    label = target.rsplit(".", 1)[-1]
    if entry is module:
        refuse_params(params, _MODULE, where=target, mend=_MODULE_MEND)
        return PolicySource(label, file, lambda action: module)
    folders = folders if file is None else [file.parent, *folders]
    return PolicySource(label, file, builder(entry, params, f"{target}:{name_of(entry)}", folders))


def _import(name: str) -> ModuleType:
    append_folder(Path.cwd())
    with as_guest():
        return importlib.import_module(name)


def _run(path: Path, *, again: bool = False) -> ModuleType:
    try:
        return run_file(path, again=again)
    except SyntaxError as error:
        raise cannot_parse(path, error) from error
    except BaseException as error:
        if not is_fault(error):
            raise
        raise cannot_load(str(path), error) from error


def _find_entry(module: ModuleType, attribute: str, where: str) -> Any:
    if attribute:
        entry = getattr(module, attribute, None)
        if entry is None:
            near = nearest(attribute, _public_names(module))
            mend = f"did you mean {' or '.join(near)}?" if near else f"found: {_found(module)}"
            raise LoadError(f"no `{attribute}` in {where}", where=where, mend=mend)
        return entry
    for name in _ENTRIES:
        if callable(getattr(module, name, None)):
            return getattr(module, name)
    if corner_names(module):
        return module
    candidates = [name for name in _public_names(module) if looks_like_policy(getattr(module, name))]
    mend = (
        f"name it, as in {where}:{candidates[0]}"
        if candidates
        else "define a class `Policy` with a method `predict(obs)`"
    )
    raise LoadError(
        f"{where} has none of `make_policy(**params)`, class `Policy` or `predict(obs)`; found: {_found(module)}",
        where=where,
        mend=mend,
    )


def _public_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def _found(module: ModuleType) -> str:
    return ", ".join(f"`{name}`" for name in _public_names(module)) or "no class or function of its own"


class _AnewBuilder:
    """Gives the one policy that a file makes when it is run; every other one is made by running the file anew.

    first: the policy that is there. again: runs the file anew and returns its policy.
    """

    def __init__(self, first: Any, again: Callable[[], Any]) -> None:
        self._first, self._again, self._is_given = first, again, False

    def __call__(self, action: SpaceView) -> Any:
        if self._is_given:
            return self._again()
        self._is_given = True
        return self._first
