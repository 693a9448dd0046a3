"""What a user can mend: errors that name cause, place and mend; and failures that are counted."""

from __future__ import annotations

import contextlib
import difflib
import traceback
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType

import msgspec

# Of an exception's text; lists of mismatched weights go on for pages.
_LONGEST = 400
# Where the standard library is.
_STANDARD = f"{traceback.__file__.rpartition('/')[0]}/"
_INSTALLED = ("site-packages", "dist-packages", "/rlmesh_adapters/", "/rlmesh_envs/", "/rlmesh_cli/")


class HarnessError(Exception):
    """A mistake that the user can mend; shown without a traceback, exit code 2.

    cause: what is wrong, with the offending value.
    where: file, line, key or corner it was found at; empty if there is no place.
    mend: what to do about it; empty if there is nothing general to say.
    """

    def __init__(self, cause: str, *, where: str = "", mend: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        lines = [self.cause]
        if self.where:
            lines.append(f"  at    {self.where}")
        if self.mend:
            lines.append(f"  mend  {self.mend}")
        return "\n".join(lines)


class RouteError(HarnessError):
    """The route, as read from file and flags, cannot be meant."""


class LoadError(HarnessError):
    """The policy cannot be loaded or built."""


class EnvironmentBuildError(HarnessError):
    """The environment cannot be found or built."""


class PolicyCallError(HarnessError):
    """The policy failed on its very first call, so nothing can be scored."""


class ActionError(HarnessError):
    """What the policy returned does not fit the environment's action space."""


class OverdueError(BaseException):
    """A call has not returned in time. No policy catches it as one of its own errors."""


_wishes: tuple[type[BaseException], ...] = (KeyboardInterrupt, GeneratorExit, OverdueError)


def expect_no_interrupts() -> None:
    """Take a KeyboardInterrupt for a fault like any other from now on: this process does not listen to Ctrl-C."""
    global _wishes
    _wishes = (OverdueError,)


def is_fault(error: BaseException) -> bool:
    """Tell whether an exception is a fault of the code that raised it, and no wish of somebody else's to end it.

    Some faults are no Exception: code that leaves (SystemExit), that is cancelled, or panics in another language.
    """
    return not isinstance(error, _wishes)


@contextlib.contextmanager
def faults_suppressed() -> Iterator[None]:
    """Let nothing come out of the user's code but a wish to end; for what has no bearing on a result."""
    try:
        yield
    except BaseException as error:
        if not is_fault(error):
            raise


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why one episode could not be finished. Plain text, so that it crosses process borders.

    phase: `reset`, `step` (the environment), `policy` (the call), `action` (its value), `adapter` (a conversion).
    message: one line with type and text of the error.
    detail: file, line and function of the user's code it came from, or empty.
    mend: what to do about it, or empty.
    is_shared: whether it took other episodes along, so that it is not known whose doing it was.
    """

    phase: str
    message: str
    detail: str = ""
    mend: str = ""
    is_shared: bool = False


#: Shared, so typed as what nobody writes to.
NO_FAILURES: Mapping[int, Failure] = {}


def failure_from(error: BaseException, phase: str) -> Failure:
    """Describe an exception of the user's code as a `Failure` of `phase`."""
    if isinstance(error, HarnessError):
        return Failure(phase=phase, message=error.cause, detail=error.where, mend=error.mend)
    return Failure(phase=phase, message=describe_error(error), detail=user_place(error.__traceback__))


def describe_error(error: BaseException) -> str:
    """Return type and text of an exception in one line, such as `ValueError: bad shape`.

    Long texts are cut. What it was raised from is told where its own text does not say so. An exception whose own
    text cannot be made does not break the report.
    """
    text = _one_line(error)
    name = type(error).__name__
    described = f"{name}: {text}" if text else name
    origin = error.__cause__
    if origin is None or isinstance(error, HarnessError):
        return described
    said = _one_line(origin)
    if said and said in text:
        return described
    return f"{described} (from {type(origin).__name__}{': ' if said else ''}{said})"


def _one_line(error: BaseException) -> str:
    try:
        text = error.cause if isinstance(error, HarnessError) else str(error)
    except Exception:  # a user's __str__ may raise anything
        text = "(its message cannot be shown)"
    # A lone surrogate, as from a file name that is no UTF-8, can be stored nowhere.
    line = " ".join(text.encode("utf-8", "backslashreplace").decode().split())
    return shortened(line, _LONGEST)


def shortened(text: str, most: int = 80) -> str:
    """Return text as it is, or its beginning if it has more than `most` letters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def user_place(trace: TracebackType | None) -> str:
    """Return `file:line in function` of the innermost frame that is the user's, or an empty text.

    Frames of installed packages are passed by, unless there are no others.
    """
    frames = traceback.extract_tb(trace)
    if not frames:
        return ""
    own = [frame for frame in frames if not is_installed_file(frame.filename)]
    last = (own or frames)[-1]
    return f"{last.filename}:{last.lineno} in {last.name}"


def is_installed_file(filename: str) -> bool:
    """Tell whether a file is an installed package's, or ours, and so not the user's."""
    return filename.startswith(("<", _STANDARD)) or any(folder in filename for folder in _INSTALLED)


def nearest(name: str, known: Iterable[str], *, limit: int = 3) -> list[str]:
    """Return up to `limit` known names that look like `name`, best first; case is ignored."""
    by_lower = {candidate.lower(): candidate for candidate in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=limit, cutoff=0.5)
    return [by_lower[match] for match in found]
