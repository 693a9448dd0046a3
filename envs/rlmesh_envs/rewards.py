"""RewardTap: the environment's own reward, underneath the wrappers that a route adds."""

from __future__ import annotations

from typing import Any, SupportsFloat

import gymnasium as gym

from .steps import scalar_reward


class RewardTap(gym.Wrapper[Any, Any, Any, Any]):
    """Sums the rewards that pass through it, so that wrappers above cannot change the score.

    A wrapper that repeats actions makes several inner steps for one outer step; their rewards add up.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._sum = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset, and forget what was not taken."""
        self._sum = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step, and add the reward to the sum."""
        answer = self.env.step(action)
        self._sum += scalar_reward(answer[1])
        return answer

    def take(self) -> float:
        """Return the sum since the last call, and start anew."""
        taken, self._sum = self._sum, 0.0
        return taken


def find_tap(env: gym.Env[Any, Any]) -> RewardTap | None:
    """Return the tap inside a wrapped environment, None if it has none."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, RewardTap):
            return env
        env = env.env
    return None
