"""From what a policy's source names - a class, a function, an object - to something that builds policies."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlmesh_adapters.corners import corner_names
from rlmesh_adapters.errors import LoadError, describe_error, is_fault, nearest
from rlmesh_adapters.spaces import SpaceView

from .guests import as_guest
from .load_errors import known_mend, place_of

#: A function of this name makes policies; any other one that wants an argument acts.
FACTORY = "make_policy"


def builder(
    entry: Any, params: dict[str, Any], where: str, folders: Sequence[Path] = ()
) -> Callable[[SpaceView], Any]:
    """Return a function that builds the policy that `entry` is, or makes, or acts as.

    params: arguments of its constructor. where: what messages call the entry. folders: where files may lie that it
        does not find.

    Raises LoadError for parameters that are missing or unknown.
    """
    if is_made(entry):
        mend = "name its class, or drop --policy-arg"
        refuse_params(params, f"`{name_of(entry)}`, an object that is there already,", where=where, mend=mend)
        return lambda action: entry
    is_factory = name_of(entry) == FACTORY
    if inspect.isfunction(entry) and not is_factory and not params and _required(entry):
        # A function that wants an argument that nobody gives is not a factory: it acts.
        return lambda action: _FunctionPolicy(entry)
    _check_params(entry, params, where)

    def build(action: SpaceView) -> Any:
        try:
            with as_guest():
                # Instances keep nothing in common, and the record says what was given.
                made = entry(**copy.deepcopy(params))
                return _FunctionPolicy(made) if inspect.isroutine(made) else made
        except BaseException as error:
            if not is_fault(error):
                raise
            raise LoadError(
                f"{name_of(entry)} cannot be built: {describe_error(error)}",
                where=place_of(error, str(getattr(sys.modules.get(entry.__module__), "__file__", where))),
                mend=known_mend(error, params, folders)
                or "check its arguments; --policy-arg NAME=VALUE gives one",
            ) from error

    return build


def is_made(entry: Any) -> bool:
    """Tell whether an entry is a policy already, rather than something that makes one, or acts as one."""
    return not callable(entry) or (looks_like_policy(entry) and not inspect.isclass(entry))


class _FunctionPolicy:
    """A bare function `predict(obs)` as a policy."""

    def __init__(self, act: Callable[..., Any]) -> None:
        self.predict = act


def looks_like_policy(value: object) -> bool:
    """Tell whether an object, or a class, has a corner to act with."""
    try:
        return bool(corner_names(value))
    except LoadError:  # an object whose attributes raise
        return False


def name_of(entry: object) -> str:
    """Return what an entry is called, for messages."""
    return getattr(entry, "__name__", type(entry).__name__)


def refuse_params(params: Mapping[str, Any], what: str, *, where: str, mend: str) -> None:
    """Raise LoadError where parameters are given for what takes none; what: that is, for messages."""
    if params:
        raise LoadError(f"{what} takes no parameters, got {', '.join(params)}", where=where, mend=mend)


def _check_params(entry: Any, params: Mapping[str, Any], where: str) -> None:
    parameters = _parameters(entry)
    known = [parameter.name for parameter in parameters]
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    for name in params:
        if name not in known and not takes_any:
            near = nearest(name, known)
            mend = f"did you mean {' or '.join(near)}?" if near else f"it takes: {', '.join(known) or 'nothing'}"
            raise LoadError(f"{name_of(entry)} takes no `{name}`", where=where, mend=mend)
    missing = [name for name in _required(entry) if name not in params]
    if missing:
        raise LoadError(
            f"{name_of(entry)} needs {', '.join(f'`{name}`' for name in missing)}",
            where=where,
            mend="give " + " ".join(f"--policy-arg {name}=VALUE" for name in missing),
        )


def _required(entry: Any) -> list[str]:
    return [
        parameter.name
        for parameter in _parameters(entry)
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    ]


def _parameters(entry: Any) -> list[inspect.Parameter]:
    # Of a plain class without a constructor, Python reads the text of object's own: ten times as slow.
    if type(entry) is type and not any({"__init__", "__new__"} & vars(base).keys() for base in entry.__mro__[:-1]):
        return []
    try:
        return list(inspect.signature(entry).parameters.values())
    except (TypeError, ValueError):
        return []
