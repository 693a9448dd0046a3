"""Standard output is ours: what policies and environments print goes to standard error."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def user_output_to_stderr() -> Iterator[None]:
    """Send to standard error whatever is printed meanwhile, by Python or by libraries underneath it."""
    with contextlib.redirect_stdout(sys.stderr), _descriptor_to_stderr():
        yield


@contextlib.contextmanager
def _descriptor_to_stderr() -> Iterator[None]:
    try:
        is_real = sys.__stdout__ is not None and sys.__stdout__.fileno() == 1
        saved = os.dup(1) if is_real else -1
    except (OSError, ValueError):
        saved = -1
    if saved < 0:
        yield
        return
    try:
        assert sys.__stdout__ is not None
        sys.__stdout__.flush()
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(saved, 1)
        os.close(saved)
