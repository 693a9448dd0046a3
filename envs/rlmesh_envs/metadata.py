"""Metadata: what an environment says of itself, whatever it put there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rlmesh_adapters.errors import faults_suppressed


def metadata_of(env: Any) -> Mapping[str, Any]:
    """Return an environment's metadata; nothing where they are no mapping, or there is no environment."""
    found = None
    with faults_suppressed():  # a property of the user's may raise anything
        found = getattr(env, "metadata", None)
    return found if isinstance(found, Mapping) else {}


def render_modes_of(env: Any) -> tuple[str, ...]:
    """Return the render modes that an environment lists, in its order; one text counts as one mode."""
    modes = metadata_of(env).get("render_modes")
    listed = [modes] if isinstance(modes, str) else modes if isinstance(modes, Iterable) else []
    return tuple(str(mode) for mode in listed if mode is not None)


def render_fps_of(env: Any) -> float | None:
    """Return the frames a second that an environment asks for, None where that is no positive finite number."""
    fps = metadata_of(env).get("render_fps")
    return float(fps) if isinstance(fps, (int, float)) and 0 < fps < math.inf else None
