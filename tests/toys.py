"""Toy environments, registered as `toys:Name-v0` when this module is imported.

An episode is decided by the seed of its reset alone; without one a number is drawn from the running generator.
Observations are [t, seed], so that a test can tell which moment of which episode it looks at.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

#: What environments of this process were given: appended to by those that say so.
LOG: list[Any] = []

Step = tuple[Any, Any, bool, bool, dict[str, Any]]


class Toy(gym.Env):
    """Never ends by itself, pays 1 a step."""

    observation_space: spaces.Space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space: spaces.Space = spaces.Discrete(32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed = int(self.np_random.integers(1000, 10_000)) if seed is None else seed
        self.t = 0
        return self.look(), {}

    def look(self) -> Any:
        return np.array([self.t, self.seed], np.float64)

    def step(self, action) -> Step:
        self.t += 1
        return self.look(), *self.pay(action)

    def pay(self, action) -> tuple[Any, bool, bool, dict[str, Any]]:
        """Return reward, terminated, truncated and info of step t, counted from 1."""
        return 1.0, False, False, {}


class TwoPaces(Toy):
    """Ends after 2 steps for an even seed, after 20 for an odd one."""

    def pay(self, action):
        return 1.0, self.t >= (20 if self.seed % 2 else 2), False, {}


class Coins(Toy):
    """Three steps that pay 1, 10 and 100; the last one is a success."""

    def pay(self, action):
        is_over = self.t == 3
        return 10.0 ** (self.t - 1), is_over, False, {"is_success": True} if is_over else {}


class Shy(Toy):
    """Four steps; by the seed modulo 3 it reports success, failure or nothing."""

    def pay(self, action):
        is_over, mood = self.t == 4, self.seed % 3
        return 1.0, is_over, False, {"is_success": mood == 0} if is_over and mood < 2 else {}


class Flash(Toy):
    """Success holds at step 4 only, the clock runs out at step 8."""

    def pay(self, action):
        return 0.0, False, self.t == 8, {"is_success": self.t == 4}


class Tumble(Toy):
    """Falls over at step 5, which is no success; none is ever reported."""

    def pay(self, action):
        return 1.0, self.t == 5, False, {}


class Denies(Toy):
    """Terminates after 3 steps for an even seed and 4 for an odd one, and always reports failure."""

    def pay(self, action):
        return 1.0, self.t == 3 + self.seed % 2, False, {"is_success": False}


class Solved(Toy):
    """The goal holds before anybody has acted."""

    def reset(self, *, seed=None, options=None):
        first, _ = super().reset(seed=seed)
        return first, {"is_success": True}

    def pay(self, action):
        return 0.0, True, False, {"is_success": True}


class Fragile(Toy):
    """Three steps, success at each; seed 3 breaks in its second step and seed 5 in its first, for good."""

    is_broken = False

    def reset(self, *, seed=None, options=None):
        assert not self.is_broken, "a broken environment was used again"
        return super().reset(seed=seed)

    def pay(self, action):
        if (self.seed, self.t) in ((3, 2), (5, 1)):
            self.is_broken = True
            raise RuntimeError(f"gear of seed {self.seed} is broken")
        return 1.0, self.t == 3, False, {"is_success": True}


class Sign(gym.RewardWrapper):
    """What training does to rewards: only their sign is left."""

    def reward(self, reward):
        return float(np.sign(reward))


class Fives(Toy):
    """Three steps that pay 5."""

    def pay(self, action):
        return 5.0, self.t == 3, False, {}


def make_squashed():
    """Make Fives inside the wrapper Sign, both behind one id."""
    return Sign(Fives())


class Shelf(Toy):
    """Takes the next start from a shelf at each reset, whatever the seed; three steps."""

    taken = -1

    def reset(self, *, seed=None, options=None):
        self.taken += 1
        super().reset(seed=seed)
        self.seed = self.taken
        return self.look(), {}

    def pay(self, action):
        return 1.0, self.t == 3, False, {"start": self.taken}


class Echo(Toy):
    """Pays 1 for an action that equals the t it answers to; 5 steps for an even seed, 7 for an odd one."""

    def pay(self, action):
        return float(action == self.t - 1), self.t == 5 + 2 * (self.seed % 2), False, {"seed_seen": self.seed}


class Stamped(Toy):
    """Actions say where they come from: [seed, t of the observation, place in the chunk].

    Length `2 + 3 * (seed % 5)`, or what `lengths` says for a seed. Pays 1 for an action that was planned in this
    very episode for this very step; `stale` counts the others. Appends (seed, t, action) to LOG.
    """

    action_space = spaces.MultiDiscrete([10_000, 1000, 100])

    def __init__(self, breaks_at=None):
        self.breaks_at = breaks_at

    def reset(self, *, seed=None, options=None):
        self.stale = 0
        return super().reset(seed=seed)

    def pay(self, action):
        t = self.t - 1
        LOG.append((self.seed, t, tuple(np.asarray(action).tolist())))
        is_ours = int(action[0]) == self.seed and int(action[1]) + int(action[2]) == t
        self.stale += not is_ours
        if self.breaks_at == t and self.seed % 2:
            raise RuntimeError("broke in the middle of a chunk")
        return float(is_ours), self.t == 2 + 3 * (self.seed % 5), False, {"stale": self.stale}


class Marathon(Stamped):
    """Actions as in Stamped; 200 steps and 300 more for each seed; pays a tenth more at each."""

    action_space = spaces.MultiDiscrete([10_000, 10_000, 100])

    def pay(self, action):
        return self.t * 0.1 + self.seed + int(action[2]) * 0.7, self.t == 200 + 300 * self.seed, False, {}


class Gamble(Toy):
    """A fair coin decides: success after 100 steps, or failure after 10."""

    def reset(self, *, seed=None, options=None):
        first = super().reset(seed=seed)
        self.wins = bool(self.np_random.random() < 0.5)
        return first

    def pay(self, action):
        return 1.0, self.t == (100 if self.wins else 10), False, {"is_success": self.wins}


class Payday(Toy):
    """Never ends; the episode of seed 11 pays 1 a step, that of seed 12 pays 2, and so on."""

    def pay(self, action):
        return float(self.seed - 10), False, False, {"seed_seen": self.seed}


class OddTypes(Toy):
    """Numbers as they come: rewards of shape (1,), numpy flags, sums that float32 cannot hold."""

    def pay(self, action):
        reward = np.array([2.0**24 if self.t == 1 else 1.0], np.float32)
        is_over = self.t == 4
        return reward, np.bool_(is_over), np.bool_(False), {"is_success": np.array([is_over])}


class Graphs(Toy):
    """Graphs of 1, 2 or 3 nodes by the seed, which no array can hold; two steps."""

    observation_space = spaces.Graph(spaces.Box(-1, 1, (2,)), None)

    def look(self):
        return spaces.GraphInstance(np.full((1 + self.seed % 3, 2), 0.5, np.float32), None, None)

    def pay(self, action):
        return float(action), self.t == 2, False, {}


class Halves(Toy):
    """Half-precision observations [t, 0.5]; two steps."""

    observation_space = spaces.Box(-9, 9, (2,), np.float16)

    def look(self):
        return np.array([self.t, 0.5], np.float16)

    def pay(self, action):
        return float(action), self.t == 2, False, {}


class Alarm(Toy):
    """Two steps; in the first one of seed `at` it signals `self`, its `parent` or the whole `group`."""

    def __init__(self, at=5, sends=("SIGINT",), to="self"):
        self.at, self.sends = at, sends
        self.target = {"self": os.getpid(), "parent": os.getppid(), "group": 0}[to]

    def pay(self, action):
        if (self.seed, self.t) == (self.at, 1):
            for name in self.sends:
                os.kill(self.target, getattr(signal, name))
        return 1.0, self.t == 2, False, {}


class Dies(Toy):
    """Three steps; the process of seed 3 is gone in the second one."""

    def pay(self, action):
        if (self.seed, self.t) == (3, 2):
            os._exit(9)
        return 1.0, self.t == 3, False, {}


class Witness(gym.ObservationWrapper):
    """Appends every observation that passes to LOG, first and last ones too."""

    def observation(self, observation):
        LOG.append(np.array(observation).tolist())
        return observation


for _toy in [Toy, *Toy.__subclasses__(), Marathon]:
    gym.register(f"{_toy.__name__}-v0", entry_point=f"toys:{_toy.__name__}", disable_env_checker=True)
gym.register("Squashed-v0", entry_point="toys:make_squashed", disable_env_checker=True)
gym.register("Toys/Echo-v0", entry_point="toys:Echo", disable_env_checker=True)
