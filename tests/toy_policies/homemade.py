"""The policy and the environment it is for, in one file; nothing else registers that environment."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Homemade(gym.Env):
    """Two steps that pay 1."""

    observation_space = spaces.Box(-9, 9, (1,), np.float32)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.t += 1
        return np.full(1, self.t, np.float32), 1.0, self.t == 2, False, {}


if "Homemade-v0" not in gym.registry:
    gym.register("Homemade-v0", entry_point=Homemade, disable_env_checker=True)


class Policy:
    def predict(self, obs):
        return 1
