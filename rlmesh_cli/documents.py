"""Document: a route file's values, each with the line it stands in."""

from __future__ import annotations

from typing import Any

import msgspec

#: Keys and positions that lead to a value, such as ("env", "wrappers", 0).
KeyPath = tuple[str | int, ...]


class Document(msgspec.Struct, frozen=True):
    """A YAML document as plain values, and where each of them stands.

    name: of the file, for messages. lines: path of a value -> its 1-based line.
    sha256: of the bytes that were read, empty for text that was no file. below: where the values stand that do not
    stand in it.
    """

    name: str
    value: Any
    lines: dict[KeyPath, int]
    sha256: str = ""
    below: Document | None = None

    def place(self, path: KeyPath) -> str:
        """Return `file:line: key.path` of a value, or of the nearest one around it."""
        if self.below is not None and path not in self.lines and _holds(self.below.value, path):
            return self.below.place(path)
        known = path
        while known and known not in self.lines:
            known = known[:-1]
        line = self.lines.get(known, 1)
        return f"{self.name}:{line}: {show_path(path)}" if path else f"{self.name}:{line}"


def _holds(value: Any, path: KeyPath) -> bool:
    for part in path:
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True


def show_path(path: KeyPath) -> str:
    """Return a path as `env.wrappers[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def printable(text: str) -> str:
    r"""Return text with escapes such as `\x1b` in place of what would steer a terminal; line ends stay."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter == "\n" or letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )
