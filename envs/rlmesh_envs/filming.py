"""Filming: an environment is rendered inside its lane, after each reset and step, before anything can reset it.

The frame travels with the info of that reset or step, also out of a worker process, and is taken out of it before
anybody else reads the info.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import describe_error, is_fault

#: Key of an info -> the frame (height, width, 3) of bytes, or the text of what kept it from being taken.
FRAME = "rlmesh.frame"


class FilmRequest(msgspec.Struct, frozen=True):
    """Which episodes are filmed.

    seeds: of those that are; None is every episode.
    """

    seeds: frozenset[int] | None = None


class FilmedEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Renders after each reset and step of the episodes that are filmed; it changes nothing else.

    env: the whole environment with its wrappers, made with `render_mode="rgb_array"`.
    """

    def __init__(self, env: gym.Env[Any, Any], request: FilmRequest) -> None:
        super().__init__(env)
        self._seeds = request.seeds
        self._is_rolling = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset, and render if the seed is that of an episode that is filmed."""
        self._is_rolling = False
        answer = self.env.reset(seed=seed, options=options)
        self._is_rolling = self._seeds is None or seed in self._seeds
        if not self._is_rolling or not isinstance(answer, (tuple, list)) or len(answer) != 2:
            return answer
        return answer[0], self._with_frame({} if answer[1] is None else answer[1])

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and render if the episode is filmed."""
        answer = self.env.step(action)
        if not self._is_rolling or not isinstance(answer, (tuple, list)) or len(answer) != 5:
            return answer
        return (*answer[:4], self._with_frame(answer[4] or {}))

    def _with_frame(self, info: Any) -> Any:
        # What is no info fails its lane further out; the environment may go on using its own dict.
        return {**info, FRAME: frame_of(self.env)} if isinstance(info, Mapping) else info


def frame_of(env: Any) -> npt.NDArray[np.uint8] | str:
    """Return a copy of what an environment renders now, (height, width, 3) bytes, or why there is none."""
    try:
        frame = env.render()
    except BaseException as error:  # a film is not worth an episode
        if not is_fault(error):
            raise
        return f"render raised {describe_error(error)}"
    if (
        not isinstance(frame, np.ndarray)
        or frame.dtype != np.uint8
        or frame.ndim != 3
        or frame.shape[2] not in (3, 4)
        or not frame.size
    ):
        what = f"{frame.dtype}{list(frame.shape)}" if isinstance(frame, np.ndarray) else type(frame).__name__
        return f"render gave {what if frame is not None else None}, not a frame uint8[height, width, 3]"
    return np.array(frame[:, :, :3])


def prefer_offscreen() -> None:
    """Let MuJoCo render without a display, where there is none and nobody has said how it shall render."""
    if lacks_display():
        os.environ.setdefault("MUJOCO_GL", "egl")


def lacks_display() -> bool:
    """Tell whether nobody could see a window here; systems other than Linux do not say."""
    return sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
