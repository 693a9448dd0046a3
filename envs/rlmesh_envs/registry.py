"""Finding an environment by its id, and saying what is near when it is not there."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable, Collection
from pathlib import PurePath
from typing import Any

import gymnasium as gym
import msgspec
from gymnasium.envs.registration import EnvSpec

from rlmesh_adapters.errors import EnvironmentBuildError, describe_error, is_fault, nearest

from .packages import PACKAGES, is_installed, module_of_id
from .request import EnvRequest

Factory = Callable[..., Any]


def forget_environments(modules: Collection[str]) -> None:
    """Take environments out of gymnasium's registry whose classes or functions stand in some modules."""
    for name, spec in list(gym.registry.items()):
        entry = spec.entry_point
        module = entry.partition(":")[0] if isinstance(entry, str) else getattr(entry, "__module__", None)
        if module in modules:
            del gym.registry[name]


def find_environment(request: EnvRequest) -> EnvSpec | Factory:
    """Return the registered spec of a request's id, or the class or function that its id names.

    Imports what the request lists, the module in front of a colon, and the package that is known to register
    ids of that form. One that is registered in another process only is taken from the spec given along.

    Raises EnvironmentBuildError if a module cannot be imported or nothing has that id; names the nearest ids.
    """
    try:
        return _find(request)
    except EnvironmentBuildError:
        if request.spec is None:
            raise
        spec: EnvSpec = pickle.loads(request.spec)
        return spec


def find_in_worker(request: EnvRequest) -> EnvSpec | Factory:
    """Find an environment in a worker process, after what has to run there first."""
    if request.prepare is not None:
        request.prepare()
    return find_environment(request)


def with_spec(request: EnvRequest, source: EnvSpec | Any) -> EnvRequest:
    """Give a request the spec along, if it can travel."""
    if not isinstance(source, EnvSpec):
        return request
    try:
        return msgspec.structs.replace(request, spec=pickle.dumps(source))
    except Exception:  # an entry point that cannot be pickled; the id has to do
        return request


def spec_of(request: EnvRequest) -> bytes | None:
    """Return the registered spec of an environment, pickled, for other processes; None if it cannot travel."""
    return with_spec(request, find_environment(request)).spec


def _find(request: EnvRequest) -> EnvSpec | Factory:
    for module in request.imports:
        _import(module, f"env.imports: {module}")
    module_name, _, name = request.id.rpartition(":")
    if module_name:
        module = _import(module_name, f"env: {request.id}", name)
        if name not in gym.registry:
            factory: Factory | None = getattr(module, name, None)
            if callable(factory):
                return factory
            if _default_version(name) is None:
                raise _not_in(module_name, module, name)
    if name not in gym.registry:
        _import_known_package(name)
    spec = gym.registry.get(name) or _default_version(name)
    if spec is None:
        raise _unknown(name)
    return spec


def _import(module: str, where: str, name: str = "") -> Any:
    """Import a module, or raise EnvironmentBuildError; name: what is meant in it."""
    if "/" in module:
        raise _no_module(module, where, name)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if module.endswith(".py") and f"{module}.".startswith(f"{missing}."):
            raise _no_module(module, where, name) from error
        raise EnvironmentBuildError(
            f"module `{missing}` is not installed",
            where=where,
            mend=f"install it, or put its folder on PYTHONPATH (`{missing}` was not found there)",
        ) from error
    except BaseException as error:
        if not is_fault(error):
            raise
        raise EnvironmentBuildError(
            f"importing `{module}` failed: {describe_error(error)}",
            where=where,
            mend="mend that module first",
        ) from error


def _no_module(path: str, where: str, name: str) -> EnvironmentBuildError:
    """Return what is said of a path where a module is meant; it is policies that are named by their file."""
    module, is_below = _module_of(path)
    meant = f"{module}:{name}" if name else module
    folder = "" if is_below else ", and put its folder on PYTHONPATH"
    return EnvironmentBuildError(
        f"`{path}` is a file, where a module is meant",
        where=where,
        mend=f"write {meant}, the module without .py{folder}",
    )


def _module_of(path: str) -> tuple[str, bool]:
    """Return what a Python file is called as a module, and whether that can be seen from the working folder."""
    parts = PurePath(path.removesuffix(".py")).parts
    if all(part.isidentifier() for part in parts):
        return ".".join(parts), True
    return parts[-1] if parts else "", len(parts) == 1


def _import_known_package(name: str) -> None:
    module = module_of_id(name)
    if module is not None:
        gym.register_envs(_import(module, f"env: {name}"))


def _default_version(name: str) -> EnvSpec | None:
    """Return the latest version of an id that is given without one, as gymnasium does."""
    versions = [spec for spec in gym.registry.values() if _family(spec) == name and spec.version is not None]
    return max(versions, key=lambda spec: spec.version or 0, default=None)


def _family(spec: EnvSpec) -> str:
    return f"{spec.namespace}/{spec.name}" if spec.namespace else spec.name


def _not_in(module_name: str, module: Any, name: str) -> EnvironmentBuildError:
    here = [known for known, value in vars(module).items() if callable(value) and not known.startswith("_")]
    near = nearest(name, [*here, *gym.registry])
    mend = f"did you mean {' or '.join(near)}?" if near else "name a registered id, a class or a function"
    return EnvironmentBuildError(
        f"`{module_name}` neither registers nor holds `{name}`", where="env.id", mend=mend
    )


def _unknown(name: str) -> EnvironmentBuildError:
    found = next(((module, package) for start, module, package in PACKAGES if name.startswith(start)), None)
    if found is not None and not is_installed(found[0]):
        return EnvironmentBuildError(
            f"`{name}` comes with the package `{found[1]}`, which is not installed",
            where="env.id",
            mend=f"pip install {found[1]}",
        )
    if name.endswith(".py"):
        return EnvironmentBuildError(
            f"`{name}` is a file, and an environment is meant",
            where="env.id",
            mend=f"name the class, or function, in it that makes the environment: {_module_of(name)[0]}:NAME",
        )
    near = nearest(name, gym.registry)
    hint = f"module:{name} imports a module first"
    mend = (
        f"did you mean {' or '.join(near)}? Else {hint}" if near else f"list its module in env.imports, or {hint}"
    )
    return EnvironmentBuildError(f"no environment has the id `{name}`", where="env.id", mend=mend)
