"""Autoresets of vector environments: which mode one has, and what only a reset brings."""

from __future__ import annotations

from typing import Any

from gymnasium.vector import AutoresetMode, VectorEnv

from rlmesh_adapters.errors import EnvironmentBuildError

from .metadata import metadata_of
from .steps import Info


def autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Return the mode that a vector environment declares; raise EnvironmentBuildError if it declares none."""
    mode = metadata_of(env).get("autoreset_mode")
    for known in AutoresetMode:
        if mode is known or (isinstance(mode, str) and mode in (known.name, known.value)):
            return known
    raise EnvironmentBuildError(
        f"{type(env.unwrapped).__name__} does not say how it resets: metadata['autoreset_mode'] is {mode!r}",
        where="vector environment",
        mend="set it to AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED; a guess would count wrong steps",
    )


def check_roll(lanes: list[int], rewards: Any, terminated: Any, truncated: Any) -> None:
    """A reset step pays nothing and ends nothing; otherwise the environment has another mode than it says."""
    for lane in lanes:
        if float(rewards[lane]) != 0.0 or terminated[lane] or truncated[lane]:
            raise EnvironmentBuildError(
                f"lane {lane} paid {float(rewards[lane])} (terminated {bool(terminated[lane])}, truncated "
                f"{bool(truncated[lane])}) on the step that should have reset it",
                where="vector environment, autoreset mode NEXT_STEP",
                mend="correct metadata['autoreset_mode'] of the environment",
            )


def without_final(info: Info) -> Info:
    """Return what an info says of the episode that begins, where it also tells how the one before ended."""
    return {
        key: value for key, value in info.items() if key not in ("final_info", "final_obs", "final_observation")
    }
