"""Roles: what a part of an observation or action means, and the widths that some of them fix."""

from __future__ import annotations

from collections.abc import Iterable

from .errors import nearest

#: Roles that every party knows -> the width that the role fixes, None where any (or the encoding's) will do.
ROLES: dict[str, int | None] = {
    "image/primary": None,
    "image/secondary": None,
    "image/wrist": None,
    "text/instruction": None,
    "proprio/joint_pos": None,
    "proprio/joint_vel": None,
    "proprio/eef_pos": 3,
    "proprio/eef_pos_2": 3,
    "proprio/eef_rot": None,
    "proprio/eef_rot_2": None,
    "proprio/gripper": None,
    "proprio/gripper_2": None,
    "action/joint_pos": None,
    "action/joint_vel": None,
    "action/delta_eef_pos": 3,
    "action/delta_eef_pos_2": 3,
    "action/delta_eef_rot": None,
    "action/delta_eef_rot_2": None,
    "action/gripper": None,
    "action/gripper_2": None,
}
#: Roles that begin so are the user's own.
OWN_PREFIX = "x/"


def is_sanctioned(role: str) -> bool:
    """Tell whether a role is known, or the user's own by its prefix."""
    return role in ROLES or role.startswith(OWN_PREFIX)


def fixed_width(role: str) -> int | None:
    """Return the width that a role fixes, None if it fixes none."""
    return ROLES.get(role)


def quoted(names: Iterable[str]) -> str:
    """Return names as `["a", "b"]`."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def nearest_role(role: str, available: Iterable[str]) -> str:
    """Return the role that looks most like `role`, or an empty text."""
    found = nearest(role, available, limit=1)
    return found[0] if found else ""
