"""An environment in which hardly two episodes are alike, and policies for it.

All numbers are small multiples of 1/8, so that no order of additions and no batch size can change a bit.
"""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

ACTIONS = {
    "discrete": spaces.Discrete(7),
    "box": spaces.Box(np.array([-2, -1], np.float32), np.array([2, 3], np.float32)),
    "dict": spaces.Dict(
        push=spaces.Box(-1, 1, (2,), np.float32),
        mode=spaces.MultiDiscrete([3, 4]),
    ),
}


class Ragged(gym.Env):
    """Lengths of 1 to 11 steps and every kind of end; observations hold [t, seed, noise].

    kind: of the actions; observations of `dict` are a dict too.
    """

    def __init__(self, kind="discrete"):
        self.kind = kind
        self.action_space = ACTIONS[kind]
        place = spaces.Box(-1e6, 1e6, (2,), np.float64)
        clock = spaces.Box(0, 100, (1,), np.float64)
        parts = spaces.Dict(place=place, clock=clock)
        self.observation_space = parts if kind == "dict" else spaces.Box(-1e6, 1e6, (3,), np.float64)
        self.is_broken = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        assert not self.is_broken, "a broken environment was used again"
        self.seed = seed = seed or 0
        if seed % 13 == 12:
            self.is_broken = True
            raise OSError(f"no start for seed {seed}")
        self.t = 0
        return self._look(), {"is_success": True} if seed % 10 == 9 else {}

    def _look(self):
        self.noise = self.np_random.integers(0, 64) / 8
        if self.kind == "dict":
            return {"clock": np.array([self.t], np.float64), "place": np.array([self.seed, self.noise])}
        return np.array([self.t, self.seed, self.noise])

    def step(self, action):
        if self.seed % 6 == 5 and self.t == self.seed % 4:
            self.is_broken = True
            raise RuntimeError(f"seed {self.seed} breaks at step {self.t}")
        reward = self.seed % 8 + self.t / 2 + self.noise + _worth(action)
        if self.seed % 7 == 6 and self.t == 1:
            reward = float("nan")
        self.t += 1
        is_over = self.t == 1 + self.seed * 5 % 11
        info = {}
        if self.t % 2 and self.seed % 8 != 7:
            info["is_success"] = (self.t + self.seed) % 3 == 0
        if self.t % 3 == 0:
            info["arm"] = {"load": self.noise}
        return self._look(), reward, is_over and self.seed % 3 != 0, is_over and self.seed % 3 != 1, info


def _worth(action):
    if isinstance(action, dict):
        return sum(_worth(part) for part in action.values())
    return float(np.sum(np.asarray(action) * np.float64(0.25)))


if "Ragged-v0" not in gym.registry:
    gym.register("Ragged-v0", entry_point=Ragged, disable_env_checker=True)


def _actions(kind, obs, shift=0.0):
    """Return the actions for observations (..., 3), all of them functions of one number."""
    seen = np.concatenate([obs["clock"], obs["place"]], -1) if isinstance(obs, dict) else obs
    t, seed, noise = np.moveaxis(seen + np.zeros((*np.shape(shift), 1)), -1, 0)
    number = noise + t / 2 - seed % 5 + shift
    if kind == "discrete":
        return (np.abs(number) * 8 % 7).astype(np.int64)
    pair = np.stack([number - 3, t / 4 - seed % 3], -1).astype(np.float32)
    if kind == "box":
        return pair
    mode = np.stack([np.abs(number) * 8 % 3, (t + seed) % 4], -1).astype(np.int64)
    return {"push": pair / 4, "mode": mode}


class Linear:
    """Stateless."""

    def __init__(self, kind="discrete"):
        self.kind = kind

    def predict_batch(self, obs):
        return _actions(self.kind, obs)


class Chunks:
    """Plans five actions ahead."""

    def __init__(self, kind="discrete"):
        self.kind = kind

    def predict_chunk(self, obs):
        return _actions(self.kind, obs, np.arange(5) / 2)


class Random:
    """Draws from the generator of the episode."""

    def __init__(self, kind="discrete"):
        self.kind = kind

    def predict(self, obs, context):
        return _actions(self.kind, obs, context.rng.integers(0, 32) / 8)


class Summing:
    """Adds up what it has seen since `reset`."""

    def __init__(self, kind="discrete"):
        self.kind = kind
        self.sum = 0.0

    def reset(self):
        self.sum = 0.0

    def predict(self, obs):
        noise = obs["place"][1] if self.kind == "dict" else obs[2]
        self.sum += noise + 0.125
        return _actions(self.kind, obs, self.sum)


def _stumble(obs):
    """Raise in the fourth step of every fourth seed."""
    t, seed = (obs["clock"][0], obs["place"][0]) if isinstance(obs, dict) else obs[:2]
    if t == 3 and seed % 4 == 1:
        raise ValueError(f"no idea at step {t:g} of seed {seed:g}")


class Faulty(Summing):
    """Raises now and then when it is asked for one action."""

    def predict(self, obs):
        _stumble(obs)
        return super().predict(obs)


class FaultyBatch(Linear):
    """Raises for a whole batch if one of its rows is bad."""

    def predict_batch(self, obs):
        rows = zip(obs["clock"], obs["place"], strict=True) if isinstance(obs, dict) else obs
        for row in rows:
            _stumble({"clock": row[0], "place": row[1]} if isinstance(obs, dict) else row)
        return super().predict_batch(obs)


class FaultyChunks(Chunks):
    """Raises now and then when it is asked for a chunk."""

    def predict_chunk(self, obs):
        _stumble(obs)
        return super().predict_chunk(obs)


class Uneven(Chunks):
    """Plans five actions ahead at the start of an episode, later fewer by what it sees."""

    def predict_chunk(self, obs):
        t, seed = (obs["clock"][0], obs["place"][0]) if isinstance(obs, dict) else obs[:2]
        length = 5 if t == 0 else 1 + int(t + seed) % 5
        return _actions(self.kind, obs, np.arange(length) / 2)
