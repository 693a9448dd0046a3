"""What is said where a policy cannot be loaded: the cause, and the place in the user's code."""

from __future__ import annotations

import os
import re
import shlex
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlmesh_adapters.errors import LoadError, describe_error, user_place

#: What pickle says of a class that it looks for in what runs now as `__main__`, and torch of one that it refuses.
_OF_A_SCRIPT = re.compile(r"Can't get attribute '[^']+' on <module '([\w.]+\.)?__main__'|GLOBAL __main__\.\w+")


def no_policy_file(target: str) -> LoadError:
    """Return what is said of a path that is no policy file."""
    is_folder = os.path.isdir(target)
    return LoadError(
        f"{target} is {'a folder' if is_folder else 'no .py file'}",
        where="policy",
        mend="name a .py file in it, such as policy.py" if is_folder else "name a .py file, such as policy.py",
    )


def cannot_parse(path: Path, error: SyntaxError) -> LoadError:
    """Return what is said of a policy's file that is no Python, or that imports such a file."""
    if error.filename is not None and os.path.isfile(error.filename):
        where = f"{error.filename}:{error.lineno}"
    else:  # the whole file is no text, or the file had other text parsed
        own = _own_frame(error, str(path))
        where = f"{path}:{own.lineno} in {own.name}" if own is not None else str(path)
    line = (error.text or "").strip()
    mend = f"correct the line: {line}" if line else "write it as Python source in UTF-8"
    return LoadError(f"syntax error: {error.msg}", where=where, mend=mend)


def cannot_load(name: str, error: BaseException) -> LoadError:
    """Return what is said of a policy whose file, or module, raised while it ran; name: the file or the module."""
    mend = "run the file with python to see the whole traceback"
    if isinstance(error, ModuleNotFoundError):
        mend = f"install `{error.name}`, or run where it is installed"
    elif isinstance(error, ImportError) and "relative import" in str(error):
        file = Path(name).resolve()
        mend = f"it is part of a package: name it {file.parent.name}.{file.stem}, from the folder around that"
    elif isinstance(error, SystemExit):
        mend = 'put what the file does as a script under `if __name__ == "__main__":`'
    elif isinstance(error, OSError) and error.filename == name:
        return LoadError(f"{name} cannot be read: {error.strerror}", where=name, mend="see that it may be read")
    else:
        mend = known_mend(error, {}, [Path(name).parent]) or mend
    return LoadError(
        f"the policy cannot be loaded: {describe_error(error)}", where=place_of(error, name), mend=mend
    )


def known_mend(error: BaseException, params: Mapping[str, Any], folders: Sequence[Path]) -> str | None:
    """Return what to do about an error that a policy raised while it was loaded or built; None if unknown.

    params: that it is built with. folders: where a file may lie that it did not find: the policy's, the route's.
    """
    for link in _chain(error):
        if _OF_A_SCRIPT.search(describe_error(link)):
            return (
                "it was pickled by a script, as `__main__`: save it from a module that can be imported, "
                "or save the state dict"
            )
        if isinstance(link, FileNotFoundError):
            for name in _names(link, params):
                found = next((folder / name for folder in folders if os.path.exists(folder / name)), None)
                if found is not None:
                    return _name_it(found, name, params)
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, and what it was raised from or in the place of."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        link = link.__cause__ or link.__context__


def _names(error: FileNotFoundError, params: Mapping[str, Any]) -> list[Path]:
    """Return what may be the file that was not found, as it is seen from the working folder."""
    if isinstance(error.filename, (str, bytes)):
        names = [os.fsdecode(error.filename)]
    else:  # it was raised with a text of its own
        text = describe_error(error)
        names = [value for value in params.values() if isinstance(value, str) and value in text]
    folder = Path.cwd()
    missing = [Path(name) for name in names if name and not os.path.exists(name)]
    below = [path.relative_to(folder) if path.is_relative_to(folder) else path for path in missing]
    return [path for path in below if not path.is_absolute()]


def _name_it(found: Path, name: Path, params: Mapping[str, Any]) -> str:
    folder = Path.cwd()
    shown = shlex.quote(str(found.relative_to(folder) if found.is_relative_to(folder) else found))
    param = next((key for key, value in params.items() if isinstance(value, str) and Path(value) == name), None)
    given = shown if param is None else f"--policy-arg {param}={shown}"
    return f"give {given}: paths are seen from the folder that the command is typed in, {folder}"


def place_of(error: BaseException, name: str) -> str:
    """Return file and line of the last frame in the file `name`, else of the last one that is the user's."""
    own = _own_frame(error, name)
    if own is not None:
        return f"{own.filename}:{own.lineno} in {own.name}"
    return user_place(error.__traceback__) or name


def _own_frame(error: BaseException, name: str) -> traceback.FrameSummary | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if frame.filename == name), None)
