"""Environments and policies that die, hang, stumble once, or keep a diary; named `durable_toys:Name`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class Diary(gym.Env):
    """Twenty short steps that pay by seed and action; every reset is written down in the file `diary`.

    nap: seconds that a step sleeps.
    """

    observation_space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = spaces.Discrete(8)

    def __init__(self, diary: str = "", nap: float = 0.0, length: int = 20) -> None:
        self.diary, self.nap, self.length = diary, nap, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.t = seed, 0
        if self.diary:
            with Path(self.diary).open("a", encoding="utf-8") as file:
                file.write(f"{seed}\n")
        return np.array([0.0, seed]), {}

    def step(self, action) -> tuple[Any, ...]:
        time.sleep(self.nap)
        self.t += 1
        reward = float((self.seed * 7 + int(action)) % 5) + 0.1
        is_over = self.t == self.length
        info = {"is_success": (self.seed + int(action)) % 3 > 0, "score": float(self.seed)} if is_over else {}
        return np.array([float(self.t), self.seed]), reward, is_over, False, info


class Stumbles(Diary):
    """Raises in its third step, the first time that a seed of `seeds` is played; `mark` is a folder of marks."""

    def __init__(self, mark: str, seeds: tuple[int, ...] = (2,), dies: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mark, self.seeds, self.dies = Path(mark), tuple(seeds), dies

    def step(self, action):
        if self.t == 2 and self.seed in self.seeds and not (self.mark / str(self.seed)).exists():
            (self.mark / str(self.seed)).touch()
            if self.dies:
                os._exit(7)
            raise RuntimeError(f"seed {self.seed} stumbled")
        return super().step(action)


class Trips(Stumbles):
    """The same in a reset."""

    def reset(self, *, seed=None, options=None):
        if seed in self.seeds and not (self.mark / str(seed)).exists():
            (self.mark / str(seed)).touch()
            raise RuntimeError(f"no start for seed {seed}")
        return super().reset(seed=seed)

    def step(self, action):
        return Diary.step(self, action)


class Wears(Diary):
    """Raises in the second step of the third episode that it plays; `lengths` of the first seeds."""

    played = 0

    def __init__(self, lengths: tuple[int, ...] = ()) -> None:
        super().__init__()
        self.lengths = lengths

    def reset(self, *, seed=None, options=None):
        self.played += 1
        self.length = self.lengths[seed] if seed < len(self.lengths) else 20
        return super().reset(seed=seed)

    def step(self, action):
        if self.played == 3 and self.t == 1:
            raise RuntimeError("worn out")
        return super().step(action)


class StartsSlowly(Diary):
    """Takes 0.05 s to reset."""

    def reset(self, *, seed=None, options=None):
        time.sleep(0.05)
        return super().reset(seed=seed)


class Naps(VectorEnv):
    """Twelve steps of 0.02 s an episode, all lanes at once; it resets itself in `mode`."""

    def __init__(self, num_envs: int = 1, mode: str = "next_step") -> None:
        self.metadata = {"autoreset_mode": AutoresetMode[mode.upper()]}
        self.num_envs, self.is_late = num_envs, mode == "next_step"
        self.single_observation_space, self.single_action_space = Diary.observation_space, Diary.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        self.t = 0
        return np.zeros((self.num_envs, 2)), {}

    def step(self, actions):
        time.sleep(0.02)
        is_reset = self.is_late and self.t == 12
        self.t = 0 if is_reset else self.t % 12 + 1
        seen = self.t if self.is_late else self.t % 12
        flags = np.full(self.num_envs, self.t == 12)
        rewards = np.full(self.num_envs, float(not is_reset))
        return np.full((self.num_envs, 2), float(seen)), rewards, flags, np.zeros_like(flags), {}


class Hangs(Diary):
    """Does not return from its second step for seed 1, nor from its reset for seed 3."""

    def reset(self, *, seed=None, options=None):
        if seed == 3:
            time.sleep(60)
        return super().reset(seed=seed)

    def step(self, action):
        if self.t == 1 and self.seed == 1:
            self.wait()
        return super().step(action)

    def wait(self) -> None:
        time.sleep(60)


class Deaf(Hangs):
    """Cannot be interrupted: signals are held back while it sleeps."""

    def reset(self, *, seed=None, options=None):
        return Diary.reset(self, seed=seed)

    def wait(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(60)


class Dies(Diary):
    """Ends its process in the second step of seed 4, whenever it is played."""

    def step(self, action):
        if self.t == 1 and self.seed == 4:
            os._exit(9)
        return super().step(action)


class DiesAtReset(Diary):
    """The same in the reset of seed 4."""

    def reset(self, *, seed=None, options=None):
        if seed == 4:
            os._exit(9)
        return super().reset(seed=seed)


class NeverStarts(Diary):
    """Has no start for any seed."""

    def reset(self, *, seed=None, options=None):
        raise RuntimeError(f"no start for seed {seed}")


class TenStarts(Diary):
    """Begins in one of `starts` states, which the seed chooses and alone decides the course."""

    def __init__(self, starts: int = 10, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.starts = starts

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed % self.starts)


class StartsAndNone(Diary):
    """Two starts for even seeds, which alone decide the course, always a success; none for odd ones."""

    def reset(self, *, seed=None, options=None):
        if seed % 2:
            raise RuntimeError("no start")
        return super().reset(seed=seed % 4)

    def step(self, action):
        observation, reward, is_over, truncated, _ = super().step(action)
        return observation, reward, is_over, truncated, {"is_success": True} if is_over else {}


class LeavesItsSpace(Diary):
    """Of seed 0 the observations are outside their space."""

    observation_space = spaces.Box(0, 50, (2,), np.float64)

    def step(self, action):
        observation, *rest = super().step(action)
        return observation + (100 if self.seed == 0 else 0), *rest


class OnlyOnce(Diary):
    """Can be built one time; `mark` is a folder of marks."""

    def __init__(self, mark: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if (Path(mark) / "built").exists():
            raise RuntimeError("there is only one")
        (Path(mark) / "built").touch()


class SlowToBuild(Diary):
    """Takes its time in the constructor, and none in its steps."""

    def __init__(self, **kwargs: Any) -> None:
        time.sleep(0.6)
        super().__init__(**kwargs)


class Draws:
    """Acts by the episode's own generator."""

    def predict(self, obs, context):
        return int(context.rng.integers(8))


