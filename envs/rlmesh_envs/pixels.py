"""Pixels: observations whose frames are rendered only where somebody reads them.

The protocol. An environment may have a method

    skip_pixels(skip: bool) -> None

After `skip_pixels(True)` it may leave the pixel leaves of its observations with any content of their shape and
dtype, such as what they held before; rewards, ends, infos and every other leaf stay as they are. After
`skip_pixels(False)` the next observation is whole. The harness calls it where what was said last changes, and
never unless the policy executes chunks: with `True` before a step whose observation nobody reads, because the next
action is planned already, with `False` before one that is read, and before a reset.

A wrapper hides the offer of what it wraps if it may keep observations, as a stack of frames does: those it kept
would be read later. Known to keep none are those of PASSING and PASSING_KINDS; any other passes the offer on by a
method `skip_pixels` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import (
    OrderEnforcing,
    PassiveEnvChecker,
    RecordEpisodeStatistics,
    TimeLimit,
    TransformObservation,
)

from .filming import FilmedEnv
from .rewards import RawReward, RewardTap

Skip = Callable[[bool], None]

#: Wrappers that hand on each observation by itself, whatever came before.
PASSING = (TimeLimit, OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics, RewardTap, RawReward, FilmedEnv)
#: Kinds that do so too, as long as their `step` is that of their kind.
PASSING_KINDS = (TransformObservation, gym.RewardWrapper, gym.ActionWrapper)
_STEPS = (gym.ObservationWrapper.step, gym.RewardWrapper.step, gym.ActionWrapper.step)


def skip_of(env: gym.Env[Any, Any]) -> tuple[Skip | None, str]:
    """Return the `skip_pixels` that holds for an environment with its wrappers, None if there is none.

    Beside it stands the class of the wrapper that hides an offer further in, empty if none does.
    """
    hiding, layer = "", env
    while True:
        # Looked up layer by layer: what a wrapper passes on through `__getattr__` is no word of its own.
        if "skip_pixels" in getattr(layer, "__dict__", ()) or hasattr(type(layer), "skip_pixels"):
            return (None, hiding) if hiding else (layer.skip_pixels, "")  # type: ignore[attr-defined]
        if not isinstance(layer, gym.Wrapper):
            return None, ""
        if not _passes(layer):
            hiding = hiding or type(layer).__name__
        layer = layer.env


def _passes(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> bool:
    kind = type(wrapper)
    return kind in PASSING or (issubclass(kind, PASSING_KINDS) and kind.step in _STEPS)


class SkippingStep:
    """The step of one environment that may leave out pixels; tells it when what is wanted changes.

    step, skip: of the environment.
    """

    def __init__(self, step: Callable[[Any], Any], skip: Skip) -> None:
        self._step, self._skip = step, skip
        #: Whether nobody will read the observation of the next step.
        self.is_unread = False
        self._was_told = False

    def __call__(self, action: Any) -> Any:
        """Step the environment."""
        self.tell()
        return self._step(action)

    def tell(self) -> None:
        """Tell the environment what is wanted, if it does not know."""
        if self.is_unread is not self._was_told:
            self._was_told = self.is_unread
            self._skip(self.is_unread)


class SkippingSteps:
    """The steps of those lanes whose environment may leave out pixels.

    Axes: R stepped lanes.
    """

    def __init__(self) -> None:
        self._steps: dict[int, SkippingStep] = {}

    @property
    def has_any(self) -> bool:
        """Whether there are such lanes."""
        return bool(self._steps)

    def step_of(self, lane: int, env: gym.Env[Any, Any], step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return what steps a lane.

        env: with its wrappers; asked for again when it was built anew. step: of the part of it that is stepped.
        """
        self._steps.pop(lane, None)
        skip, _ = skip_of(env)
        if skip is None:
            return step
        self._steps[lane] = SkippingStep(step, skip)
        return self._steps[lane]

    def want(self, lanes: Sequence[int], unread: Sequence[bool]) -> None:
        """Note what is wanted of the next step (R,); the environments are told within it."""
        for lane, is_unread in zip(lanes, unread, strict=True):
            if lane in self._steps:
                self._steps[lane].is_unread = is_unread

    def want_whole(self, lane: int) -> None:
        """Have the next observation of a lane whole, as the first one of an episode must be."""
        if lane in self._steps:
            self._steps[lane].is_unread = False
            self._steps[lane].tell()


class PixelsOnRequest(gym.Wrapper[Any, Any, Any, Any]):
    """Adds what `render` shows to the observation, and leaves out frames that nobody reads.

    env: made with `render_mode="rgb_array"`; its frames (H, W, 3) uint8 have one size.
    key: of the frame. A Dict observation gets it beside its own keys; any other becomes a Dict with it, and with
        the observation under `obs_key`. render_only: the frame stands alone in the Dict.

    Raises ValueError for an environment that renders no array, and for a key that is taken.
    """

    def __init__(
        self, env: gym.Env[Any, Any], key: str = "pixels", *, obs_key: str = "state", render_only: bool = False
    ) -> None:
        super().__init__(env)
        if env.render_mode != "rgb_array":
            raise ValueError(f'render_mode is {env.render_mode!r}: make the environment with "rgb_array"')
        self._key, self._render_only = key, render_only
        inner = env.observation_space
        self._is_dict = isinstance(inner, spaces.Dict)
        known = dict(inner.spaces) if isinstance(inner, spaces.Dict) else {obs_key: inner}
        if key in known:
            raise ValueError(f"the observation has a key {key!r} already: choose another")
        self._obs_key, self._is_skipping = obs_key, False
        env.reset()  # most environments cannot render before
        self._frame = self._render()
        frame = spaces.Box(0, 255, self._frame.shape, np.uint8)
        self.observation_space = spaces.Dict({**({} if render_only else known), key: frame})

    def skip_pixels(self, skip: bool) -> None:
        """Leave the frame as it was from the next observation on, or render it again."""
        self._is_skipping = skip

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset, and look."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._with_frame(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and look."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._with_frame(observation), reward, terminated, truncated, info

    def _with_frame(self, observation: Any) -> dict[str, Any]:
        if not self._is_skipping:
            self._frame = self._render()
        if self._render_only:
            return {self._key: self._frame}
        rest = observation if self._is_dict else {self._obs_key: observation}
        return {**rest, self._key: self._frame}

    def _render(self) -> Any:
        frame: Any = self.env.render()
        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8:
            raise ValueError(f"render gave {type(frame).__name__}, expected an array of uint8")
        # Those that render into one array would change what was handed out before.
        return frame.copy()
