"""Threads: how many of them numerical libraries may use in each of several workers."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

#: Environment variables that say how many threads numerical libraries use.
THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


def core_count() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def limit_threads(count: int) -> None:
    """Let libraries that are loaded from now on, and torch if it is there, use so many threads.

    What the user has set stays. A BLAS that was loaded before has its threads already.
    """
    for name in THREAD_SETTINGS:
        os.environ.setdefault(name, str(count))
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "set_num_threads"):
        torch.set_num_threads(count)


@contextlib.contextmanager
def threads_of_children(count: int) -> Iterator[None]:
    """Let processes that are started meanwhile use so many threads; what the user has set stays."""
    added = [name for name in THREAD_SETTINGS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, str(count)))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
