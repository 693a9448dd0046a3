"""Wrappers that a route names."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import gymnasium as gym

from rlmesh_adapters.errors import EnvironmentBuildError, describe_error, is_fault, nearest

from .request import WrapperRequest


def wrap(env: Any, wrapper: WrapperRequest) -> gym.Env[Any, Any]:
    """Put one wrapper around an environment.

    Raises EnvironmentBuildError if it cannot be found, refuses its arguments, or makes no environment.
    """
    where = f"env.wrappers: {wrapper.name}"
    module_name, _, name = wrapper.name.rpartition(":")
    try:
        module = importlib.import_module(module_name or "gymnasium.wrappers")
    except BaseException as error:
        if not is_fault(error):
            raise
        raise EnvironmentBuildError(
            f"wrapper module `{module_name}` cannot be imported: {describe_error(error)}",
            where=where,
            mend="name it as package.module:Class",
        ) from error
    make = getattr(module, name, None)
    if not callable(make):
        raise EnvironmentBuildError(
            f"no wrapper `{name}` in {module.__name__}", where=where, mend=_hint(name, module)
        )
    try:
        wrapped = make(env, **copy.deepcopy(dict(wrapper.kwargs)))
    except BaseException as error:
        if not is_fault(error):
            raise
        raise EnvironmentBuildError(
            f"wrapper `{wrapper.name}` cannot be put on: {describe_error(error)}",
            where=where,
            mend="check its kwargs in the route",
        ) from error
    if not isinstance(wrapped, gym.Env):
        raise EnvironmentBuildError(
            f"wrapper `{wrapper.name}` made a {_kind(wrapped)}, not a gymnasium.Env",
            where=where,
            mend="name a class, or a function that returns the wrapped environment",
        )
    return wrapped


def _hint(name: str, module: Any) -> str:
    form = "name it as package.module:Class"
    if "." in name:
        return form
    near = nearest(name, [known for known, value in vars(module).items() if isinstance(value, type)])
    return f"did you mean {' or '.join(near)}? Else {form}" if near else form


def _kind(value: Any) -> str:
    return f"class {value.__name__}" if isinstance(value, type) else type(value).__name__
