"""Guesses: env tags for an environment that has none, by the shapes, names and bounds of its spaces.

A guess is marked as one wherever it is written, with what it rests on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from rlmesh_adapters.paths import ROOT_KEY, NodePath
from rlmesh_adapters.roles import fixed_width
from rlmesh_adapters.spaces import INTEGER_KINDS, SpaceView

from .words import bounds, kind, place, title

#: Pixels an edge of what is taken for a camera; less is a grid of cells.
_LEAST_EDGE = 16
_CHANNELS = (1, 3, 4)
#: What a name holds -> the role that is guessed, tried in this order.
_STATES = (
    (r"gripper|finger", "proprio/gripper"),
    (r"(eef|(?<![a-z])ee|tcp|end_effector|hand)_?(rot|quat|ori|axis_angle)", "proprio/eef_rot"),
    (r"(eef|(?<![a-z])ee|tcp|end_effector|hand)_?(pos|xyz|state)", "proprio/eef_pos"),
    (r"joint\w*vel|qvel", "proprio/joint_vel"),
    (r"joint|qpos", "proprio/joint_pos"),
)
#: Seven numbers from -1 to 1 drive most arms, and four those that do not turn.
_ARMS = {
    7: (("action/delta_eef_pos", 3), ("action/delta_eef_rot", 3), ("action/gripper", 1)),
    4: (("action/delta_eef_pos", 3), ("action/gripper", 1)),
}
_ROBOTS = re.compile(r"gripper|eef|robot|proprio|joint|achieved_goal", re.IGNORECASE)


class Guess(msgspec.Struct, frozen=True):
    """One leaf or component of the tags, and what it rests on. tag: plain values."""

    tag: Mapping[str, Any]
    reason: str


class LeftOut(msgspec.Struct, frozen=True):
    """A part of an observation that no tag can be given to."""

    reason: str


#: A tree of guesses in the structure of an observation space.
GuessTree = Guess | LeftOut | dict[str, Any] | list[Any]


class Observation:
    """Guesses what the parts of an observation are. view: of one lane.

    tree: the guesses in the structure of the space; `LeftOut` where nothing can be said of it.
    """

    def __init__(self, view: SpaceView) -> None:
        self._roles: set[str] = set()
        self._cameras = 0
        #: (path, view, role) of all that were taken for states.
        self.states: list[tuple[NodePath, SpaceView, str]] = []
        self.tree: GuessTree = self._guess(view, ())

    def _guess(self, view: SpaceView, path: NodePath) -> GuessTree:
        if view.kind == "dict":
            inside = {str(name): self._entry(name, child, (*path, name)) for name, child in view.children}
            return inside if any(map(_is_tagged, inside.values())) else LeftOut(f"no part of {place(path)} can be")
        if view.kind == "tuple":
            parts = [self._guess(child, (*path, position)) for position, child in view.children]
            if parts and all(map(_is_tagged, parts)):
                return parts
            # Tags of a Tuple name every part.
            return LeftOut(f"{place(path)} is a Tuple of which not every part can be")
        return self._leaf(view, path)

    def _entry(self, name: str | int, child: SpaceView, path: NodePath) -> GuessTree:
        if not isinstance(name, str) or name in (ROOT_KEY, "type"):
            return LeftOut(f"{place(path)} has a key that tags cannot have")
        return self._guess(child, path)

    def _leaf(self, view: SpaceView, path: NodePath) -> Guess | LeftOut:
        if view.kind == "text":
            role = self._role("text/instruction", path)
            return Guess({"type": "text", "role": role}, "a text, so what is to be done")
        if not view.is_array or not view.size:
            return LeftOut(f"{place(path)} is {kind(view)}, which does not stack")
        layout = _camera_layout(view)
        return self._state(view, path) if layout is None else self._camera(view, path, layout)

    def _camera(self, view: SpaceView, path: NodePath, layout: str) -> Guess:
        self._cameras += 1
        name = _name_of(path)
        reason = f"{kind(view)} of {bounds(view)} is a camera"
        if re.search(r"wrist|hand", name, re.IGNORECASE):
            role, why = "image/wrist", f", and its name is {title(path)}"
        elif self._cameras == 1:
            role, why = "image/primary", ", the first that there is"
        else:
            role, why = "image/secondary", ""
        return Guess({"type": "image", "role": self._role(role, path), "layout": layout}, reason + why)

    def _state(self, view: SpaceView, path: NodePath) -> Guess:
        name = _name_of(path)
        found = next((role for pattern, role in _STATES if re.search(pattern, name, re.IGNORECASE)), "")
        if found and fixed_width(found) not in (None, view.size):
            found = ""
        role = self._role(found or own_role(name.removesuffix("_pos") if name != "_pos" else name), path)
        what = f"{kind(view)}, {bounds(view) or 'no bounds'}"
        if view.dtype == np.uint8 and len(view.shape) == 3:
            what += ", which is no size or form of a camera"
        if found and role == found:
            reason = f"{what}, and its name is {title(path)}"
        else:
            reason = f"{what}; the role is a name of its own{f', after {title(path)}' if path else ''}"
        self.states.append((path, view, role))
        return Guess({"type": "state", "role": role}, reason)

    def _role(self, wanted: str, path: NodePath) -> str:
        """Return a role that is not taken yet, the wanted one if it is free."""
        candidates = _candidates(wanted, path)
        role = next(role for role in candidates if role not in self._roles)
        self._roles.add(role)
        return role


def _candidates(wanted: str, path: NodePath) -> Iterator[str]:
    yield wanted
    yield (own := own_role("_".join(map(str, path))))
    number = 2
    while True:
        yield f"{own}_{number}"
        number += 1


def _is_tagged(tree: GuessTree) -> bool:
    return not isinstance(tree, LeftOut)


def _name_of(path: NodePath) -> str:
    named = [segment for segment in path if isinstance(segment, str)]
    return named[-1] if named else "observation"


def own_role(name: str) -> str:
    """Return a role of one's own, such as `x/agent`, whatever a name holds."""
    return "x/" + (re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:40] or "part")


