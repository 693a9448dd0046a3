"""Environments for policies that plan chunks, registered as `chunk_toys:Name-v0`, and what they were asked to do.

Frames tell seed and step; those of a film that were left out are garbage, so that who reads them acts otherwise.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from toys import Toy

#: (seed, t) of every frame that was rendered in this process.
RENDERED: list[tuple[int, int]] = []
GARBAGE = 255

_noise = itertools.count(1)


class Lengths(Toy):
    """As many steps as `lengths` says for a seed, or 40 to 120 of them; pays a number of seed, step and action."""

    def __init__(self, lengths: list[int] | None = None) -> None:
        self.lengths = lengths

    def reset(self, *, seed=None, options=None):
        first = super().reset(seed=seed)
        drawn = int(self.np_random.integers(40, 121))
        self.length = drawn if self.lengths is None else self.lengths[self.seed % len(self.lengths)]
        return first

    def pay(self, action):
        return self.seed % 7 + self.t / 8 + int(action), self.t >= self.length, False, {}


class Film(Lengths):
    """Sees [t, seed] and a frame; `breaks_at`: odd seeds break before that step, each time."""

    observation_space = spaces.Dict(
        state=spaces.Box(-1e9, 1e9, (2,), np.float64), pixels=spaces.Box(0, 255, (4, 5, 3), np.uint8)
    )

    def __init__(self, lengths: list[int] | None = None, breaks_at: int | None = None) -> None:
        super().__init__(lengths)
        self.breaks_at, self.is_skipping = breaks_at, False

    def skip_pixels(self, skip: bool) -> None:
        assert skip is not self.is_skipping, "told what it knows"
        self.is_skipping = skip

    def look(self) -> Any:
        if self.is_skipping:
            frame = np.full((4, 5, 3), GARBAGE - next(_noise) % 2, np.uint8)
        else:
            RENDERED.append((self.seed, self.t))
            frame = np.full((4, 5, 3), (self.seed * 31 + self.t * 7) % 251, np.uint8)
        return {"state": np.array([self.t, self.seed], np.float64), "pixels": frame}

    def pay(self, action):
        if self.breaks_at == self.t and self.seed % 2:
            raise RuntimeError("the projector is broken")
        return super().pay(action)


class Slow(Film):
    """Takes `seconds` for a step, four fifths of them for the frame."""

    def __init__(self, seconds: float, lengths: list[int] | None = None) -> None:
        super().__init__(lengths)
        self.seconds = seconds

    def step(self, action):
        time.sleep(self.seconds / 5 if self.is_skipping else self.seconds)
        return super().step(action)


class Drawn(Lengths):
    """Renders a frame that tells seed and step."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, lengths: list[int] | None = None, render_mode: str | None = None) -> None:
        super().__init__(lengths)
        self.render_mode = render_mode

    def render(self):
        RENDERED.append((self.seed, self.t))
        return np.full((4, 5, 3), (self.seed * 31 + self.t * 7) % 251, np.uint8)


class Push(Film):
    """Takes one number."""

    action_space = spaces.Box(0, 500, (1,), np.float32)

    def pay(self, action):
        return super().pay(action[0])


class Offering(Drawn):
    """Offers to skip by an attribute of the object."""

    def __init__(self, lengths: list[int] | None = None, render_mode: str | None = None) -> None:
        super().__init__(lengths, render_mode)
        self.skip_pixels = lambda skip: None


class Remembering(gym.Wrapper):
    """Hands on the pixels of the step before, as a wrapper that keeps observations may."""

    def reset(self, **options):
        first, info = self.env.reset(**options)
        self.before = first["pixels"]
        return first, info

    def step(self, action):
        seen, *rest = self.env.step(action)
        shown, self.before = self.before, seen["pixels"]
        return {**seen, "pixels": shown}, *rest


class Trusting(gym.Wrapper):
    """Passes the offer on in words of its own."""

    def skip_pixels(self, skip):
        self.env.get_wrapper_attr("skip_pixels")(skip)


class Forwarding(Remembering):
    """Lets whatever it has not be looked for further in, as many wrappers do."""

    def __getattr__(self, name):
        return getattr(self.env, name)


class Raising(gym.RewardWrapper):
    """Pays one more."""

    def reward(self, reward):
        return reward + 1


class Shadowing(gym.RewardWrapper):
    """A reward wrapper that takes its steps in its own way."""

    def step(self, action):
        return self.env.step(action)

    def reward(self, reward):
        return reward


class Brightening(gym.wrappers.TransformObservation):
    """Makes something of each observation by itself."""

    def __init__(self, env):
        super().__init__(env, lambda seen: {**seen, "pixels": seen["pixels"] ^ 1}, env.observation_space)


for _toy in (Lengths, Film, Slow, Drawn, Push):
    gym.register(f"{_toy.__name__}-v0", entry_point=f"chunk_toys:{_toy.__name__}", disable_env_checker=True)
