"""Publishing: a document on its way out must hold nothing that its writer cannot answer for."""

from __future__ import annotations

from typing import Any

from rlmesh_adapters.paths import NodePath

from .actions import Action
from .schema import DocumentError, Record
from .spec import ModelSpec
from .tags import EnvTags
from .trees import Tree, UnknownLeaf, leaves_of


def published(document: EnvTags | ModelSpec) -> dict[str, Any]:
    """Return a document's canonical form.

    Raises DocumentError, with its path, for a leaf of unknown kind, and for an unknown field whose name does not
    begin with `x-` or `ext.`; reading keeps both, for documents that are newer than their reader.
    """
    if isinstance(document, EnvTags):
        _check_tree(document.observation, "observation")
        _check_action(document.action, "action")
    else:
        _check_tree(document.input, "input")
        _check_action(document.output, "output")
    return document.to_dict()


def _check_tree(tree: Tree, name: str) -> None:
    for path, leaf in leaves_of(tree):
        if isinstance(leaf, UnknownLeaf):
            raise DocumentError(f'a leaf of unknown kind "{leaf.type}"', path=(name, *path, "type"))
        _check_fields(leaf, (name, *path))


def _check_action(action: Action, name: str) -> None:
    for position, part in enumerate(action.components):
        _check_fields(part, (name, "components", position))


def _check_fields(record: Record, path: NodePath) -> None:
    for field in record.bare_fields():
        raise DocumentError(
            f"unknown field `{field}` in {record.what}",
            path=(*path, field),
            mend=f"known here: {', '.join(record.field_names())}; prefix it with x- if it is for others",
        )
