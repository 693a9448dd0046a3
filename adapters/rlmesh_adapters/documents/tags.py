"""Env tags: what an environment's observation and action mean."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from rlmesh_adapters.plans import Ends

from .actions import Action
from .checks import count, ends, flag, nullable, one_of, pair, text
from .encodings import accepted, written
from .schema import DocumentError, Record, entry, kind_name
from .trees import Tree, parse_leaf, parse_tree

_LAYOUT = one_of("hwc", "chw")
ORDERS = ("rgb", "bgr")
FLIPS = ("vertical", "horizontal")


@dataclasses.dataclass(frozen=True)
class ImageTag(Record):
    """A camera image.

    layout: order of its axes. upside_down: it is turned by 180 degrees.

    Beyond v1: channel_order: of three channels. flip: it is mirrored, top to bottom (`vertical`) or left to right.
    range: (lo, hi) of its numbers, for floats.
    """

    what: ClassVar[str] = "an image tag"
    leaf_type: ClassVar[str] = "image"
    is_open: ClassVar[bool] = True

    role: str = entry(text, always=True)
    layout: str = entry(_LAYOUT, default="hwc", always=True)
    upside_down: bool = entry(flag, default=False, always=True)
    channel_order: str | None = entry(nullable(one_of(*ORDERS)), default=None)
    flip: str | None = entry(nullable(one_of(*FLIPS)), default=None)
    range: tuple[float, float] | None = entry(nullable(pair), default=None)


class _Ranged(Record):
    """What has encodings, which are written in canonical form."""

    def to_dict(self) -> dict[str, Any]:
        plain = super().to_dict()
        if plain.get("encoding") is not None:
            plain["encoding"] = written(tuple(plain["encoding"]))
        return plain


@dataclasses.dataclass(frozen=True)
class StateTag(_Ranged):
    """A flat vector of numbers with one meaning.

    encoding: of a rotation; the first that is known is what the numbers are. range: (lo, hi), or of each number.
    """

    what: ClassVar[str] = "a state tag"
    leaf_type: ClassVar[str] = "state"
    is_open: ClassVar[bool] = True

    role: str = entry(text, always=True)
    encoding: tuple[str, ...] | None = entry(nullable(accepted), default=None, always=True)
    range: Ends | None = entry(nullable(ends), default=None, always=True)


@dataclasses.dataclass(frozen=True)
class TextTag(Record):
    """A text."""

    what: ClassVar[str] = "a text tag"
    leaf_type: ClassVar[str] = "text"
    is_open: ClassVar[bool] = True

    role: str = entry(text, always=True)


@dataclasses.dataclass(frozen=True)
class Field(_Ranged):
    """A run of `dim` numbers of a split vector; without a role it is passed over."""

    what: ClassVar[str] = "a field"

    role: str | None = entry(nullable(text), default=None, always=True)
    dim: int = entry(count(1), default=1, always=True)
    encoding: tuple[str, ...] | None = entry(nullable(accepted), default=None, always=True)
    range: Ends | None = entry(nullable(ends), default=None, always=True)

    @classmethod
    def parse(cls, value: Any) -> Field:
        """Read one; its width must be given."""
        if isinstance(value, dict) and "dim" not in value:
            raise DocumentError("a field needs `dim`", mend="say how many numbers it has")
        return super().parse(value)

    def check(self) -> None:
        """Refuse what a passed-over run cannot have."""
        if self.role is None and (self.encoding is not None or self.range is not None):
            raise DocumentError("a field without a role has no encoding and no range", mend="give it a role")


@dataclasses.dataclass(frozen=True, init=False)
class Split(Record):
    """One flat vector cut into consecutive fields."""

    what: ClassVar[str] = "a split"
    leaf_type: ClassVar[str] = "split"

    fields: tuple[Field, ...] = entry(lambda value: _fields(value), always=True)

    def __init__(self, *fields: Field, extra: Any = None) -> None:
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "extra", extra or {})
        self.__post_init__()

    @classmethod
    def build(cls, values: dict[str, Any], extra: dict[str, Any]) -> Split:
        """See Record."""
        given = values["fields"]
        if not isinstance(given, (list, tuple)):
            raise DocumentError(f"must be a list of at least one field, got {kind_name(given)}", path=("fields",))
        return cls(*given, extra=extra)

    def check(self) -> None:
        """Refuse a role that stands twice."""
        roles = [field.role for field in self.fields if field.role is not None]
        twice = sorted({role for role in roles if roles.count(role) > 1})
        if twice:
            raise DocumentError(f'field role "{twice[0]}" stands twice', path=("fields",))


def _fields(value: Any) -> tuple[Field, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise DocumentError(f"must be a list of at least one field, got {kind_name(value)}")
    fields = []
    for position, part in enumerate(value):
        try:
            fields.append(Field.parse(part))
        except DocumentError as error:
            raise error.within(position) from None
    return tuple(fields)


_LEAVES: dict[str, type[Record]] = {leaf.leaf_type: leaf for leaf in (ImageTag, StateTag, TextTag, Split)}


def _leaf(value: Any) -> Record:
    return parse_leaf(value, _LEAVES, "an observation")


def _observation(value: Any) -> Tree:
    return parse_tree(value, _leaf, "observation tree")


@dataclasses.dataclass(frozen=True)
class EnvTags(Record):
    """What an environment gives, and what drives it.

    observation: a tree of tags in the structure of the observation space. action: see Action.
    """

    what: ClassVar[str] = "env tags"

    observation: Tree = entry(_observation, always=True)
    action: Action = entry(Action.parse, always=True)
