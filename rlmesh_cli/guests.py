"""Running a user's file as a good host: what it changes in the process is put back."""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import os
import random
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from rlmesh_adapters.errors import HarnessError
from rlmesh_envs.registry import forget_environments

#: Level of a root logger that nobody has changed.
_WARNING = 30


@contextlib.contextmanager
def as_guest() -> Iterator[None]:
    """Run code that may print, change folder, rewrite argv, take over logging or seed the global generators.

    Prints go to standard error. Everything else is as before afterwards, also on error.
    """
    folder, argv = os.getcwd(), list(sys.argv)
    log_state = _log_state()
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - the legacy global state is what a guest may have seeded
    torch = sys.modules.get("torch")
    torch_state = torch.get_rng_state() if torch is not None and hasattr(torch, "get_rng_state") else None
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.chdir(folder)
        sys.argv[:] = argv
        _restore_logging(*log_state)
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        if torch is not None and torch_state is not None:
            torch.set_rng_state(torch_state)


def _log_state() -> tuple[int, int, list[Any]]:
    """Return level, disabled level and handlers of the root logger, as they are or as they will be at first."""
    # Not imported for this alone: it is a part of the time that a start takes.
    logging = sys.modules.get("logging")
    if logging is None:
        return _WARNING, 0, []
    root = logging.getLogger()
    return root.level, root.manager.disable, list(root.handlers)


def _restore_logging(level: int, disabled: int, handlers: list[Any]) -> None:
    logging = sys.modules.get("logging")
    if logging is not None:
        root = logging.getLogger()
        root.setLevel(level)
        logging.disable(disabled)
        root.handlers[:] = handlers


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Give the folder that a command was typed in, and come back to it, wherever user code goes meanwhile.

    Raises HarnessError if it is not there any more.
    """
    try:
        folder = Path.cwd()
    except OSError as error:
        raise HarnessError(
            "the folder that this was typed in is not there any more", where=".", mend="go to one that is: cd"
        ) from error
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            os.chdir(folder)


@contextlib.contextmanager
def seeded_globals(seed: int) -> Iterator[None]:
    """Let the global generators begin from a seed, so that what draws from them does the same again.

    They are put back afterwards. torch's begins from a seed of its own, unless somebody sets another.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - policies draw from the legacy global generator
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002


def module_name(path: Path) -> str:
    """Return the name a file is loaded under: its own, made unique by its place; the same in every process."""
    digest = sha256(str(path).encode()).hexdigest()[:8]
    stem = "".join(letter if letter.isalnum() else "_" for letter in path.stem)
    return f"rlmesh_policy_{stem}_{digest}"


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles what the file says now.

    Python takes compiled code for current where size and second of the change agree, and would score the policy
    that stood there before; and it would leave a folder of compiled code beside the user's file.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def run_file(path: Path, *, again: bool = False) -> ModuleType:
    """Run a Python file as a module of its own and return it.

    Its folder is appended to `sys.path`, so that it can import its neighbours without hiding anything. The module
    is registered before it runs, as dataclasses and pickling need, and removed if it raises.

    again: run it anew under yet another name, although it was loaded before.
    """
    name = module_name(path)
    if name in sys.modules and not again:
        return sys.modules[name]
    if again:
        name += f"_{sum(known.startswith(name) for known in sys.modules)}"
    append_folder(path.parent)
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, str(path)))
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with as_guest():
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Let code be loaded that has nothing in common with what is loaded after it.

    Folders that are added to `sys.path` meanwhile are taken away again, and modules that were imported from them
    are forgotten, with the environments that these modules define. Two policies may then have neighbours of one
    name, and each gets its own.
    """
    path, modules = list(sys.path), set(sys.modules)
    try:
        yield
    finally:
        added = {os.path.realpath(folder) for folder in sys.path if folder not in path}
        sys.path[:] = path
        # A package that was loaded in part before is left whole.
        fresh = {name for name in sys.modules.keys() - modules if name.split(".", 1)[0] not in modules}
        forgotten = {name for name in fresh if folder_of(name) in added}
        forget_environments(forgotten)
        for name in forgotten:
            del sys.modules[name]


def folder_of(name: str) -> str | None:
    """Return the folder in which a module, or the package that it belongs to, was found."""
    module = sys.modules.get(name.split(".", 1)[0])
    places = [*(getattr(module, "__path__", None) or ()), getattr(module, "__file__", None)]
    return os.path.dirname(os.path.realpath(places[0])) if places[0] else None


def append_folder(folder: Path) -> None:
    """Let modules of a folder be imported, after all others of the same name."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
