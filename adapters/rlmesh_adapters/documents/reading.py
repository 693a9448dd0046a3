"""Reading documents that nobody vouches for: text of limited size and depth, in which every key stands once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeVar

from .schema import DocumentError, Record
from .spec import ModelSpec
from .tags import EnvTags

MOST_BYTES = 4 * 2**20
_DEEPEST = 128
_MOST_VALUES = 100_000
_R = TypeVar("_R", bound=Record)


def read_tags(value: Any) -> EnvTags:
    """Return env tags of a mapping, JSON text, or an object with `to_dict()`.

    Raises DocumentError with the path of what cannot be meant.
    """
    return _read(value, EnvTags)


def read_spec(value: Any) -> ModelSpec:
    """Return a model spec of a mapping, JSON text, or an object with `to_dict()`; see `read_tags`."""
    return _read(value, ModelSpec)


def _read(value: Any, kind: type[_R]) -> _R:
    if isinstance(value, kind):
        return value
    if isinstance(value, (str, bytes)):
        value = parse_json(value)
    elif not isinstance(value, Mapping) and callable(getattr(value, "to_dict", None)):
        try:
            value = value.to_dict()
        except Exception as error:  # an object of the user's may raise anything
            raise DocumentError(
                f"to_dict() of {type(value).__name__} raised {type(error).__name__}: {error}"
            ) from error
    check_size(value)
    return kind.parse(value)


def parse_json(text: str | bytes, *, most_bytes: int = MOST_BYTES) -> Any:
    """Return the values of JSON text of at most so many bytes.

    Raises DocumentError for what is too large, too deep, not finite, no JSON, or a key that stands twice.
    """
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > most_bytes:
        raise DocumentError(f"the document has {len(data):,} bytes, at most {most_bytes:,} are read")
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_once,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_whole,
        )
    except RecursionError:
        raise DocumentError(f"the document has more than {_DEEPEST} levels inside one another") from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"the document is no UTF-8: {error}") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error.msg}, line {error.lineno} column {error.colno}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise DocumentError(f"key `{key}` stands twice", mend="keep one of the two")
        found[key] = value
    return found


def _refuse_constant(name: str) -> Any:
    raise DocumentError(f"{name} is not a number that a document may hold")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise DocumentError(f"{text[:40]} is larger than a number can be")
    return number


def _whole(text: str) -> int:
    if len(text) > 400:
        raise DocumentError(f"a number has {len(text):,} digits")
    return int(text)


def check_size(value: Any) -> None:
    """Raise DocumentError for plain values that are too many, too deep, or hold themselves."""
    count = 0
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > _DEEPEST:
            raise DocumentError(f"the document has more than {_DEEPEST} levels inside one another")
        if isinstance(part, (Mapping, list, tuple)):
            count += len(part)
            if count > _MOST_VALUES:
                raise DocumentError(f"the document has more than {_MOST_VALUES:,} values")
            waiting.extend((inner, depth + 1) for inner in (part.values() if isinstance(part, Mapping) else part))
