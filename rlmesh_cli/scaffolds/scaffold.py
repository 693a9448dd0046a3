"""Scaffold: what was found of an environment, and the two files that were written for it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from .findings import Found
from .tagging import Tagging


class Scaffold(msgspec.Struct, frozen=True, kw_only=True):
    """What was found and written.

    tagging: tags, why there are none, or None if none were asked for.
    needs_here: whether the environment is found only where the folder that we stand in is on PYTHONPATH.
    """

    found: Found
    tagging: Tagging | str | None
    policy: Path
    route: Path
    needs_here: bool = False
