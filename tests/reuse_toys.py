"""Policies and environments that use one object again and again, or write into what they are given."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

FIELD = np.zeros(2)
REPORT: dict[str, Any] = {}
FLAG, PLACE, PAID = np.zeros((), np.bool_), np.zeros(()), np.zeros(())
TAGS = {"observation": {"type": "state", "role": "x/obs"}, "action": {"components": [{"role": "x/act", "dim": 1}]}}
SPEC = {
    "input": {"type": "state", "components": ["x/obs"], "stack": 3, "dtype": "float64"},
    "output": {"components": [{"role": "x/act", "dim": 1}]},
}


class Ramp(gym.Env):
    """Sees (seed, t) for eight steps and pays what the action says.

    kind: `box`, or `dict` with the observation under `s`. is_shared: all lanes see through one array, in steps or
    `everywhere`; or they report in one `info`, which may be part of another one (`nested`) or come at the `end` of
    episodes alone; or in the same `arrays`; or they are paid in one array (`reward`).
    """

    action_space = spaces.Box(-1e6, 1e6, (1,), np.float64)

    def __init__(self, kind: str = "box", is_shared: str = "") -> None:
        box = spaces.Box(-1e6, 1e6, (2,), np.float64)
        self.kind, self.is_shared = kind, is_shared
        self.observation_space = spaces.Dict({"s": box}) if kind == "dict" else box

    def _see(self) -> Any:
        is_first = self.t == 0
        seen = (
            FIELD
            if self.is_shared == "everywhere" or (self.is_shared == "steps" and not is_first)
            else np.zeros(2)
        )
        seen[:] = self.seed, self.t
        return {"s": seen} if self.kind == "dict" else seen

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.t = seed, 0
        return self._see(), self._report()

    def step(self, action):
        self.t += 1
        reward: Any = float(action[0])
        if self.is_shared == "reward":
            reward = PAID
            reward[...] = action[0]
        return self._see(), reward, self.t == 8, False, self._report()

    def _report(self) -> dict[str, Any]:
        if self.is_shared == "end" and self.t not in (0, 8):
            return {}
        report = REPORT if self.is_shared in ("info", "nested", "end") else {}
        flag, place = self.seed % 3 == 0, self.seed * 10 + self.t
        report.update(is_success=flag, place=place)
        if self.is_shared == "arrays":
            FLAG[...], PLACE[...] = flag, place
            report = {"is_success": FLAG, "place": PLACE}
        return {"told": [{"of": report}], "stats": report} if self.is_shared == "nested" else report


class Tired(gym.Wrapper):
    """Ends every episode when `weights` has counted five steps."""

    def __init__(self, env: gym.Env, weights: dict[str, int]) -> None:
        super().__init__(env)
        self.weights = weights

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.weights["n"] = self.weights.get("n", 0) + 1
        if self.weights["n"] == 5 or terminated:
            truncated, self.weights["n"] = True, 0
        return observation, reward, terminated, truncated, info


class Reuses:
    """Answers in one array."""

    out = np.zeros(1)

    def predict(self, obs):
        return np.multiply(obs[:1], obs[1] + 2, out=self.out)


class ReusesDict(Reuses):
    """The same of observations in a dict."""

    def predict(self, obs):
        return super().predict(obs["s"])


class ReusesInList(Reuses):
    """Answers with a list that is changed later."""

    def __init__(self):
        self.said = [0.0]

    def predict(self, obs):
        self.said[0] = float(obs[0] * (obs[1] + 2))
        return self.said


class ReusesChunk:
    """Plans in one array."""

    out = np.zeros((3, 1))

    def predict_chunk(self, obs):
        self.out[:, 0] = obs[0] * np.arange(1, 4) + obs[1]
        return self.out


class ReusesBatch(Reuses):
    """Raises for batches of several, and answers for single rows in one array."""

    def predict_batch(self, obs):
        if len(obs) > 1:
            raise RuntimeError("one at a time")
        return self.predict(obs[0])[None]


class Scales:
    """Scales what it is given in place, and raises for one row of it."""

    def predict_batch(self, obs):
        seen = obs["s"] if isinstance(obs, dict) else obs
        seen[:, 1] *= 10
        if ((seen[:, 0] == 0) & (seen[:, 1] == 30)).any():
            raise RuntimeError("bad row")
        return seen[:, 1:].copy()


class Draws:
    """Acts by chance, from the numbers of the episode."""

    def predict_batch(self, obs, context):
        return np.array([[one.rng.normal()] for one in context])


class DrawsAndRaises(Draws):
    """The same, and raises for one row after it has drawn for all."""

    def predict_batch(self, obs, context):
        actions = super().predict_batch(obs, context)
        if ((obs[:, 0] == 0) & (obs[:, 1] == 3)).any():
            raise RuntimeError("bad row")
        return actions


class Counts:
    """Counts its calls in a state that it changes in place."""

    def predict_batch(self, obs, state):
        state = [{"n": 0} if one is None else one for one in state]
        for one in state:
            one["n"] += 1
        return np.array([[float(one["n"])] for one in state]), state


class Stacks:
    """Sees the last three steps, and cannot answer one row at one step."""

    spec = SPEC

    def predict_batch(self, windows):
        actions = (windows[:, :, 1] @ np.array([100.0, 10.0, 1.0]))[:, None]
        actions[(windows[:, -1, 0] == 0) & (windows[:, -1, 1] == 4)] = np.nan
        return actions


class StacksChunk(Stacks):
    """The same for three steps at once."""

    def predict_chunk_batch(self, windows):
        return np.repeat(self.predict_batch(windows)[:, None], 3, axis=1)
