"""Toy environments whose every observation says which episode it belongs to; registered on import."""

from __future__ import annotations

import copy
import os
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

#: What `Env.step` returns.
Answer = tuple[Any, Any, Any, Any, Any]


class Tape(gym.Env[Any, Any]):
    """Episode number n takes `2 + n % 4` steps; step t (from 0) pays `10 n + t + action / 8`.

    n is the seed of the reset, or drawn from the generator. An observation is [n, t, sum of actions].
    The end is terminated, truncated or both, by n; every fifth episode reports no success.

    length: of every episode, instead of its own.
    twist: gets each step's answer, and gives the one that is returned; may raise.
    """

    action_space = spaces.Discrete(8)
    observation_space = spaces.Box(-1e6, 1e6, (3,), np.float32)

    def __init__(
        self,
        length: int | None = None,
        twist: Callable[[Tape, Answer], Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.length, self.twist, self.render_mode = length, twist, render_mode
        self.number = self.time = self.acted = 0
        self.journal: list[tuple[Any, ...]] = []
        self.is_closed = False

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.journal.append(("reset", seed, options))
        super().reset(seed=seed)
        self.number = int(self.np_random.integers(1000)) if seed is None else seed
        self.time = self.acted = 0
        return self._observe(), {"start": self.number} if self.number % 2 else {}

    def step(self, action: Any) -> Any:
        self.journal.append(("step", action))
        number = self.number
        reward = 10.0 * number + self.time + int(action) / 8
        self.time, self.acted = self.time + 1, self.acted + int(action)
        is_over = self.time >= (self.length or 2 + number % 4)
        info = {"is_success": number % 2 == 0, "number": number} if is_over and number % 5 != 4 else {}
        answer = self._observe(), reward, is_over and number % 3 != 0, is_over and number % 3 != 1, info
        return answer if self.twist is None else self.twist(self, answer)

    def _observe(self) -> Any:
        return np.array([self.number, self.time, self.acted], np.float32)

    def close(self) -> None:
        self.is_closed = True


class Sampled(gym.Env[Any, Any]):
    """Observations are samples of any space, drawn from the seed; three steps."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.observation_space = space
        self._source = copy.deepcopy(space)
        self._time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._source.seed(seed)
        self._time = 0
        return self._source.sample(), {}

    def step(self, action: Any) -> Any:
        self._time += 1
        return self._source.sample(), float(self._time), self._time == 3, False, {}


class Reusing(gym.Env[Any, Any]):
    """Writes into the same observation object at every step, and into the action it is given."""

    def __init__(self, kind: str = "box") -> None:
        box = spaces.Box(-1000, 1000, (1024, 1024) if kind == "large" else (2,), np.float32)
        self.action_space = spaces.Box(-100, 100, box.shape, np.float32)
        self.array = np.zeros((3, 2) if kind == "graph" else box.shape, np.float32)
        self.observation_space, self.shown = {
            "box": (box, self.array),
            "large": (box, self.array),
            "dict": (spaces.Dict(inner=spaces.Tuple((box,))), {"inner": (self.array,)}),
            "graph": (spaces.Graph(box, None), spaces.GraphInstance(self.array, None, None)),
            "sequence": (spaces.Sequence(box, stack=True), self.array[None]),
        }[kind]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.array[...] = 0
        return self.shown, {}

    def step(self, action: Any) -> Any:
        action *= 2
        self.array += 1
        return self.shown, float(action.sum()), False, False, {}


class Ending(gym.Env[Any, Any]):
    """Its seed says when it ends, in which of the three ways, and whether there are infos; 13 ends the process.

    Observations are (resets so far, step).
    """

    observation_space = spaces.Box(0, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self) -> None:
        self._resets = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed == 13:
            os._exit(3)
        self._seed, self._time = seed or 0, 0
        self._resets += 1
        return np.array([self._resets, 0.0]), {}

    def step(self, action: Any) -> Any:
        self._time += 1
        is_last = self._time == 1 + self._seed % 3
        way = self._seed // 3 % 3
        info = {"x": self._time / 7} if self._seed // 9 % 2 else {}
        observation = np.array([self._resets, float(self._time)])
        return observation, 1.0, is_last and way != 1, is_last and way != 0, info


class Telling(gym.Env[Any, Any]):
    """Tells in its infos, by the step, what kind of numbers there are, and what type its action has."""

    observation_space = spaces.Box(-1, 1, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.seed, self.time = seed or 0, 0
        return np.zeros(1, np.float32), {"seed": seed}

    def step(self, action: Any) -> Any:
        self.time += 1
        number = self.seed + self.time / 7
        kinds = [
            {"x": number, "y": np.float64(number)},
            {"x": number, "y": np.float64(-0.0), "z": np.float32(number), "is_success": self.seed > 3},
            {"count": self.time, "flag": np.bool_(self.seed % 2), "steps": np.int64(self.seed)},
            {"count": 2**60 + self.time, "x": 0.5},
            {"x": float("nan"), "y": float("inf")},
            {"x": float("nan"), "count": 3},
            {"image": np.full((20, 20), self.time, np.uint8), "x": number},
            {"text": "a", "inner": {"x": number}, "none": None},
            {} if self.seed % 2 else {"x": number},
            {3: number},
            {"action": type(action).__name__},
            {"narrow": np.float16(number), "short": np.int8(3)},
            {f"many {key}": number for key in range(40)},
        ]
        return np.zeros(1, np.float32), number, False, False, kinds[self.time // 2 % len(kinds)]


class Fragile(gym.Env[Any, Any]):
    """Plays well before any reset; a reset with seed 13 ends the whole process. Observation: [resets, t]."""

    action_space = spaces.Discrete(8)
    observation_space = spaces.Box(0, 1e6, (2,), np.float32)

    def __init__(self) -> None:
        self._resets = self._time = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed == 13:
            os._exit(7)
        super().reset(seed=seed)
        self._resets, self._time = self._resets + 1, 0
        return np.array([self._resets, 0], np.float32), {}

    def step(self, action: Any) -> Any:
        self._time += 1
        return np.array([self._resets, self._time], np.float32), 1.0, False, False, {}


class Locked(Tape):
    """Reports at its odd resets what cannot be sent to another process."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, _ = super().reset(seed=seed, options=options)
        return observation, {"lock": threading.Lock()} if self.number % 2 else {}


class Leaving(Tape):
    """Leaves a file of its own in a folder when it is closed."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def close(self) -> None:
        tempfile.mkstemp(dir=self._folder)


class Unlike(Sampled):
    """Has another observation space in every process, and every time it is built."""

    _built = 0

    def __init__(self) -> None:
        Unlike._built += 1
        super().__init__(spaces.Discrete(2, start=1000 * os.getpid() + Unlike._built))


class SignReward(gym.RewardWrapper[Any, Any]):
    """Shows the policy only the sign of a reward."""

    def reward(self, reward: Any) -> Any:
        return float(np.sign(reward))


class Repeat(gym.Wrapper[Any, Any, Any, Any]):
    """Makes several inner steps for one outer step and shows only the last reward."""

    def __init__(self, env: gym.Env[Any, Any], times: int) -> None:
        super().__init__(env)
        self._times = times

    def step(self, action: Any) -> Any:
        for _ in range(self._times):
            answer = self.env.step(action)
            if answer[2] or answer[3]:
                break
        return answer


class Running(gym.ObservationWrapper[Any, Any, Any]):
    """Says as gymnasium's do whether it goes on changing statistics."""

    def __init__(self, env: gym.Env[Any, Any], changes: bool = True) -> None:
        super().__init__(env)
        self.update_running_mean = changes

    def observation(self, observation: Any) -> Any:
        return observation


class Forwarding(gym.ObservationWrapper[Any, Any, Any]):
    """Passes on every attribute of what it wraps."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)

    def observation(self, observation: Any) -> Any:
        return observation


class Holder(gym.Env[Any, Any]):
    """Changes rewards as a wrapper does, and yet is no `gym.Wrapper`."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self._held = env
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self._held.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        observation, _, terminated, truncated, info = self._held.step(action)
        return observation, -1.0, terminated, truncated, info


def make_signed() -> gym.Env[Any, Any]:
    """Make an environment that comes with its wrapper."""
    return SignReward(Tape())


def make_paid_by_statistics() -> gym.Env[Any, Any]:
    """Make an environment whose own rewards depend on those before."""
    return gym.wrappers.NormalizeReward(Tape())


def lose(env: gym.Env[Any, Any]) -> None:
    """Forget to return the wrapped environment."""


def forget(env: gym.Env[Any, Any]) -> type[SignReward]:
    """Return the wrapper's class instead of the wrapped environment."""
    return SignReward


def make_limited(length: int = 1000) -> gym.Env[Any, Any]:
    """Return a tape behind a time limit of four steps."""
    return gym.wrappers.TimeLimit(Tape(length), 4)


def refuse() -> gym.Env[Any, Any]:
    """Fail as a constructor does that misses its data."""
    raise FileNotFoundError("no scene file at /nowhere")


def unreadable() -> Any:
    """Fail as reading an object from a pipe does."""
    raise LookupError("this object cannot be read again")


class Unreadable:
    """Can be written to a pipe, and cannot be read from it."""

    def __reduce__(self) -> Any:
        return unreadable, ()


def name_only() -> str:
    """Return something that is no environment."""
    return "not an environment"


for _id, _limit in (("FakeTape-v0", None), ("FakeKin-v0", None), ("FakeKin-v3", None), ("FakeLimited-v0", 4)):
    if _id not in gym.registry:
        gym.register(_id, f"{__name__}:Tape", max_episode_steps=_limit, disable_env_checker=True)
if "FakeVec-v0" not in gym.registry:
    gym.register("FakeVec-v0", vector_entry_point="env_vectors:TapeVec", max_episode_steps=500)
