"""Examination: all checks, in the order in which they are shown."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_envs.packages import is_installed

from .checks import Check, shielded
from .children import Children
from .machine import check_machine
from .software import check_extras, check_software
from .terminal import check_terminal
from .worlds import BACKENDS, check_rendering, check_worlds


def examine(out: Path) -> list[Check]:
    """Look at everything; a part that is broken hides no other.

    out: folder of the runs.
    """
    children = Children()
    with contextlib.closing(children):
        children.start("core", "core")
        children.start("cartpole", "cartpole")
        children.start("encoder", "encoder")
        if is_installed("mujoco"):
            children.start("gl", "gl")
            for backend in BACKENDS:
                children.start(f"gl-{backend}", "gl", {"MUJOCO_GL": backend, "PYOPENGL_PLATFORM": backend})
        # What is looked at in this process comes first, while the children work.
        machine = shielded("machine", lambda: check_machine(out))
        terminal = shielded("terminal", check_terminal)
        return [
            *shielded("software", lambda: check_software(children)),
            *shielded("extras", lambda: check_extras(children)),
            *shielded("environments", lambda: check_worlds(children)),
            *shielded("rendering", lambda: check_rendering(children)),
            *machine,
            *terminal,
        ]


def is_sound(checks: list[Check]) -> bool:
    """Tell whether everything that a run needs works."""
    return not any(check.is_core and check.state == "broken" for check in checks)


def examination_record(checks: list[Check]) -> dict[str, Any]:
    """Return what `doctor --json` prints."""
    return {"schema": "rlmesh.doctor.v1", "is_sound": is_sound(checks), "checks": msgspec.to_builtins(checks)}
