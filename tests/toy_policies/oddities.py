"""Environments that do what no environment should, and a policy that does nothing."""

import gymnasium as gym
import numpy as np
import toys
from gymnasium import spaces


class Unreadable:
    """Has no number to give, as a tensor on a device that is gone."""

    def __array__(self, *arguments, **options):
        raise RuntimeError("the device is gone")


class UnspeakableError(Exception):
    def __str__(self):
        raise ValueError("no words")


REWARDS = {
    "none": None,
    "text": "1.0",
    "pair": np.ones(2),
    "complex": 1j,
    "object": object(),
    "unreadable": Unreadable(),
    "too large": 10**400,
    "nan": np.float32("nan"),
    "infinite": float("-inf"),
}
INFOS = {
    "list": ["is_success"],
    "text": "is_success",
    "unreadable": {"is_success": Unreadable(), "load": Unreadable()},
    "too large": {"is_success": 10**400, "load": -(10**400)},
    "pair": {"is_success": np.array([True, False]), "load": np.ones(2)},
    "words": {"is_success": "yes", "load": "3"},
    "nan": {"is_success": float("nan"), "load": np.float32("inf")},
    "ragged": {"is_success": [[1], [1, 2]], "load": []},
}
ERRORS = {
    "half a sign": lambda: OSError("no file \udc80.bin"),
    "unspeakable": UnspeakableError,
    "no words at all": lambda: RuntimeError(),
    "many lines": lambda: RuntimeError("first\nsecond"),
}


class Odd(toys.Toy):
    """Three steps; in the second step of every odd seed something odd is given or raised."""

    def __init__(self, reward=None, info=None, error=None):
        self.odd = {"reward": reward, "info": info, "error": error}

    def pay(self, action):
        reward, info = 1.0, {"is_success": True, "load": self.t}
        if self.seed % 2 and self.t == 2:
            if self.odd["error"]:
                raise ERRORS[self.odd["error"]]()
            if self.odd["reward"]:
                reward = REWARDS[self.odd["reward"]]
            if self.odd["info"]:
                info = INFOS[self.odd["info"]]
        return reward, self.t == 3, False, info


class Enormous(toys.Toy):
    """Three steps that pay 1e308, which is more than a number can hold."""

    def pay(self, action):
        return 1e308, self.t == 3, False, {}


class OneInfo(toys.Toy):
    """Writes all its infos into one dict, in which `load` stands at step 2 only."""

    def reset(self, *, seed=None, options=None):
        first, self.info = super().reset(seed=seed)
        return first, self.info

    def pay(self, action):
        self.info.pop("load", None)
        if self.t == 2:
            self.info["load"] = self.seed + 0.5
        return 1.0, self.t == 4, False, self.info


class Overwriting(toys.Toy):
    """Halves the action it is given, in its place; four steps that pay what is left of it."""

    action_space = spaces.Box(-2, 2, (2,), np.float32)

    def pay(self, action):
        action *= 0.5
        return float(action.sum()), self.t == 4, False, {}


class OneBuffer(toys.Echo):
    """Gives the same array at every step."""

    def __init__(self):
        self.buffer = np.zeros(2)

    def look(self):
        self.buffer[:] = self.t, self.seed
        return self.buffer


_ONLY = toys.Echo()


def one_for_all():
    """Return the same environment every time."""
    return _ONLY


for _toy in (Odd, Enormous, OneInfo, Overwriting, OneBuffer):
    if f"{_toy.__name__}-v0" not in gym.registry:
        gym.register(f"{_toy.__name__}-v0", entry_point=_toy, disable_env_checker=True)


class Policy:
    def predict(self, obs):
        return 0


class Ones:
    def predict_batch(self, obs):
        return np.ones((len(obs), 2), np.float32)


class Greedy:
    """Writes into the batch it is given, and raises for all of it at t = 2 of seed 3."""

    def predict_batch(self, obs):
        obs[:, 0] += 1
        if ((obs[:, 1] == 3) & (obs[:, 0] == 3)).any():
            raise ValueError("seed 3 is too much")
        return obs[:, 0].astype(np.int64) - 1


class Closing:
    def predict(self, obs):
        return 0

    def close(self):
        raise OSError("the socket is gone")

    def on_episode_end(self):
        raise KeyError("no such episode")
