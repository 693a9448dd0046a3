"""YAML for routes: numbers are numbers, a key stands once, and every value knows its line."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import yaml

from rlmesh_adapters.errors import RouteError

from .documents import Document, KeyPath, show_path

_MOST_BYTES = 1_000_000
_MOST_VALUES = 20_000

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
# YAML 1.1 wants a dot and a signed exponent, so that it reads 1e-3 and 1.0e6 as text.
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.?(?:inf|Inf|INF)")
_NAN = re.compile(r"\.?(?:nan|NaN|NAN)")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def read_document(path: Path) -> Document:
    """Read a YAML file.

    Raises RouteError, with its line, for what cannot be read: no such file, not UTF-8, over a megabyte, bad
    syntax, a key that stands twice, an alias, or the word `None`.
    """
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise RouteError(f"no such route file: {path}", where="--route", mend="check the path") from error
    except IsADirectoryError as error:
        raise RouteError(f"{path} is a folder", where="--route", mend="name a YAML file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise RouteError(
            f"{path} cannot be read: {error}", where="--route", mend="write it as UTF-8 text"
        ) from error
    if size > _MOST_BYTES:
        raise RouteError(f"{path} has {size:,} bytes, a route at most {_MOST_BYTES:,}", where="--route")
    return parse_document(text, path.name)


def parse_document(text: str, name: str) -> Document:
    """Parse YAML text; see `read_document`."""
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent):
                place: Any = event.start_mark
                raise RouteError(
                    f"alias `*{event.anchor}` is not supported",
                    where=f"{name}:{place.line + 1}",
                    mend="write the value out",
                )
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise RouteError(
            f"not YAML: {error.problem}", where=f"{name}:{line}", mend="check indentation, colons and quotes"
        ) from error
    except (yaml.YAMLError, RecursionError) as error:
        raise RouteError(f"not YAML: {error}", where=name, mend="write plain text") from error
    reader = _Reader(name)
    value = {} if root is None else reader.read(root, ())
    return Document(name, value, reader.lines)


def parse_scalar(text: str) -> Any:
    """Read one value as it would be read in a route file, such as that of `--env-arg g=9.8`.

    Raises RouteError for text that is no YAML value.
    """
    return parse_document(text, "value").value if text.strip() else text


class _Reader:
    def __init__(self, name: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._name = name

    def read(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if len(self.lines) > _MOST_VALUES:
            raise RouteError(f"more than {_MOST_VALUES:,} values", where=self._name)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(part, (*path, position)) for position, part in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise RouteError("a key must be a word", where=f"{self._name}:{line}")
            key = str(key_node.value)
            here = (*path, key)
            if key in found:
                raise RouteError(
                    f"key `{show_path(here)}` stands twice, first in line {self.lines[here]}",
                    where=f"{self._name}:{line}: {show_path(here)}",
                    mend="keep one of the two",
                )
            self.lines[here] = line
            found[key] = self.read(value_node, here)
        return found

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = str(node.value)
        if node.style is not None:  # quoted or a block: meant as text
            return text
        if text in _NULLS:
            return None
        if text in _BOOLS:
            return _BOOLS[text]
        if _INT.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _INFINITE.fullmatch(text):
            return -math.inf if text.startswith("-") else math.inf
        if _NAN.fullmatch(text):
            return math.nan
        if text == "None":
            raise RouteError(
                "`None` is not a YAML value",
                where=f"{self._name}:{node.start_mark.line + 1}",
                mend="write null, or 'None' in quotes if the word is meant",
            )
        return text