class DrawsInBatches:
    """The same for whole batches."""

    def predict_batch(self, obs, context):
        return np.array([int(one.rng.integers(8)) for one in context])


class SleepsAtSeedTwo:
    """Does not answer for seed 2 from its fourth step on."""

    def predict(self, obs):
        if obs[1] == 2 and obs[0] >= 3:
            time.sleep(60)
        return 1


class SleepsInBatches:
    """Does not answer a batch in which seed 2 is at its fourth step or later."""

    def predict_batch(self, obs):
        if ((obs[:, 1] == 2) & (obs[:, 0] >= 3)).any():
            time.sleep(60)
        return np.ones(len(obs), np.int64)


class StumblesOnce(Diary):
    """Seed 0 raises in its second step, seed 1 ends the process in its sixth; each once, by marks in a folder."""

    def __init__(self, mark: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mark = Path(mark)

    def step(self, action):
        file = self.mark / str(self.seed)
        if (self.seed, self.t) in ((0, 1), (1, 5)) and not file.exists():
            file.touch()
            if self.seed == 1:
                os._exit(7)
            raise RuntimeError("stumbled once")
        return super().step(action)


class Refuses(Diary):
    """Has no start for seed 15."""

    def reset(self, *, seed=None, options=None):
        if seed == 15:
            raise RuntimeError("no start for seed 15")
        return super().reset(seed=seed)


class Sticks(Diary):
    """Cannot be closed; `how` is the name of what it raises then."""

    def __init__(self, how: str = "OSError", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.how = how

    def close(self):
        raise {"OSError": OSError, "SystemExit": SystemExit}[self.how]("the window is stuck")


class Panic(BaseException):
    """What extensions in other languages raise."""


class Panics(Diary):
    """Panics in the reset of seed 4, or in its third step; `where` says which."""

    def __init__(self, where: str = "step", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.where = where

    def reset(self, *, seed=None, options=None):
        if seed == 4 and self.where == "reset":
            raise Panic("called `unwrap` on a `None`")
        return super().reset(seed=seed)

    def step(self, action):
        if self.seed == 4 and self.t == 2 and self.where == "step":
            raise Panic("called `unwrap` on a `None`")
        return super().step(action)


class Grades(Diary):
    """Reports a grade in place of a success, 0.3 of seed 0 and a tenth more of each seed after it, and a text."""

    def step(self, action):
        observation, reward, is_over, _, _ = super().step(action)
        infos = {"is_success": 0.3 + self.seed / 10, "mood": f"of seed {self.seed}"} if is_over else {}
        return observation, reward, is_over, False, infos


class Mumbles(Diary):
    """Reports a success and two metrics that nobody can read."""

    def step(self, action):
        *answer, info = super().step(action)
        unreadable = {"success": "maybe", "words": "many", "more words": [1, 2]}
        return (*answer, {"score": 1.0, **unreadable} if info else {})
