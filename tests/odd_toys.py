"""Environments with odd spaces, infos and answers; named `odd_toys:Name`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from film_toys import Clock, Step
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class Drawn(Clock):
    """Observations are drawn from the space, by seed and time."""

    def look(self) -> Any:
        self.observation_space.seed(100 * self.seed + self.t)
        return self.observation_space.sample()


class Pays(Clock):
    """Seed n pays `rewards[n]`, a number a step."""

    def __init__(self, render_mode: str | None = None, rewards: tuple[tuple[float, ...], ...] = ()) -> None:
        super().__init__(render_mode)
        self.rewards = rewards

    def step(self, action) -> Step:
        paid = self.rewards[self.seed]
        self.t += 1
        return self.look(), paid[self.t - 1], self.t == len(paid), False, {}


class Measures(Clock):
    """Seed n reports `speeds[n]`, a number a step; every seed begins alike."""

    def __init__(self, render_mode: str | None = None, speeds: tuple[tuple[float | str, ...], ...] = ()) -> None:
        super().__init__(render_mode)
        self.speeds = speeds

    def look(self) -> Any:
        return np.zeros(self.observation_space.shape, self.observation_space.dtype)

    def step(self, action) -> Step:
        told = self.speeds[self.seed]
        self.t += 1
        return self.look(), 1.0, self.t == len(told), False, {"speed": float(told[self.t - 1])}


class Flat(Drawn):
    """Arrays without a number in them."""

    observation_space = spaces.Dict(
        {"none": spaces.Box(-1, 1, (0,)), "wide": spaces.Box(-1, 1, (0, 3)), "one": spaces.Box(-1, 1, ())}
    )
    action_space = spaces.Box(-1, 1, (0,))


class Swapped(Drawn):
    """Numbers with their bytes in the other order."""

    observation_space = spaces.Box(-1, 1, (2,), np.dtype(">f4"))


class Wide(Drawn):
    """A large picture."""

    observation_space = spaces.Dict({"large": spaces.Box(0, 255, (700, 1000, 3), np.uint8)})

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode, length=4)


class Alike(Drawn):
    """Leaves whose paths are written alike."""

    observation_space = spaces.Dict({"a.b": spaces.Discrete(3), "a": spaces.Dict({"b": spaces.Box(-1, 1, (2,))})})
    action_space = spaces.Dict({"a.b": spaces.Discrete(3), "a": spaces.Dict({"b": spaces.Box(-1, 1, (2,))})})


class Surrogate(Drawn):
    """A text that is no UTF-8."""

    observation_space = spaces.Text(4, min_length=4, charset="\ud800")


class Cameras(Drawn):
    """Pictures whose names are alike, or nothing, once they are made fit for a file; the later, the brighter."""

    names: ClassVar[list[str]] = ["カメラ", "A", "a", "a!", "a-2", "x" * 300]
    observation_space = spaces.Dict({name: spaces.Box(0, 255, (8, 8, 3), np.uint8) for name in names})

    def look(self) -> Any:
        return {name: np.full((8, 8, 3), 40 * (k + 1), np.uint8) for k, name in enumerate(self.names)}


class Mute:
    """Has no `repr`."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


class OddInfos(Clock):
    """Infos that strict JSON cannot hold, under our own key among others."""

    def step(self, action) -> Step:
        *rest, _ = super().step(action)
        info: dict[Any, Any] = {1: "a", "1": "b", "rlmesh.frame": "mine", "mute": Mute(), "set": {Mute()}}
        info |= {"huge": 10**5000, "large": 2**200, "half": "\ud800", "frames": [np.zeros(5000)]}
        ring: dict[str, Any] = {}
        ring["ring"] = info["ring"] = ring
        return *rest, info  # type: ignore[return-value]


class Mixed(Clock):
    """Reports a number of another kind for each seed: a whole one, a fraction, a truth, a float32, an array."""

    numbers: ClassVar[list[Any]] = [0, 0.75, True, np.float32(0.5), np.array([0.25]), 2**60]

    def step(self, action) -> Step:
        *rest, _ = super().step(action)
        number = self.numbers[self.seed % 6]
        return *rest, {"number": number, "inner": {"number": number}}  # type: ignore[return-value]


class Points(Clock):
    """Shows a graph of one node, which is t."""

    observation_space = spaces.Graph(spaces.Box(-9, 9, (1,)), None)

    def look(self) -> Any:
        return spaces.GraphInstance(np.full((1, 1), self.t, np.float32), None, None)


class Slanted(VectorEnv):
    """Three steps an episode; the last observation of each is not of its space."""

    metadata: ClassVar[dict[str, Any]] = {"autoreset_mode": AutoresetMode.SAME_STEP}

    def __init__(self, num_envs: int = 1) -> None:
        self.num_envs, self.t = num_envs, 0
        self.single_observation_space, self.single_action_space = spaces.Box(-9, 9, (2,)), spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def look(self) -> Any:
        return np.full((self.num_envs, 2), self.t, np.float32)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return self.look(), {}

    def step(self, actions):
        self.t = (self.t + 1) % 3
        done = np.full(self.num_envs, self.t == 0)
        finals = np.empty(self.num_envs, object)
        for lane in range(self.num_envs):
            finals[lane] = np.zeros(5)
        info = {"final_obs": finals, "_final_obs": done} if done.any() else {}
        return self.look(), np.ones(self.num_envs), done, np.zeros(self.num_envs, bool), info


class Wordless(Clock):
    """Gives None, or an empty list, in place of an empty info."""

    def reset(self, **kwargs):
        return super().reset(**kwargs)[0], None

    def step(self, action):
        *rest, _ = super().step(action)
        return *rest, None if self.t == 1 else []


class Spoilt(Clock):
    """The second step of seed 1 gives what is no reward, and that of seed 2 what is no observation."""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        if self.t == 2:
            reward = float("nan") if self.seed == 1 else reward
            observation = np.zeros(5) if self.seed == 2 else observation
        return observation, reward, *rest


class Lists(Clock):
    """Answers with lists in place of tuples."""

    def reset(self, **kwargs):
        return list(super().reset(**kwargs))

    def step(self, action):
        return list(super().step(action))


class NoSecondStart(Clock):
    """Of seed 1: breaks in the second step, and has no start from then on. `mark` is a folder of marks."""

    def __init__(self, mark: str, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.mark = Path(mark)

    def reset(self, *, seed=None, options=None):
        if seed == 1 and (self.mark / "1").exists():
            raise RuntimeError("no start")
        return super().reset(seed=seed)

    def step(self, action) -> Step:
        if self.seed == 1 and self.t == 1:
            (self.mark / "1").touch()
            raise RuntimeError("a cable came loose")
        return super().step(action)
