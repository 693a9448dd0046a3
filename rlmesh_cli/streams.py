"""Standard output is ours: what policies and environments print goes to standard error."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator

from .exits import BROKEN_PIPE


@contextlib.contextmanager
def user_output_to_stderr() -> Iterator[None]:
    """Send to standard error whatever is printed meanwhile, by Python or by libraries underneath it."""
    with contextlib.redirect_stdout(sys.stderr), _descriptor_to_stderr():
        yield


@contextlib.contextmanager
def _descriptor_to_stderr() -> Iterator[None]:
    if sys.__stdout__ is None:
        _keep_descriptor_free()
    try:
        is_real = sys.__stdout__ is not None and sys.__stdout__.fileno() == 1
        saved = os.dup(1) if is_real else -1
    except (OSError, ValueError):
        saved = -1
    if saved < 0:
        yield
        return
    try:
        _flush()
        with contextlib.suppress(OSError):  # nobody listens to what goes wrong either
            os.dup2(2, 1)
        yield
    finally:
        # What users wrote into the buffer of `sys.__stdout__` would come out after the switch.
        with contextlib.suppress(OSError, ValueError):
            _flush()
        os.dup2(saved, 1)
        os.close(saved)


@contextlib.contextmanager
def quiet_without_reader() -> Iterator[None]:
    """End the command without a word if whoever read our output went away, as `| head` does.

    Raises SystemExit with the code that a shell gives tools which end by SIGPIPE.
    """
    try:
        yield
    except BrokenPipeError:
        drop_output()
        raise SystemExit(BROKEN_PIPE) from None


def drop_output() -> None:
    """Write nothing more: what waits in the buffer of standard output would fail again when Python ends."""
    sys.stdout = io.StringIO()


def _keep_descriptor_free() -> None:
    """Keep the run's own files from becoming descriptor 1, where libraries print, if we were started without."""
    try:
        os.fstat(1)
    except OSError:
        with contextlib.suppress(OSError):  # standard error may be closed as well
            os.dup2(2, 1)


def _flush() -> None:
    if sys.__stdout__ is not None:
        sys.__stdout__.flush()
