"""Listing: ids of environments as the sources of installed packages spell them, without importing any.

Importing gymnasium takes twenty times as long as reading it, and other packages load simulators.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from .packages import PACKAGES

#: Where packages register their environments, inside the folder of each.
_FILES = {"gymnasium": "envs/__init__.py"}
_ID = re.compile(r"""\bid\s*=\s*f?["']([^"'\s]+)["']""")
#: Parts of ids that are filled in: the plain variant has nothing there.
_FILLED = re.compile(r"\{\w+\}")
_WHOLE = re.compile(r"[\w./-]+-v\d+")


def environment_ids() -> list[str]:
    """Return the ids that gymnasium and known packages register, in order; names made at run time are not seen."""
    modules = dict.fromkeys(("gymnasium", *(module for _, module, _ in PACKAGES)))
    return sorted({name for module in modules for name in ids_of(module)})


def ids_of(module: str) -> list[str]:
    """Return the ids in the source of a module that registers environments; none if it is not installed."""
    try:
        spec = importlib.util.find_spec(module)
        if spec is None or spec.origin is None:
            return []
        file = Path(spec.origin).parent / _FILES.get(module, "__init__.py")
        found = _ID.findall(file.read_text(encoding="utf-8", errors="replace"))
    except (ImportError, ValueError, OSError):
        return []
    filled = [(text, _FILLED.sub("", text)) for text in found]
    return [name for text, name in filled if "{" not in name and (name == text or _WHOLE.fullmatch(name))]
