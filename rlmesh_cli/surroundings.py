"""Surroundings: what a policy that is probed should leave as it is."""

from __future__ import annotations

import os
import threading

from rlmesh_adapters.apply.threads import NAME


class Surroundings:
    """What a policy should leave as it is: the working folder, and how many threads there are."""

    def __init__(self) -> None:
        self._folder = os.getcwd()
        self._threads = _count_threads()

    def changes(self) -> list[str]:
        """Return what is different now."""
        found = []
        if os.getcwd() != self._folder:
            found.append("it changed the working folder")
        if _count_threads() > self._threads:
            found.append("it started threads")
        return found


def _count_threads() -> int:
    # The adapter's own come with the first large image.
    return sum(not thread.name.startswith(NAME) for thread in threading.enumerate())
