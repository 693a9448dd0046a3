"""Filling: statistics that stand in files are put into a model spec, so that it is whole by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from .actions import Action
from .schema import DocumentError
from .spec import Concat, ModelSpec
from .trees import Tree


def fill_statistics(spec: ModelSpec, read: Callable[[str], Any]) -> ModelSpec:
    """Return a spec whose statistics all stand in it.

    read: returns the plain values of a JSON file.

    Raises DocumentError with the path of what a file does not hold.
    """
    try:
        filled = _fill_tree(spec.input, read)
    except DocumentError as error:
        raise error.within("input") from None
    return dataclasses.replace(spec, input=filled, output=_fill_action(spec.output, read))


def _fill_tree(tree: Tree, read: Callable[[str], Any]) -> Tree:
    if isinstance(tree, dict):
        return {key: _inside(key, inner, read) for key, inner in tree.items()}
    if isinstance(tree, tuple):
        return tuple(_inside(position, inner, read) for position, inner in enumerate(tree))
    if not isinstance(tree, Concat):
        return tree
    parts = [_filled(part, read, position) for position, part in enumerate(tree.components)]
    options = {name: getattr(tree, name) for name in Concat.field_names() if name != "components"}
    return Concat(*parts, **options, extra=tree.extra)


def _inside(segment: str | int, tree: Tree, read: Callable[[str], Any]) -> Tree:
    try:
        return _fill_tree(tree, read)
    except DocumentError as error:
        raise error.within(segment) from None


def _fill_action(action: Action, read: Callable[[str], Any]) -> Action:
    try:
        parts = [_filled(part, read, position) for position, part in enumerate(action.components)]
    except DocumentError as error:
        raise error.within("output") from None
    return Action(*parts, clip=action.clip, extra=action.extra)


def _filled(part: Any, read: Callable[[str], Any], position: int) -> Any:
    if part.normalize is None or part.normalize.file is None:
        return part
    try:
        return dataclasses.replace(part, normalize=part.normalize.filled(read))
    except DocumentError as error:
        raise error.within("components", position, "normalize") from None
