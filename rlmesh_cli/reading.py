"""Reading: which files a policy is made of, as it opens them while it is loaded and built."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any

from rlmesh_adapters.errors import is_installed_file

# What Python reads of its own accord, and what is no file in the usual sense.
_OWN = (".py", ".pyc", ".pyi", ".so", ".pth")
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")
_WRITING = frozenset("wax+")
# What is larger is data of which a part is looked at; it would take minutes to hash.
_MOST_BYTES = 16_000_000_000

_listeners: list[dict[str, None]] = []
_is_hooked = False


@contextlib.contextmanager
def files_read(heard: dict[str, None]) -> Iterator[None]:
    """Note the full paths of files that are opened to be read, in order.

    Libraries that read without Python's help are not heard. heard: what is noted there stays noted.
    """
    global _is_hooked
    if not _is_hooked:
        sys.addaudithook(_hear)
        _is_hooked = True
    _listeners.append(heard)
    try:
        yield
    finally:
        _listeners.pop()


def data_files(heard: dict[str, None]) -> list[str]:
    """Return those that are still there, and that are neither code nor parts of packages or of the system."""
    return [path for path in heard if not path.startswith(_SYSTEM) and _is_data(path)]


def _is_data(path: str) -> bool:
    if path.endswith(_OWN) or is_installed_file(path):
        return False
    try:
        known = os.stat(path)
        return stat.S_ISREG(known.st_mode) and known.st_size <= _MOST_BYTES
    except (OSError, ValueError):
        return False


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not _listeners:
        return
    path, mode, flags = arguments
    # Of `os.open` there are flags alone.
    is_read = not _WRITING & set(mode) if isinstance(mode, str) else flags & os.O_ACCMODE == os.O_RDONLY
    if is_read and isinstance(path, (str, bytes, os.PathLike)):
        _listeners[-1][os.path.abspath(os.fsdecode(path))] = None
