"""Environments that are filmed: what a frame shows is known; named `film_toys:Name`."""

from __future__ import annotations

import time
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces

Step = tuple[Any, float, bool, bool, dict[str, Any]]


class Clock(gym.Env):
    """Every pixel is the time. Three steps that pay seed + t; an even seed is a success."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space: spaces.Space = spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space: spaces.Space = spaces.Discrete(4)
    side = (8, 8)

    def __init__(self, render_mode: str | None = None, length: int = 3) -> None:
        self.render_mode, self.length = render_mode, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seed, self.t = seed, 0
        return self.look(), {}

    def look(self) -> Any:
        return np.array([self.t, self.seed], np.float64)

    def step(self, action) -> Step:
        self.t += 1
        is_over = self.t >= self.length
        info = {"is_success": self.seed % 2 == 0} if is_over else {}
        return self.look(), float(self.seed + self.t), is_over, False, info

    def render(self) -> Any:
        return np.full((*self.side, 3), self.t, np.uint8)


class Odd(Clock):
    """Frames of odd sides."""

    side = (7, 9)


class Blind(Clock):
    """Has no picture, as where no display is."""

    def render(self) -> Any:
        return None


class Growing(Clock):
    """The last frame is larger than the others."""

    def render(self) -> Any:
        side = 8 if self.t < self.length else 16
        return np.full((side, side, 3), self.t, np.uint8)


class Torn(Clock):
    """Cannot be rendered at t = 2."""

    def render(self) -> Any:
        if self.t == 2:
            raise OSError("the display went away")
        return super().render()


class Falls(Clock):
    """Raises in its second step, for seed 1."""

    def step(self, action) -> Step:
        if self.seed == 1 and self.t == 1:
            raise RuntimeError("a cable came loose")
        return super().step(action)


class Modeless(Clock):
    """Takes no render_mode."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(self) -> None:
        super().__init__()


class Camera(Clock):
    """Shows a small picture in which each pixel is told apart, and the time."""

    observation_space = spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (8, 10, 3), np.uint8),
            "where": spaces.Box(-1, 1, (2,), np.float32),
        }
    )

    def look(self) -> Any:
        return {"camera": picture(self.seed, self.t), "where": np.array([self.t / 10, 0.5], np.float32)}


def picture(seed: int, t: int) -> np.ndarray:
    """Return what Camera shows."""
    rows, columns, channels = np.mgrid[:8, :10, :3]
    return ((rows * 24 + columns * 3 + channels + 40 * t + 7 * seed) % 256).astype(np.uint8)


class Leaves(Clock):
    """An observation with a leaf of every kind, and infos that hold more than numbers."""

    observation_space = spaces.Dict(
        {
            "half": spaces.Box(-10, 10, (2, 3), np.float16),
            "count": spaces.Discrete(1000),
            "flags": spaces.MultiBinary(3),
            "pair": spaces.Tuple((spaces.Box(0, 255, (2,), np.uint8), spaces.MultiDiscrete([9, 9]))),
            "text": spaces.Text(20),
            "graph": spaces.Graph(spaces.Box(0, 9, (2,)), None),
        }
    )
    action_space = spaces.Dict({"arm": spaces.Box(-1, 1, (2,), np.float32), "grip": spaces.Discrete(2)})

    def look(self) -> Any:
        t = self.t
        return {
            "half": np.full((2, 3), t + 0.5, np.float16),
            "count": t,
            "flags": np.array([1, 0, t % 2], np.int8),
            "pair": (np.array([t, self.seed], np.uint8), np.array([t, 8])),
            "text": f"step {t}, “ja”",
            "graph": spaces.GraphInstance(np.full((t + 1, 2), t, np.float32), None, None),
        }

    def step(self, action) -> Step:
        *rest, _ = super().step(action)
        info = {"bad": float("nan"), "frame": np.zeros((100, 100)), "small": np.arange(2), "key": {3: "[b]x"}}
        return *rest, info  # type: ignore[return-value]


class Same(Clock):
    """Writes into one observation and one info, over and over."""

    def __init__(self, render_mode: str | None = None) -> None:
        super().__init__(render_mode)
        self.seen, self.info = np.zeros(2), {"t": 0}

    def look(self) -> Any:
        self.seen[:] = self.t, self.seed
        return self.seen

    def step(self, action) -> Step:
        observation, reward, terminated, truncated, _ = super().step(action)
        self.info["t"] = self.t
        return observation, reward, terminated, truncated, self.info


class Forgetful(Same):
    """Writes into that info and observation in its reset, too."""

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed, options=options)
        self.info["t"] = 0
        return observation, self.info

    def step(self, action) -> Step:
        self.seed = 0 if self.seed is None else self.seed
        return super().step(action)

    def look(self) -> Any:
        self.seed = 0 if self.seed is None else self.seed
        return super().look()


class Idle(Clock):
    """Takes no action at all."""

    action_space = spaces.Dict({"arm": spaces.Tuple(())})


class Large(Clock):
    """Moving frames of 96 by 96 that cost nothing to make; a step sleeps for a millisecond."""

    def __init__(self, render_mode: str | None = None, length: int = 3) -> None:
        super().__init__(render_mode, length)
        rows, columns = np.mgrid[:96, :96]
        pictures = [[rows + 2 * t, columns, (rows + columns) // 2 + t] for t in range(8)]
        self.frames = [np.stack(channels, -1).astype(np.uint8) for channels in pictures]

    def step(self, action) -> Step:
        time.sleep(0.001)
        return super().step(action)

    def render(self) -> Any:
        return self.frames[self.t % 8]
