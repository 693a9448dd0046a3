"""The four ways a policy may act, and which of them a route uses.

| corner                | takes              | returns              |
| `predict`             | one observation    | one action           |
| `predict_batch`       | (M, ...) stacked   | (M, ...) actions     |
| `predict_chunk`       | one observation    | (H, ...) actions     |
| `predict_chunk_batch` | (M, ...) stacked   | (M, H, ...) actions  |

A missing corner is derived downwards only: a batch of one, the first action of a chunk.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import msgspec

from .errors import LoadError, describe_error, is_fault, user_place

CORNER_NAMES = ("predict", "predict_batch", "predict_chunk", "predict_chunk_batch")

# Peers call the number of executed actions by the longer name.
_HORIZON_NAMES = ("horizon", "execution_horizon")
#: What a corner may take by name beside the observation.
_PASSED = (*_HORIZON_NAMES, "context", "state")
_STACKED_FIRST = ("predict_batch", "predict_chunk_batch", "predict", "predict_chunk")
_CHUNKS_FIRST = ("predict_chunk_batch", "predict_chunk", "predict_batch", "predict")


class Corner(msgspec.Struct, frozen=True, kw_only=True):
    """One corner that a policy offers, with the optional parameters it asks for by name.

    horizon_name: the name under which it takes the horizon, or empty.
    """

    name: str
    call: Callable[..., Any]
    horizon_name: str = ""
    wants_context: bool = False
    wants_state: bool = False

    @property
    def is_batched(self) -> bool:
        """Whether it takes M stacked observations."""
        return self.name.endswith("_batch")

    @property
    def is_chunked(self) -> bool:
        """Whether it returns H actions an observation."""
        return "_chunk" in self.name


def corner_names(policy: object) -> tuple[str, ...]:
    """Return the names of the corners that a policy has.

    Raises LoadError if looking for one raises.
    """
    try:
        return tuple(name for name in CORNER_NAMES if callable(getattr(policy, name, None)))
    except BaseException as error:  # a user's __getattr__ may raise anything
        if not is_fault(error):
            raise
        raise LoadError(
            f"the corners of {type(policy).__name__} cannot be looked up: {describe_error(error)}",
            where=user_place(error.__traceback__),
            mend="raise AttributeError for attributes that are not there",
        ) from error


def choose_corner(policy: object, horizon: int) -> Corner:
    """Return the corner that a route of this horizon uses.

    horizon: actions executed a call, at least 1. Over 1 a chunk corner is preferred; at 1 the corner that
    takes the whole batch.

    Raises LoadError if the policy has no corner at all, or one that cannot be called with an observation and what
    we pass by name.
    """
    present = corner_names(policy)
    for name in _CHUNKS_FIRST if horizon > 1 else _STACKED_FIRST:
        if name in present:
            return _corner(policy, name)
    raise LoadError(
        f"{type(policy).__name__} has none of {', '.join(CORNER_NAMES)}",
        where=f"{type(policy).__module__}.{type(policy).__qualname__}",
        mend="give it a method `predict(obs)` that returns an action",
    )


def _corner(policy: object, name: str) -> Corner:
    call = getattr(policy, name)
    if inspect.iscoroutinefunction(call):
        raise LoadError(
            f"`{name}` is async", where=_place(call), mend="make it a plain function; nobody awaits it"
        )
    parameters = _parameters(call)
    # The first one is the observation, whatever it is called; many call it `state`.
    options = _by_name(parameters[1:]) if parameters is not None else frozenset()
    if parameters is not None:
        _check_parameters(name, call, parameters)
    return Corner(
        name=name,
        call=call,
        horizon_name=next((known for known in _HORIZON_NAMES if known in options), ""),
        wants_context="context" in options,
        wants_state="state" in options,
    )


def _check_parameters(name: str, call: Callable[..., Any], parameters: list[inspect.Parameter]) -> None:
    """Raise LoadError for a corner that takes no observation, or cannot do without what nobody passes."""
    if not parameters or parameters[0].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD):
        raise LoadError(f"`{name}` takes no observation", where=_place(call), mend=f"write `{name}(obs)`")
    rest = parameters[1:]
    given = _by_name(rest).intersection(_PASSED)
    missing = [
        parameter.name
        for parameter in rest
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        and parameter.name not in given
    ]
    if missing:
        raise LoadError(
            f"`{name}` needs `{'`, `'.join(missing)}`, which nobody passes",
            where=_place(call),
            mend=f"give it a default; {', '.join(_PASSED)} are passed by name where a corner takes them",
        )


def _place(call: Callable[..., Any]) -> str:
    """Return `file:line` of a function, or its name where it has none."""
    code = getattr(inspect.unwrap(call), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(call)


def parameter_names(call: Callable[..., Any]) -> frozenset[str]:
    """Return the names by which a callable can be given arguments; empty where it cannot be told."""
    return _by_name(_parameters(call) or [])


def _parameters(call: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):  # builtins and extension types without a signature
        return None


def _by_name(parameters: list[inspect.Parameter]) -> frozenset[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(parameter.name for parameter in parameters if parameter.kind in kinds)
