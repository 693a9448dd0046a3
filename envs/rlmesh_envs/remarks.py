"""What a reader should know of the wrappers around an environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym

from .rewards import RawReward, RewardTap


def layers_of(env: Any) -> Iterator[Any]:
    """Yield an environment and what is around it, from outside in, our own wrappers too."""
    yield env
    while isinstance(env, (gym.Wrapper, gym.vector.VectorWrapper)):
        env = env.env
        yield env


def notes_of(layers: Sequence[Any]) -> dict[str, str]:
    """Return code -> sentence of what is worth knowing of some layers, from outside in."""
    notes: dict[str, str] = {}
    names = [type(layer).__name__ for layer in _of_route(layers) if _may_change_rewards(layer)]
    if names:
        notes["wrapper-rewards-unused"] = (
            f"returns are the environment's own: what the route's {_wrappers(names)} of rewards is not counted"
        )
    return notes


def _of_route(layers: Sequence[Any]) -> Iterator[Any]:
    """Yield the layers that a route adds, between the two that are ours."""
    is_inside = False
    for layer in layers:
        if isinstance(layer, RewardTap):
            return
        if is_inside:
            yield layer
        is_inside = is_inside or isinstance(layer, RawReward)


def _may_change_rewards(layer: Any) -> bool:
    """Tell whether a layer is there for rewards, or has a step of its own whose workings are not known."""
    if isinstance(layer, (gym.RewardWrapper, gym.wrappers.NormalizeReward)):
        return True
    module = str(getattr(layer.step, "__module__", ""))
    return module.partition(".")[0] not in ("gymnasium", "rlmesh_envs")


def _wrappers(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f"wrapper {names[0]} makes"
    return f"wrappers {', '.join(names[:-1])} and {names[-1]} make"
