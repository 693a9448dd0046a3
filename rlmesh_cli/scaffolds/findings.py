"""Findings: what an environment turned out to be, seen in one reset and a few random steps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from rlmesh_adapters.batches import BatchLayout, iterate_rows
from rlmesh_adapters.contract import TAGS_KEY
from rlmesh_adapters.errors import EnvironmentBuildError, Failure
from rlmesh_adapters.paths import NodePath
from rlmesh_adapters.spaces import SpaceView, sample_value
from rlmesh_envs.infos import SUCCESS_KEYS, read_flag, read_number
from rlmesh_envs.make import Lanes, make_lanes
from rlmesh_envs.metadata import render_modes_of
from rlmesh_envs.request import EnvInfo, EnvRequest
from rlmesh_envs.spaces import view_of
from rlmesh_envs.steps import Info

#: Steps, and seconds, after which enough was seen.
_MOST_STEPS, _MOST_SECONDS = 300, 2.0
_SEED = 0


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An environment, and what was seen of it.

    id: as a route should name it. imports: modules that register it. kwargs: of its constructor.
    observation, action: spaces of one lane. first: the first observation after a reset with seed 0.
    render_modes: that it offers. is_lane: whether lanes of it are ours to reset, and to limit.
    steps, rewards: random steps that were made, and what they paid. end: how the episode ended, or empty.
    infos: keys that resets or steps reported -> the last value. numbers: those of them that are single numbers.
    success_key: where it reports success, empty if it did not. failure: why a step failed, None if none did.
    tags: env tags that it carries itself, None if it has none.
    """

    id: str
    imports: tuple[str, ...]
    kwargs: Mapping[str, Any]
    observation: SpaceView
    action: SpaceView
    first: Any
    max_episode_steps: int | None
    render_modes: tuple[str, ...]
    is_lane: bool
    steps: int
    rewards: tuple[float, ...]
    end: str
    infos: Mapping[str, Any]
    numbers: tuple[str, ...]
    success_key: str
    failure: Failure | None
    tags: Any


class Leaf(msgspec.Struct, frozen=True):
    """A part of a space that has no parts itself. value: of the first observation, None for actions."""

    path: NodePath
    view: SpaceView
    value: Any = None


def look_at(request: EnvRequest) -> Found:
    """Build an environment, ask it, and close it.

    Raises EnvironmentBuildError where it cannot be built or reset, or takes actions that no policy could give.
    """
    lanes, info = make_lanes(request)
    try:
        action = view_of(lanes.single_action_space)
        _refuse_undrivable(request.id, action)
        return _ask(request, lanes, info, action)
    finally:
        lanes.close()


def _refuse_undrivable(name: str, action: SpaceView) -> None:
    for leaf in leaves(action):
        if not leaf.view.is_array:
            raise EnvironmentBuildError(
                f"the actions of `{name}` hold {leaf.view}, which does not stack",
                where="env.id",
                mend="wrap the environment so that its actions are numbers",
            )


def _ask(request: EnvRequest, lanes: Lanes, info: EnvInfo, action: SpaceView) -> Found:
    resets = lanes.reset_lanes(range(lanes.num_envs), [_SEED] * lanes.num_envs)
    if resets.failures:
        failure = next(iter(resets.failures.values()))
        raise EnvironmentBuildError(
            f"`{request.id}` cannot be reset with seed {_SEED}: {failure.message}",
            where=failure.detail or "env",
            mend=failure.mend or "build and reset it in a Python shell to see more",
        )
    # Rows are views of a batch, and objects may be written into by the next step.
    first = _copy(next(iter(iterate_rows(resets.observations, 1))))
    seen: dict[str, Any] = dict(_named(resets.infos[0]))
    walk = _walk(lanes, action, seen)
    envs = getattr(lanes, "envs", None)
    return Found(
        id=request.id if ":" in request.id else info.id,
        imports=request.imports,
        kwargs=request.kwargs,
        observation=view_of(lanes.single_observation_space),
        action=action,
        first=first,
        max_episode_steps=info.max_episode_steps,
        render_modes=render_modes_of(envs[0] if envs else None),
        is_lane=not info.is_lockstep,
        steps=len(walk.rewards),
        rewards=tuple(walk.rewards),
        end=walk.end,
        infos=seen,
        numbers=tuple(key for key in seen if read_number(seen, key) is not None),
        success_key=next((key for key in SUCCESS_KEYS if read_flag(seen, key) is not None), ""),
        failure=walk.failure,
        tags=info.metadata.get(TAGS_KEY),
    )


class _Walk(msgspec.Struct):
    rewards: list[float]
    end: str = ""
    failure: Failure | None = None


def _walk(lanes: Lanes, action: SpaceView, seen: dict[str, Any]) -> _Walk:
    """Step at random until an episode ends or enough was seen; put what infos report into `seen`."""
    rng, layout = np.random.default_rng(_SEED), BatchLayout(action)
    everyone = list(range(lanes.num_envs))
    walk, until = _Walk([]), time.monotonic() + _MOST_SECONDS
    while len(walk.rewards) < _MOST_STEPS and time.monotonic() < until:
        batch = layout.allocate(len(everyone))
        for row in everyone:
            layout.write(batch, row, sample_value(action, rng))
        steps = lanes.step_lanes(batch, everyone)
        walk.failure = next(iter(steps.failures.values()), None)
        if walk.failure is not None:
            break
        walk.rewards.append(float(steps.rewards[0]))
        for info in (steps.infos or ())[:1]:
            seen.update(_named(info))
        ended = next(iter(steps.ended), None)
        if ended is not None:
            walk.end = "terminated" if ended[1] else "truncated"
            break
    return walk


def _named(info: Info) -> dict[str, Any]:
    return {key: value for key, value in info.items() if isinstance(key, str)}


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(part) for name, part in value.items()}
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(_copy(part) for part in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def leaves(view: SpaceView, value: Any = None, path: NodePath = ()) -> Iterator[Leaf]:
    """Yield the parts of a space that have no parts themselves, in its order, with their values."""
    if view.kind not in ("dict", "tuple"):
        yield Leaf(path, view, value)
        return
    for name, child in view.children:
        yield from leaves(child, None if value is None else value[name], (*path, name))
