"""Trees of a document: dicts and tuples, whose leaves say what stands there.

A mapping with a text under `type` is a leaf, any other mapping a dict node, a list a tuple node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from rlmesh_adapters.paths import NodePath

from .schema import DocumentError, Record, kind_name, mapping, plain, short

#: A leaf, or a dict or tuple of trees.
Tree = Any
_DEEPEST = 128


@dataclasses.dataclass(frozen=True)
class UnknownLeaf(Record):
    """A leaf of a kind that nobody here knows; kept as it came.

    type: the kind. role: its role, or empty. raw: all its fields.
    """

    what: ClassVar[str] = "a leaf"

    type: str = ""
    role: str = ""
    raw: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as it came."""
        return {key: plain(self.raw[key]) for key in sorted(self.raw)}


def parse_tree(value: Any, leaf: Callable[[Any], Record], where: str, depth: int = 0) -> Tree:
    """Read a tree.

    leaf: reads a leaf, given as a mapping with a text under `type`, or as an object. where: `observation tree`
    or `model input tree`, for messages.
    """
    if depth > _DEEPEST:
        raise DocumentError(f"the {where} has more than {_DEEPEST} levels inside one another")
    if isinstance(value, (list, tuple)):
        return tuple(_within(position, part, leaf, where, depth) for position, part in enumerate(value))
    if not isinstance(value, Mapping):
        if isinstance(value, Record):
            return leaf(value)
        raise DocumentError(f"the {where} holds {kind_name(value)}, expected a leaf, a mapping or a list")
    if "type" in value:
        if not isinstance(value["type"], str):
            raise DocumentError(f'the reserved key "type" may not name a dict child ({where})', path=("type",))
        return leaf(value)
    for key in value:
        if not isinstance(key, str):
            raise DocumentError(f"the {where} has the key {short(key)}, expected text", mend="put it in quotes")
    return {key: _within(key, value[key], leaf, where, depth) for key in sorted(value)}


def _within(segment: str | int, part: Any, leaf: Callable[[Any], Record], where: str, depth: int) -> Tree:
    try:
        return parse_tree(part, leaf, where, depth + 1)
    except DocumentError as error:
        raise error.within(segment) from None


def parse_leaf(value: Any, known: Mapping[str, type[Record]], where: str) -> Record:
    """Read a leaf of one of the known kinds, or keep it as it came.

    value: a mapping with a text under `type`, or an object. known: the kinds, by their `type`.
    where: `an observation`, for messages.
    """
    if isinstance(value, Record):
        if not isinstance(value, (*known.values(), UnknownLeaf)):
            raise DocumentError(f"{value.what} cannot stand in {where}")
        return value
    kind = known.get(value["type"])
    if kind is not None:
        return kind.parse(value)
    raw = mapping(value, f"a leaf of type {value['type']}")
    role = raw.get("role")
    return UnknownLeaf(type=value["type"], role=role if isinstance(role, str) else "", raw=raw)


def leaves_of(tree: Tree, path: NodePath = ()) -> Iterator[tuple[NodePath, Any]]:
    """Yield (path, leaf), dicts in the order of their keys."""
    if isinstance(tree, dict):
        for key in sorted(tree):
            yield from leaves_of(tree[key], (*path, key))
    elif isinstance(tree, tuple):
        for position, part in enumerate(tree):
            yield from leaves_of(part, (*path, position))
    else:
        yield path, tree
