"""Wrappers that a route names."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from rlmesh_adapters.errors import EnvironmentBuildError, describe_error, is_fault, nearest

from .request import WrapperRequest


def wrap(env: Any, wrapper: WrapperRequest) -> gym.Env[Any, Any]:
    """Put one wrapper around an environment.

    A route holds lists where a wrapper may want tuples or arrays. Where it refuses the lists, it is offered
    tuples, then arrays.

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
    wrapped = _put_on(make, env, wrapper, where)
    if not isinstance(wrapped, gym.Env):
        raise EnvironmentBuildError(
            f"wrapper `{wrapper.name}` made a {_kind(wrapped)}, not a gymnasium.Env",
            where=where,
            mend="name a class, or a function that returns the wrapped environment",
        )
    return wrapped


def _put_on(make: Callable[..., Any], env: Any, wrapper: WrapperRequest, where: str) -> Any:
    """Return what a wrapper makes of the first form of its arguments that it takes."""
    faults: dict[str, BaseException] = {}
    for form, kwargs in _forms(wrapper.kwargs, env):
        try:
            return make(env, **kwargs)
        except BaseException as error:
            if not is_fault(error):
                raise
            faults[form] = error
    said = {form: describe_error(error) for form, error in faults.items()}
    first = said.pop(_AS_GIVEN)
    more = [f"; its lists as {form} give {words}" for form, words in said.items() if words != first]
    raise EnvironmentBuildError(
        f"wrapper `{wrapper.name}` cannot be put on: {first}",
        where=where,
        mend="check its kwargs in the route" + "".join(more),
    ) from faults[_AS_GIVEN]


_AS_GIVEN = "given"


def _forms(kwargs: Mapping[str, Any], env: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield arguments as they stand in the route; then with tuples and with arrays for lists, if there are any.

    Each form is made of copies: a wrapper that fails may have written into what it was given.
    """
    plain = dict(kwargs)
    yield _AS_GIVEN, copy.deepcopy(plain)
    if _has_list(plain):
        yield "tuples", _with_tuples(copy.deepcopy(plain))
        yield "arrays", {name: _with_arrays(value, name, env) for name, value in copy.deepcopy(plain).items()}


def _has_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and any(map(_has_list, value.values())))


def _with_tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_tuples(part) for key, part in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value


def _with_arrays(value: Any, name: str, env: Any) -> Any:
    """Return a value with arrays for its lists of numbers; other lists stay.

    name: of the argument, or of the key in it.
    """
    if isinstance(value, dict):
        return {key: _with_arrays(part, str(key), env) for key, part in value.items()}
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
    except ValueError:  # rows of several lengths
        return value
    return _as_in_space(array, name, env) if array.dtype.kind in "biuf" else value


def _as_in_space(array: np.ndarray[Any, Any], name: str, env: Any) -> np.ndarray[Any, Any]:
    """Return numbers in the dtype of the space that has their shape, if that holds them.

    Where both spaces have it, the argument's name says which is meant, as in `min_action`.
    """
    spaces = [getattr(env, kind, None) for kind in ("observation_space", "action_space")]
    if "act" in name:
        spaces.reverse()
    for space in spaces:
        if isinstance(space, gym.spaces.Box) and space.shape == array.shape:
            with np.errstate(all="ignore"):
                cast = array.astype(space.dtype)
            # Floats may be rounded to shorter ones, but not to whole numbers.
            if cast.dtype.kind == "f" or np.array_equal(cast, array):
                return cast
    return array


def _hint(name: str, module: Any) -> str:
    form = "name it as package.module:Class"
    if "." in name:
        return form
    near = nearest(name, [known for known, value in vars(module).items() if isinstance(value, type)])
    return f"did you mean {' or '.join(near)}? Else {form}" if near else form


def _kind(value: Any) -> str:
    return f"class {value.__name__}" if isinstance(value, type) else type(value).__name__
