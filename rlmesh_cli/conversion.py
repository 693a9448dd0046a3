"""Conversion: from plain values to a Route, with errors that say what was expected where."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from rlmesh_adapters.errors import RouteError, nearest, shortened

from .documents import KeyPath, show_path
from .schema import SECTIONS, Route

_PATH = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+|\.\.\.)\]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_PLAIN = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
_MISSING = re.compile(r"Object missing required field `(\w+)`")
#: Section -> its key that is meant where one text stands in the section's place.
_MAIN_KEYS: dict[KeyPath, str] = {("env",): "id", ("policy",): "source", ("baseline",): "run"}
#: Text that needs no quotes in YAML.
_BARE = re.compile(r"[A-Za-z_.][A-Za-z0-9_./-]*")
#: msgspec's words for what YAML calls otherwise.
_WORDS = {"object": "a mapping", "array": "a list"}


def convert(value: dict[str, Any], place: Callable[[KeyPath], str]) -> Route:
    """Return the route of plain values.

    place: returns where the value at a path was given.

    Raises RouteError for values of a wrong type, out of range, or missing.
    """
    try:
        return msgspec.convert(value, Route)
    except msgspec.ValidationError as error:
        text, _, tail = str(error).partition(" - at `$")
        path: KeyPath = tuple(
            int(position) if position.isdigit() else position or key
            for key, position in _PATH.findall(tail.rstrip("`"))
        )
        missing = _MISSING.match(text)
        if missing is not None:
            cause = f"{show_path(path)} needs `{missing[1]}`"
            raise RouteError(cause, where=place(path), mend=f"add `{missing[1]}: ...` to it") from error
        given, choices = lookup(value, path), _choices(path)
        expected = _one_of(choices) if choices else _expected(text)
        cause = f"{show_path(path)} must be {expected}, got {kind_of(given)}"
        mend = _section_mend(path, given) or _mend(given, choices, expected)
        raise RouteError(cause, where=place(path), mend=mend) from error


def _expected(text: str) -> str:
    """Return what a message of msgspec wants, such as `int >= 1` or `str or a mapping`."""
    wanted = text.replace("Expected ", "").replace("`", "").split(", got")[0]
    return " or ".join(_WORDS.get(word, word) for word in wanted.split(" | "))


def _one_of(choices: list[str]) -> str:
    return f"one of {', '.join(choices)}" if len(choices) > 1 else choices[0]


def _choices(path: KeyPath) -> list[str]:
    """Return the values that may stand at a path, empty where it is not a choice of a few."""
    while path and isinstance(path[-1], int):  # what may stand in a list stands in the list's own type
        path = path[:-1]
    struct: Any = Route if len(path) == 1 else SECTIONS.get(path[:-1])
    if struct is None:
        return []
    return [str(choice) for choice in _literals(get_type_hints(struct).get(str(path[-1])))]


def _literals(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [choice for part in get_args(hint) for choice in _literals(part)]


def lookup(value: Any, path: KeyPath) -> Any:
    """Return the value at a path, None if there is none."""
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def kind_of(value: Any) -> str:
    """Return type and text of a value, such as `str 'two'`; long ones are cut short."""
    return "null" if value is None else f"{type(value).__name__} {shortened(repr(value))}"


def _section_mend(path: KeyPath, given: Any) -> str | None:
    """Return how a section is written that was given as one text, such as `env: CartPole-v1`."""
    key = _MAIN_KEYS.get(path)
    if key is None or not isinstance(given, str):
        return None
    text = given if _BARE.fullmatch(given) else repr(given)
    return f"write {show_path(path)}: {{{key}: {text}}}"


def _mend(given: Any, choices: list[str], expected: str) -> str:
    near = nearest(given, choices) if isinstance(given, str) else []
    if near:
        return f"did you mean {near[0]}?"
    if choices:
        return f"write {_one_of(choices)}"
    if isinstance(given, str) and expected.split(" ", 1)[0] in ("int", "float"):
        is_number = _NUMBER.fullmatch(given.strip()) is not None
        return (
            "write it without quotes if a number is meant"
            if is_number
            else f"write {_PLAIN[expected.split(' ', 1)[0]]}"
        )
    if "a mapping" in expected:
        return "write `key: value` pairs below it, or {key: value}"
    if expected == "a list":
        return "write it as a list, such as [a, b]"
    kind, _, range_ = expected.partition(" ")
    return f"write {_PLAIN.get(kind, kind)} {range_}".rstrip()
