"""What a built environment turned out to be: its layers, its limit, what it says of itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv

from rlmesh_adapters.errors import is_installed_file

from .endings import KeptEnding
from .filming import FilmedEnv
from .metadata import metadata_of, render_fps_of
from .pixels import skip_of
from .remarks import cautions_of, layers_of, notes_of
from .request import EnvInfo, EnvRequest
from .rewards import RawReward, RewardTap

if TYPE_CHECKING:
    from .foreign import ForeignLanes

#: Wrappers that are not the user's.
OURS = (RewardTap, RawReward, FilmedEnv, KeptEnding)


def foreign_info(request: EnvRequest, source: EnvSpec | Any, env: Any, lanes: ForeignLanes) -> EnvInfo:
    """Return what a vector environment with an autoreset of its own is."""
    envs = getattr(env.unwrapped, "envs", None)
    spec = source if isinstance(source, EnvSpec) else env.spec
    inner = list(layers_of(envs[0])) if envs else []
    registered = spec.max_episode_steps if spec is not None else None
    return EnvInfo(
        id=spec.id if spec is not None else request.id,
        layers=(*_layers(env), *(_layers(envs[0]) if envs else _distant_layers(env))),
        max_episode_steps=_limit(envs[0]) if envs else request.max_episode_steps or registered,
        autoreset=lanes.autoreset,
        is_seeded=lanes.is_seeded,
        is_lockstep=True,
        files=_files(env) + (_files(envs[0]) if envs else ()),
        metadata=_metadata(envs[0] if envs else env),
        notes=notes_of(inner) if envs else _distant(request, env, "notes"),
        cautions=cautions_of([*layers_of(env), *inner]) or _distant(request, env, "cautions"),
    )


def lane_info(env: gym.Env[Any, Any]) -> EnvInfo:
    """Return what an environment of ours to reset is, with its wrappers."""
    spec = env.spec
    skip, hidden_by = skip_of(env)
    layers = list(layers_of(env))
    return EnvInfo(
        id=spec.id if spec is not None else type(env.unwrapped).__name__,
        layers=tuple(_layers(env)),
        max_episode_steps=_limit(env),
        autoreset="disabled",
        is_seeded=True,
        skips_pixels=skip is not None,
        pixels_hidden_by=hidden_by,
        files=_files(env),
        metadata=_metadata(env),
        render_fps=render_fps_of(env),
        notes=notes_of(layers),
        cautions=cautions_of(layers),
    )


def _metadata(env: Any) -> dict[str, Any]:
    """Return what an environment says of itself for us."""
    return {key: value for key, value in metadata_of(env).items() if str(key).startswith("rlmesh.")}


def _limit(env: Any) -> int | None:
    """Return the steps of the shortest time limit around an environment, None if there is none."""
    return min((int(limit._max_episode_steps) for limit in time_limits(env)), default=None)


def time_limits(env: Any) -> Iterator[gym.wrappers.TimeLimit[Any, Any]]:
    """Yield the time limits around an environment, outermost first."""
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            yield env
        env = env.env


def _files(env: Any) -> tuple[str, ...]:
    """Return the source files of an environment's layers; what is installed has a version that tells it apart."""
    modules = dict.fromkeys(type(layer).__module__ for layer in _kept_layers(env))
    files = (getattr(sys.modules.get(name), "__file__", None) for name in modules)
    return tuple(file for file in files if isinstance(file, str) and not is_installed_file(file))


def _layers(env: Any) -> Iterator[str]:
    """Yield class names from the outermost layer in."""
    return (type(layer).__name__ for layer in _kept_layers(env))


def _kept_layers(env: Any) -> Iterator[Any]:
    """Return an environment and what is around it, from outside in; our own wrappers are not the user's."""
    return (layer for layer in layers_of(env) if not isinstance(layer, OURS))


def _distant_layers(env: Any) -> list[str]:
    """Return the layers inside gymnasium's worker processes, which it prints as `<Outer<Inner<id>>>`."""
    if not isinstance(env.unwrapped, AsyncVectorEnv):
        return []
    ours = [kind.__name__ for kind in OURS]
    return [name for name in re.findall(r"<(\w+)(?=[<>])", str(env.call("__str__")[0])) if name not in ours]


def _distant(request: EnvRequest, env: Any, name: str) -> dict[str, str]:
    """Return `notes` or `cautions` of RawReward around a route's wrappers inside gymnasium's worker processes."""
    if not request.wrappers or not isinstance(env.unwrapped, AsyncVectorEnv):
        return {}
    return dict(env.call(name)[0])
