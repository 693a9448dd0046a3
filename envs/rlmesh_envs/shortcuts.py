"""Shortcuts: past the wrappers whose work lanes do themselves."""

from __future__ import annotations

from math import inf
from typing import Any

import gymnasium as gym


def shortcut(env: gym.Env[Any, Any]) -> tuple[gym.Env[Any, Any], float]:
    """Return what is stepped of an environment, and the limit in steps that is then ours to keep.

    The time limit and the order check that `gymnasium.make` puts outermost are three Python frames a step.
    Lanes count their own steps and never step before a reset, so those two are passed by. Any other wrapper is
    left in place.
    """
    limit = inf
    while type(env) in (gym.wrappers.TimeLimit, gym.wrappers.OrderEnforcing):
        if isinstance(env, gym.wrappers.TimeLimit):
            limit = min(limit, env._max_episode_steps)
        env = env.env  # type: ignore[attr-defined]
    return env, limit
