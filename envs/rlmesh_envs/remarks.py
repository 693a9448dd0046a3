"""What a reader should know of the wrappers around an environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium as gym

from .rewards import RawReward, RewardTap

#: Wrappers that change rewards and nothing else.
_FOR_REWARDS = (gym.RewardWrapper, gym.wrappers.NormalizeReward)


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


def cautions_of(layers: Sequence[Any]) -> dict[str, str]:
    """Return code -> sentence of what makes rows depend on one another, of layers from outside in."""
    cautions: dict[str, str] = {}
    uncounted = {id(layer) for layer in _of_route(layers) if isinstance(layer, _FOR_REWARDS)}
    names = [type(layer).__name__ for layer in layers if id(layer) not in uncounted and _changes_statistics(layer)]
    if names:
        who = f"wrapper {names[0]} goes" if len(names) == 1 else f"wrappers {_listed(names)} go"
        cautions["running-statistics"] = (
            f"the {who} on changing statistics, in each lane by itself: rows depend on the order of episodes and "
            "on lanes, and the policy does not see numbers as in training; give the statistics of training to the "
            "policy, or to a wrapper of your own with update_running_mean false"
        )
    return cautions


def _changes_statistics(layer: Any) -> bool:
    """Tell whether a layer normalises by numbers that it goes on changing, as gymnasium's wrappers say it."""
    # What a wrapper passes on through `__getattr__` is no word of its own.
    is_own = "update_running_mean" in getattr(layer, "__dict__", ()) or hasattr(type(layer), "update_running_mean")
    return is_own and layer.update_running_mean is True


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
    if isinstance(layer, _FOR_REWARDS):
        return True
    module = str(getattr(layer.step, "__module__", ""))
    return module.partition(".")[0] not in ("gymnasium", "rlmesh_envs")


def _wrappers(names: Sequence[str]) -> str:
    return f"wrapper {names[0]} makes" if len(names) == 1 else f"wrappers {_listed(names)} make"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"
