"""YAML for routes: numbers are numbers, a key stands once, and every value knows its line."""

from __future__ import annotations

import math
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import yaml

from rlmesh_adapters.errors import RouteError, shortened

from .documents import Document, KeyPath, show_path

_MOST_BYTES = 1_000_000
_MOST_VALUES = 20_000
_DEEPEST = 100
_MOST_DIGITS = 1_000

_INT = re.compile(r"[-+]?[0-9]+")
# YAML 1.1 wants a dot and a signed exponent, so that it reads 1e-3 and 1.0e6 as text.
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.?(?:inf|Inf|INF)")
_NAN = re.compile(r"\.?(?:nan|NaN|NAN)")
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_COMMENT = re.compile(r"(?:^|\s)#")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def read_document(path: Path) -> Document:
    """Read a YAML file.

    Raises RouteError, with its line, for what cannot be read: no such file, not UTF-8, over a megabyte, bad
    syntax, a key that stands twice, an alias, a tag, or the word `None`.
    """
    try:
        # Read once: the file may be a pipe, or be edited meanwhile, and its hash must be of what is run.
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise RouteError(
                f"{path} has more than {_MOST_BYTES:,} bytes",
                where="--route",
                mend="name the route's YAML file",
            )
        text = data.decode("utf-8")
    except FileNotFoundError as error:
        raise RouteError(f"no such route file: {path}", where="--route", mend="check the path") from error
    except IsADirectoryError as error:
        raise RouteError(f"{path} is a folder", where="--route", mend="name a YAML file") from error
    except (OSError, ValueError) as error:  # a path may hold a null byte, a file what is not UTF-8
        raise RouteError(
            f"{path} cannot be read: {error}", where="--route", mend="write it as UTF-8 text"
        ) from error
    document = parse_document(text, path.name)
    return msgspec.structs.replace(document, sha256=sha256(data).hexdigest())


def parse_document(text: str, name: str) -> Document:
    """Parse YAML text; see `read_document`."""
    try:
        _refuse_unsupported(text, name)
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        raise RouteError(
            f"not YAML: {error.problem}", where=f"{name}:{line}", mend="check indentation, colons and quotes"
        ) from error
    except yaml.YAMLError as error:
        raise RouteError(f"not YAML: {str(error).splitlines()[0]}", where=name, mend="write plain text") from error
    reader = _Reader(name)
    value = {} if root is None else reader.read(root, ())
    return Document(name, value, reader.lines)


def _refuse_unsupported(text: str, name: str) -> None:
    """Raise RouteError for aliases, tags and deep nesting, before anything is built of them."""
    depth = 0
    for event in yaml.parse(text, yaml.SafeLoader):
        mark: Any = event.start_mark
        place = f"{name}:{mark.line + 1}"
        if isinstance(event, yaml.AliasEvent):
            raise RouteError(f"alias `*{event.anchor}` is not supported", where=place, mend="write the value out")
        if tag := getattr(event, "tag", None):
            raise RouteError(
                f"tag `{tag}` is not supported",
                where=place,
                mend="drop it; put the value in quotes if text is meant",
            )
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise RouteError(
                f"not YAML for a route: more than {_DEEPEST} levels inside one another",
                where=place,
                mend="check the brackets",
            )


def parse_scalar(text: str, where: str = "value") -> Any:
    """Read one value as it would be read in a route file, such as that of `--env-arg g=9.8`.

    where: what the value was given for. A `#` begins no comment in it.

    Raises RouteError for text that is no YAML value.
    """
    plain = text.strip()
    if not plain or (_COMMENT.search(plain) and plain[0] not in "'\"[{"):
        return plain or text
    try:
        return parse_document(text, "value").value
    except RouteError as error:
        mend = error.mend
        if plain[0] in "*%@&!|>`":  # signs of YAML's, which begin a pattern or a name here
            mend = f"where it is meant as it stands, put quotes into it: '\"{shortened(plain)}\"'"
        raise RouteError(f"`{shortened(text)}`: {error.cause}", where=where, mend=mend) from error


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
#: Words that YAML readers take for something else than text.
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"})


def flow_text(value: Any) -> str:
    """Return plain values as YAML in one line, which `parse_document` reads as the same values.

    value: None, bools, numbers, text, lists and mappings of them; whatever text holds is quoted where it must be.
    """
    if isinstance(value, dict):
        pairs = (f"{flow_text(str(key))}: {flow_text(part)}" for key, part in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow_text, value)) + "]"
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        quoted: str = yaml.safe_dump(value, default_style='"', width=math.inf)
        return quoted.rstrip("\n")
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    return (
        {None: "null", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else repr(value)
    )


class _Reader:
    def __init__(self, name: str) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._name = name

    def read(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if len(self.lines) > _MOST_VALUES:
            raise RouteError(
                f"more than {_MOST_VALUES:,} values",
                where=self._name,
                mend="keep data in a file of its own, and name that",
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(part, (*path, position)) for position, part in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise RouteError(
                    "a key must be a word", where=f"{self._name}:{line}", mend="write it as `key: value`"
                )
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

    def _scalar(self, node: yaml.ScalarNode, path: KeyPath) -> Any:
        text = str(node.value)
        if node.style is not None:  # quoted or a block: meant as text
            return text
        if text in _NULLS:
            return None
        if text in _BOOLS:
            return _BOOLS[text]
        if _INT.fullmatch(text):
            return self._whole(text, path)
        if _FLOAT.fullmatch(text):
            return float(text)
        if _INFINITE.fullmatch(text):
            return -math.inf if text.startswith("-") else math.inf
        if _NAN.fullmatch(text):
            return math.nan
        if text == "None":
            raise RouteError(
                "`None` is not a YAML value",
                where=self._place(path),
                mend="write null, or 'None' in quotes if the word is meant",
            )
        return text

    def _whole(self, text: str, path: KeyPath) -> int:
        if len(text) > _MOST_DIGITS:
            raise RouteError(
                f"a number of {len(text):,} digits, at most {_MOST_DIGITS:,} can be read",
                where=self._place(path),
                mend="write a smaller number, or put it in quotes if text is meant",
            )
        return int(text)

    def _place(self, path: KeyPath) -> str:
        return Document(self._name, None, self.lines).place(path)
