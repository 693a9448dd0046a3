"""What is said where a policy cannot be loaded: the cause, and the place in the user's code."""

from __future__ import annotations

import os
import traceback
from pathlib import Path

from rlmesh_adapters.errors import LoadError, describe_error, user_place


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
    return LoadError(
        f"the policy cannot be loaded: {describe_error(error)}", where=place_of(error, name), mend=mend
    )


def place_of(error: BaseException, name: str) -> str:
    """Return file and line of the last frame in the file `name`, else of the last one that is the user's."""
    own = _own_frame(error, name)
    if own is not None:
        return f"{own.filename}:{own.lineno} in {own.name}"
    return user_place(error.__traceback__) or name


def _own_frame(error: BaseException, name: str) -> traceback.FrameSummary | None:
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame for frame in reversed(frames) if frame.filename == name), None)
