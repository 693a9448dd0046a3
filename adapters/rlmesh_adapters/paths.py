"""Paths: where a value stands in a tree of dicts and tuples.

A segment is a text (key of a dict) or a number (position in a tuple); the empty path is the root.
"""

from __future__ import annotations

from typing import Any

#: Segments from the root of a tree to one of its nodes.
NodePath = tuple[str | int, ...]

#: Entry under which an observation that is no dict is found.
ROOT_KEY = "<obs>"


def show_path(path: NodePath) -> str:
    """Return a path as `robot.eef_pos`, `sensors[0]`, or `<root>`."""
    if not path:
        return "<root>"
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += f".{segment}" if text else segment
    return text


def walk(tree: Any, path: NodePath) -> Any:
    """Return the value at a path; raises KeyError, IndexError or TypeError where there is none."""
    for segment in path:
        tree = tree[segment]
    return tree
