"""Where a run came from: versions, machine, git state and file hashes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rlmesh_adapters.errors import is_installed_file

from . import __version__
from .guests import folder_of

_GIT_SECONDS = 5.0


def versions(modules: tuple[str, ...] = ()) -> dict[str, str]:
    """Return versions of Python, of ourselves, and of packages that are loaded already.

    modules: further modules, of which the top package is looked at, such as the environment's.
    """
    found = {"python": sys.version.split()[0], "rlmesh-cli": __version__}
    tops = {name.split(".", 1)[0] for name in modules}
    for name in ("gymnasium", "numpy", "msgspec", "torch", "jax", *sorted(tops)):
        version = getattr(sys.modules.get(name), "__version__", None)
        if isinstance(version, str):
            found.setdefault(name, version)
    return found


def host() -> dict[str, Any]:
    """Return the machine's name, system and processor count."""
    system = os.uname()
    return {
        "name": system.nodename,
        "system": f"{system.sysname} {system.release}",
        "machine": system.machine,
        "cpus": os.cpu_count(),
    }


class GitState:
    """Asks git about a folder while something else goes on.

    folder: any folder of a checkout.
    """

    def __init__(self, folder: Path) -> None:
        self._answer: dict[str, Any] | None = None
        self._process: subprocess.Popen[str] | None = None
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [
                    "git",
                    "--no-optional-locks",
                    "-C",
                    str(folder),
                    "status",
                    "--porcelain=v2",
                    "--branch",
                    "--untracked-files=no",
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )

    def read(self) -> dict[str, Any] | None:
        """Return commit, branch and whether tracked files are changed; None outside a checkout."""
        process, self._process = self._process, None
        if process is not None:
            self._answer = _git_answer(process)
        return self._answer

    def close(self) -> None:
        """End git if its answer is not wanted any more; idempotent."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()


def _git_answer(process: subprocess.Popen[str]) -> dict[str, Any] | None:
    try:
        text, _ = process.communicate(timeout=_GIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    if process.returncode != 0:
        return None
    heads = dict(_heads(text))
    changed = any(line and not line.startswith("#") for line in text.splitlines())
    return {"commit": heads.get("branch.oid"), "branch": heads.get("branch.head"), "dirty": changed}


def _heads(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if line.startswith("# "):
            key, _, value = line[2:].partition(" ")
            yield key, value


def file_record(path: Path) -> dict[str, Any]:
    """Return a file's path, size in bytes and SHA-256."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return {"path": str(path), "bytes": path.stat().st_size, "sha256": digest.hexdigest()}


def files_of(paths: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield records of files, in order, of those that can be read."""
    for path in paths:
        with contextlib.suppress(OSError):
            yield file_record(Path(path).resolve())


def files_beside(modules: Iterable[str], file: Path | None) -> list[str]:
    """Return the files of loaded modules that lie where some modules do, or beside a file, and are not installed.

    Such as what a policy or an environment imports from its own project.
    """
    folders = {folder for name in modules if name and (folder := folder_of(name)) is not None}
    folders |= {str(file.parent)} if file is not None else set()
    roots = tuple(os.path.join(folder, "") for folder in folders)
    loaded = {
        getattr(module, "__dict__", {}).get("__file__")
        for name, module in list(sys.modules.items())
        if name != "__main__"
    }
    # As texts: with some thousand modules, paths take longer than the rest of a short run.
    near = (path for path in loaded if isinstance(path, str) and path.startswith(roots))
    return sorted(path for path in near if not is_installed_file(path))


def weight_files(params: Mapping[str, Any], policy: object, read: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return records of the files that a policy's parameters, or its attribute `weights`, name, or that it read.

    `weights` is a path or a list of paths; anything else of that name, such as an array, names no file.
    read: files that were opened while the policy was loaded and built.
    """
    found: dict[Path, dict[str, Any]] = {}
    for candidate in (*params.values(), *_named_weights(policy), *read):
        if isinstance(candidate, (str, Path)) and str(candidate):
            with contextlib.suppress(OSError, ValueError):
                path = Path(candidate).resolve()
                if path.is_file() and path not in found:
                    found[path] = file_record(path)
    return list(found.values())


def _named_weights(policy: object) -> Sequence[object]:
    try:
        named = getattr(policy, "weights", ())
    except (Exception, SystemExit):  # a property of the user's may raise anything
        return ()
    if isinstance(named, (str, Path)):
        return (named,)
    return named if isinstance(named, (list, tuple)) else ()
