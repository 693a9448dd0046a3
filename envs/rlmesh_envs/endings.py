"""Endings: what an episode ended with, where a vector environment resets in the same step."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, SupportsFloat

import gymnasium as gym


class KeptEnding(gym.Wrapper[Any, Any, Any, Any]):
    """Hands out copies of an episode's last observation and info.

    Gymnasium's vector environments keep what came for `final_obs` and `final_info`, and reset before anybody reads
    it; an environment that writes into the same objects again would have changed it by then.
    """

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step; copy what it gave if the episode has ended."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            return deepcopy(observation), reward, terminated, truncated, deepcopy(info)
        return observation, reward, terminated, truncated, info
