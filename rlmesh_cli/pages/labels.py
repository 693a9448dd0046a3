"""Labels: text of users where plots show it, and data where a script reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from rlmesh_adapters.errors import shortened
from rlmesh_cli.documents import printable

# Plots read some HTML in their texts, and these references.
_PLOTTED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# In a script these could end it, or begin a comment; the last two are line ends to older readers.
_SCRIPTED = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}
_LONGEST = 60


def plotted(text: str, most: int = _LONGEST) -> str:
    """Return text as a plot shows it letter by letter, on one line and not too long."""
    return shortened(" ".join(printable(text).split()), most).translate(_PLOTTED)


def scripted(value: Any) -> str:
    """Return JSON that can stand inside of a script element; what is not finite is null."""
    return msgspec.json.encode(_shown(msgspec.to_builtins(value))).decode().translate(_SCRIPTED)


def _shown(value: Any) -> Any:
    """Return plain data with all text printable: half a surrogate has no bytes."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(str(name)): _shown(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(part) for part in value]
    return value