def _camera_layout(view: SpaceView) -> str | None:
    """Return `hwc` or `chw` for what looks like a camera, None for the rest."""
    if view.kind != "box" or view.dtype != np.uint8 or len(view.shape) != 3:
        return None
    for layout, (height, width, channels) in (
        ("hwc", view.shape),
        ("chw", (view.shape[1], view.shape[2], view.shape[0])),
    ):
        if channels in _CHANNELS and min(height, width) >= _LEAST_EDGE:
            return layout
    return None


def guess_action(view: SpaceView, states: Sequence[tuple[NodePath, SpaceView, str]]) -> list[Guess] | LeftOut:
    """Guess what an action's numbers drive.

    states: what was taken for a state in the observation.
    """
    if view.kind in ("dict", "tuple"):
        return LeftOut("the action has parts, and tags speak of one flat action")
    if not view.size:
        return LeftOut("the action holds no number")
    if view.kind in INTEGER_KINDS:
        counts = (np.ravel(view.high) - np.ravel(view.low) + 1).tolist()  # type: ignore[arg-type]
        if len(set(counts)) > 1:
            # One component cannot cover numbers of different counts.
            choices = enumerate(counts)
            return [Guess({"role": f"x/action_{number}", "dim": 1}, f"a choice of {n}") for number, n in choices]
        if view.size > 1:
            reason = f"{view.size} choices of {counts[0]}; nothing more is known of them"
            return [Guess({"role": "x/action", "dim": view.size}, reason)]
        return [Guess({"role": "x/action", "dim": 1}, f"a choice of {counts[0]}; nothing more is known of it")]
    is_robot = any(_ROBOTS.search(str(segment)) for path, _, _ in states for segment in path)
    if is_robot and view.size in _ARMS and _reaches(view, -1, 1):
        reason = f"{view.size} numbers of -1 to 1 beside the state of a robot drive an arm"
        return [Guess({"role": role, "dim": dim}, reason) for role, dim in _ARMS[view.size]]
    for path, state, _ in states:
        if _is_alike(state, view):
            return [
                Guess({"role": "x/target", "dim": view.size}, f"as wide and bounded as {place(path)}: a target")
            ]
    what = f"{view.size} number{'s' if view.size > 1 else ''}, {bounds(view)}"
    return [Guess({"role": "x/action", "dim": view.size}, f"{what}; nothing is known of what they drive")]


def _reaches(view: SpaceView, low: float, high: float) -> bool:
    return bool((view.low == low).all() and (view.high == high).all())  # type: ignore[union-attr]


def _is_alike(state: SpaceView, action: SpaceView) -> bool:
    if state.kind != "box" or state.size != action.size or action.low is None or action.high is None:
        return False
    if not (np.isfinite(action.low).all() and np.isfinite(action.high).all()) or _reaches(action, -1, 1):
        return False
    low, high = np.reshape(state.low, -1), np.reshape(state.high, -1)  # type: ignore[arg-type]
    return bool((low == action.low.reshape(-1)).all() and (high == action.high.reshape(-1)).all())
