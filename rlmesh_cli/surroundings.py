"""Surroundings: what a policy that is probed should leave as it is."""

from __future__ import annotations

import os
import threading


class Surroundings:
    """What a policy should leave as it is: the working folder, and how many threads there are."""

    def __init__(self) -> None:
        self._folder = os.getcwd()
        self._threads = threading.active_count()

    def changes(self) -> list[str]:
        """Return what is different now."""
        found = []
        if os.getcwd() != self._folder:
            found.append("it changed the working folder")
        if threading.active_count() > self._threads:
            found.append("it started threads")
        return found
