"""Rendering: an environment that is looked at while an episode is played again."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import EnvironmentBuildError, HarnessError, describe_error, is_fault, user_place
from rlmesh_envs.filming import FRAME, FilmRequest, lacks_display
from rlmesh_envs.make import make_lanes
from rlmesh_envs.metadata import render_fps_of, render_modes_of

from .contracting import alone, env_request
from .schema import Route

#: What `--render` takes -> the mode of gymnasium's that it means.
MODES = {"human": "human", "video": "rgb_array"}


class Film(Protocol):
    """Whatever takes frames (height, width, 3) of bytes."""

    def restart(self) -> None:
        """Forget the frames so far."""
        ...

    def add(self, frame: npt.NDArray[np.uint8]) -> None:
        """Take one frame."""
        ...


class Camera:
    """Asks the environment for a frame after its reset and after every step.

    current: returns the environment; one that failed is built anew, so it is asked for each time.
    film: takes the frames.

    Raises HarnessError, from its methods, where no frame can be had.
    """

    def __init__(self, current: Callable[[], Any], film: Film) -> None:
        self._current, self._film = current, film

    def begin(self) -> None:
        """Take the first frame."""
        self._film.restart()
        self.look()

    def look(self) -> None:
        """Take one frame."""
        try:
            frame = self._current().render()
        except BaseException as error:
            if not is_fault(error):
                raise
            raise HarnessError(
                f"render of the environment raised: {describe_error(error)}",
                where=user_place(error.__traceback__),
                mend="replay it without --render",
            ) from error
        if (
            not isinstance(frame, np.ndarray)
            or frame.dtype != np.uint8
            or frame.ndim != 3
            or frame.shape[2] not in (3, 4)
        ):
            what = f"{frame.dtype}{list(frame.shape)}" if isinstance(frame, np.ndarray) else type(frame).__name__
            raise HarnessError(
                f"render of the environment gave {what}, not a frame uint8[height, width, 3]",
                where="--render",
                mend="replay it without --render video",
            )
        self._film.add(frame[:, :, :3])


def check_display() -> None:
    """Raise HarnessError where there is no display for a window; SDL may have been told of another way."""
    if lacks_display() and not os.environ.get("SDL_VIDEODRIVER"):
        raise HarnessError(
            "there is no display for a window: neither DISPLAY nor WAYLAND_DISPLAY is set",
            where="--render human",
            mend="use --render video, or give it a display that nobody sees: xvfb-run -a rlmesh replay ...",
        )


def check_render_mode(route: Route, mode: str) -> float | None:
    """See whether an environment can be rendered, and return the frames a second that it says, or None.

    mode: `human` or `rgb_array`.

    Raises HarnessError, with the modes that there are, if it cannot.
    """
    try:
        lanes, _ = make_lanes(env_request(route, mode))
    except EnvironmentBuildError as error:
        known = _known_modes(route)
        if mode in known:  # it should go; what is wrong is another thing
            raise
        raise _no_mode(route, mode, known) from error
    try:
        envs = getattr(lanes, "envs", None)
        env = envs[0] if envs else None
        known = render_modes_of(env)
        # What an environment lists holds; one that lists nothing may still have taken the mode.
        if env is None or (mode not in known if known else env.render_mode != mode):
            raise _no_mode(route, mode, known)
        return render_fps_of(env)
    finally:
        lanes.close()


def check_film(route: Route, where: str) -> None:
    """See whether an environment can be filmed, in the kind of process in which it will be.

    where: what asks for it, for messages.

    Raises HarnessError, with what it gave in place of a frame, if it cannot.
    """
    one = msgspec.structs.replace(route, num_envs=1)
    try:
        lanes, _ = make_lanes(env_request(one, MODES["video"], film=FilmRequest()))
    except EnvironmentBuildError as error:
        if error.where == "record" or MODES["video"] in _known_modes(route):
            raise
        raise _not_filmed(route, f"it cannot be built with render_mode rgb_array: {error.cause}", where) from error
    try:
        resets = lanes.reset_lanes([0], [route.episode_seeds[0]])
    finally:
        lanes.close()
    frame = None if resets.failures else resets.infos[0].get(FRAME)
    if isinstance(frame, str):
        raise _not_filmed(route, frame, where)


def _not_filmed(route: Route, reason: str, where: str) -> HarnessError:
    known = ", ".join(_known_modes(route)) or "none"
    backend = os.environ.get("MUJOCO_GL")
    setting = "is not set" if backend is None else f"is {backend}"
    return HarnessError(
        f"{route.env.id} cannot be filmed: {reason} (its render_modes are {known}; MUJOCO_GL {setting})",
        where=where,
        mend="use an environment that renders with render_mode rgb_array (MuJoCo without a display needs "
        "MUJOCO_GL=egl or osmesa), or drop --record video",
    )


def _known_modes(route: Route) -> Sequence[str]:
    lanes, _ = make_lanes(env_request(alone(route)))
    try:
        envs = getattr(lanes, "envs", None)
        return render_modes_of(envs[0] if envs else None)
    finally:
        lanes.close()


def _no_mode(route: Route, mode: str, known: Sequence[str]) -> HarnessError:
    offered = [name for name, needed in MODES.items() if needed in known]
    return HarnessError(
        f"{route.env.id} does not offer render_mode `{mode}`: its render_modes are {', '.join(known) or 'none'}",
        where="--render",
        mend=f"use --render {' or '.join(offered)}" if offered else "replay it without --render",
    )
