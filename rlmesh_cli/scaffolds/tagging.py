"""Tagging: the env tags of a scaffold, and a model spec that goes with them."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.errors import HarnessError
from rlmesh_adapters.resolve.features import Drive, Features
from rlmesh_adapters.resolve.join import join
from rlmesh_adapters.resolve.ranges import is_zero_width
from rlmesh_adapters.resolve.resolving import resolve
from rlmesh_adapters.spaces import INTEGER_KINDS, SpaceView

from .findings import Found
from .guesses import Guess, GuessTree, LeftOut, Observation, guess_action
from .words import one_line, title

#: A choice of more than this is read as the value itself, not from a score for each.
_MOST_SCORES = 256


class Input(msgspec.Struct, frozen=True):
    """One of the model's inputs, without the axis of lanes. dtype: empty for text."""

    dtype: str
    shape: tuple[int, ...] = ()


class Tagging(msgspec.Struct, frozen=True, kw_only=True):
    """Tags of an environment and the spec of a model for them.

    observation, action: the guesses; None where the environment is tagged already.
    spec: the model's, as plain values. inputs: what the policy is handed, by name.
    draws: expressions that draw the parts of the model's output from a generator `rng`.
    """

    observation: GuessTree | None
    action: list[Guess] | None
    spec: dict[str, Any]
    inputs: dict[str, Input]
    draws: tuple[str, ...]


def propose_tags(found: Found) -> Tagging | str:
    """Return tags for an environment, its own if it has some; or the reason why there can be none."""
    if found.tags is not None:
        return _tagging(found, found.tags, None, None)
    guessed = Observation(found.observation)
    if isinstance(guessed.tree, LeftOut):
        return f"{guessed.tree.reason}: it cannot be tagged"
    action = guess_action(found.action, guessed.states)
    if isinstance(action, LeftOut):
        return action.reason
    tags = {"observation": _plain(guessed.tree), "action": {"components": [dict(part.tag) for part in action]}}
    return _tagging(found, tags, guessed.tree, action)


def _plain(tree: GuessTree) -> Any:
    if isinstance(tree, dict):
        return {name: _plain(part) for name, part in tree.items() if not isinstance(part, LeftOut)}
    if isinstance(tree, list):
        return [_plain(part) for part in tree]
    assert isinstance(tree, Guess)
    return dict(tree.tag)


def _tagging(found: Found, tags: Any, observation: GuessTree | None, action: list[Guess] | None) -> Tagging | str:
    """Return the tags if they resolve, else the reason: what is written must run."""
    try:
        read = read_tags(tags)
        features = join(read, found.observation, found.action)
        outputs = [_output(drive, found.action) for drive in features.drives]
        leaves, inputs = _inputs(features)
        spec = {"input": leaves, "output": {"components": outputs}}
        resolve(read, found.observation, found.action, read_spec(spec))
    except HarnessError as error:
        return one_line(f"no tags that fit were found: {error.cause}")
    draws, offset = [], 0
    for drive, part in zip(features.drives, outputs, strict=True):
        draws.append(_draw(drive, part, found.action, offset))
        offset += drive.actuator.dim
    return Tagging(observation=observation, action=action, spec=spec, inputs=inputs, draws=tuple(draws))


def _inputs(features: Features) -> tuple[dict[str, Any], dict[str, Input]]:
    """Return a model input for everything that the environment gives, as it gives it, and what that will be."""
    leaves: dict[str, Any] = {}
    inputs: dict[str, Input] = {}
    for image in features.images:
        name = _unique(leaves, title(image.source) if image.source else "image")
        leaves[name] = {"type": "image", "role": image.role, "layout": image.tag.layout, "dtype": "uint8"}
        height, width, channels = image.shape
        is_hwc = image.tag.layout == "hwc"
        inputs[name] = Input("uint8", (height, width, channels) if is_hwc else (channels, height, width))
    for state in features.states:
        own = state.role.rsplit("/", 1)[-1]
        name = _unique(leaves, own if state.is_field or not state.source else title(state.source))
        part: Any = {"role": state.role, "encoding": state.encoding} if state.encoding else state.role
        leaves[name] = {"type": "state", "components": [part]}
        inputs[name] = Input("float32", (state.width,))
    for text in features.texts:
        name = _unique(leaves, title(text.source) if text.source else "text")
        leaves[name], inputs[name] = {"type": "text", "role": text.role}, Input("")
    return leaves, inputs


def _unique(taken: dict[str, Any], name: str) -> str:
    wanted, number = name, 2
    while wanted in taken or wanted == "type":
        wanted, number = f"{name}_{number}", number + 1
    return wanted


def _output(drive: Drive, view: SpaceView) -> dict[str, Any]:
    actuator = drive.actuator
    if actuator.role is None:
        return {"dim": actuator.dim}
    plain: dict[str, Any] = {"role": actuator.role, "dim": actuator.dim}
    if view.kind in INTEGER_KINDS:
        if actuator.dim > 1 or drive.count > _MOST_SCORES:
            return {**plain, "select": "index"}
        return {**plain, "dim": drive.count, "select": "argmax"}
    if isinstance(actuator.encoding, str):
        plain["encoding"] = actuator.encoding
    elif _is_whole(view):
        pass  # a range would be mapped onto fractions
    elif drive.range is not None and not is_zero_width(drive.range):
        plain["range"] = [-1.0, 1.0]
    return plain


def _is_whole(view: SpaceView) -> bool:
    return view.kind == "box" and view.dtype is not None and view.dtype.kind in "iub"


def _draw(drive: Drive, part: dict[str, Any], view: SpaceView, offset: int) -> str:
    dim = part["dim"]
    if "role" not in part:
        return f"np.zeros({dim})"
    if part.get("select") == "argmax":
        return f"rng.random({dim})"
    if part.get("select") == "index":
        return f"rng.integers({drive.low}, {drive.low + drive.count}, {dim})"
    if _is_whole(view):
        low, high = (np.ravel(ends)[offset : offset + dim] for ends in (view.low, view.high))  # type: ignore[arg-type]
        return f"rng.integers({_ends(low)}, {_ends(high)}, {dim}, endpoint=True)"
    if "range" in part:
        return f"rng.uniform(-1, 1, {dim})"
    return f"rng.standard_normal({dim})"


def _ends(numbers: Any) -> str:
    plain = [int(number) for number in numbers]
    return str(plain if len(set(plain)) > 1 else plain[0])
