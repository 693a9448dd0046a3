"""The environment's own reward, whatever the wrappers make of it that a route adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium as gym

from .steps import scalar_reward


class RewardTap(gym.Wrapper[Any, Any, Any, Any]):
    """Stands underneath a route's wrappers and sums the rewards that pass through it.

    A wrapper that repeats actions makes several inner steps for one outer step; their rewards add up.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        self._sum = 0.0

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step, and add the reward to the sum."""
        answer = self.env.step(action)
        self._sum += scalar_reward(answer[1])
        return answer

    def take(self) -> float:
        """Return the sum since the last call, and start anew."""
        taken, self._sum = self._sum, 0.0
        return taken


class RawReward(gym.Wrapper[Any, Any, Any, Any]):
    """Stands above a route's wrappers and pays what the tap underneath them has seen.

    What a wrapper was paid inside a reset, such as for steps that do nothing, is not the policy's.

    notes, cautions: of what is inside, for those who cannot look at it from another process; see EnvInfo.
    """

    def __init__(self, env: gym.Env[Any, Any], tap: RewardTap) -> None:
        super().__init__(env)
        self._tap = tap
        self.notes: Mapping[str, str] = {}
        self.cautions: Mapping[str, str] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset, and forget what was paid meanwhile."""
        answer = self.env.reset(seed=seed, options=options)
        self._tap.take()
        return answer

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step, and pay the environment's own reward."""
        observation, _, terminated, truncated, info = self.env.step(action)
        return observation, self._tap.take(), terminated, truncated, info
