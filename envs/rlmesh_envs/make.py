"""From an env request to lanes."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rlmesh_adapters.errors import (
    EnvironmentBuildError,
    HarnessError,
    describe_error,
    nearest,
    user_place,
)

from .foreign import ForeignLanes
from .lanes import LaneVectorEnv
from .processes import WorkerLanes
from .registry import find_environment
from .request import EnvInfo, EnvRequest, WrapperRequest
from .rewards import RewardTap

Lanes = LaneVectorEnv | WorkerLanes | ForeignLanes


def make_lanes(request: EnvRequest) -> tuple[Lanes, EnvInfo]:
    """Build the lanes of a request.

    Raises EnvironmentBuildError for an unknown id, a package that is not installed, a constructor that
    refuses its arguments, a wrapper that does not exist, or a combination that cannot be had.
    """
    source = find_environment(request)
    if request.vectorization == "native":
        return _foreign(_make_native(request, source), functools.partial(_make_native, request, source))
    if request.autoreset is not None:
        build = functools.partial(_make_gymnasium, request, source)
        return _foreign(build(), build)
    if request.vectorization == "async":
        workers = WorkerLanes(request, serve_request)
        return workers, workers.info
    return _in_process(request, source)


def _in_process(request: EnvRequest, source: EnvSpec | Any) -> tuple[Lanes, EnvInfo]:
    builder = functools.partial(make_one, request, source)
    first = builder()
    if isinstance(first, VectorEnv):
        # A class named by `module:name` may be a vector environment of its own.
        first.close()
        build = functools.partial(_call_factory, request, source, num_envs=request.num_envs)
        return _foreign(build(), build)
    stock = [first]
    lanes = LaneVectorEnv([lambda: stock.pop() if stock else builder()] + [builder] * (request.num_envs - 1))
    return lanes, _info(lanes.envs[0])


def serve_request(request: EnvRequest, num_lanes: int) -> tuple[LaneVectorEnv, EnvInfo]:
    """Build the lanes of one worker process, from nothing but the request."""
    if request.prepare is not None:
        request.prepare()
    source = find_environment(request)
    lanes = LaneVectorEnv([functools.partial(make_one, request, source)] * num_lanes)
    return lanes, _info(lanes.envs[0])


def make_one(request: EnvRequest, source: EnvSpec | Any) -> Any:
    """Build one environment with the request's limit and wrappers.

    The limit replaces the registered one: a second one around it could only shorten episodes.
    """
    if isinstance(source, EnvSpec):
        try:
            env = gym.make(
                source,
                max_episode_steps=request.max_episode_steps,
                disable_env_checker=True,
                **request.kwargs,
            )
        except Exception as error:
            raise _cannot_build(request, error) from error
    else:
        env = _call_factory(request, source)
        if isinstance(env, gym.Env) and request.max_episode_steps is not None:
            env = gym.wrappers.TimeLimit(env, request.max_episode_steps)
    if not request.wrappers:
        return env
    env = RewardTap(env)
    for wrapper in request.wrappers:
        env = _wrap(env, wrapper)
    return env


def _call_factory(request: EnvRequest, factory: Any, **extra: Any) -> Any:
    try:
        env = factory(**request.kwargs, **extra)
    except Exception as error:
        raise _cannot_build(request, error) from error
    if not isinstance(env, (gym.Env, VectorEnv)):
        raise EnvironmentBuildError(
            f"`{request.id}` made a {type(env).__name__}, not a gymnasium environment",
            where="env.id",
            mend="name a class or function that returns a gymnasium.Env",
        )
    return env


def _cannot_build(request: EnvRequest, error: Exception) -> EnvironmentBuildError:
    if isinstance(error, HarnessError):
        return EnvironmentBuildError(error.cause, where=error.where, mend=error.mend)
    # Gymnasium repeats a constructor's TypeError with the arguments, which stand in ours already.
    first = error.__cause__ if isinstance(error.__cause__, TypeError) else error
    arguments = ", ".join(f"{key}={value!r}" for key, value in request.kwargs.items())
    if isinstance(first, (ModuleNotFoundError, gym.error.DependencyNotInstalled)):
        mend = "install the package it needs"
    else:
        mend = "check its arguments: env.kwargs in a route, --env-arg NAME=VALUE on the command line"
    place = user_place(first.__traceback__)
    return EnvironmentBuildError(
        f"`{request.id}` cannot be built with ({arguments}): {describe_error(first)}",
        where="env.kwargs" if "gymnasium" in place and "registration" in place else place or "env",
        mend=mend,
    )


def _wrap(env: Any, wrapper: WrapperRequest) -> Any:
    where = f"env.wrappers: {wrapper.name}"
    module_name, _, name = wrapper.name.rpartition(":")
    try:
        module = importlib.import_module(module_name or "gymnasium.wrappers")
    except ImportError as error:
        raise EnvironmentBuildError(
            f"wrapper module `{module_name}` cannot be imported: {describe_error(error)}",
            where=where,
            mend="name it as package.module:Class",
        ) from error
    make = getattr(module, name, None)
    if not callable(make):
        near = nearest(name, dir(module))
        mend = f"did you mean {' or '.join(near)}?" if near else "name it as package.module:Class"
        raise EnvironmentBuildError(f"no wrapper `{name}` in {module.__name__}", where=where, mend=mend)
    try:
        return make(env, **wrapper.kwargs)
    except Exception as error:
        raise EnvironmentBuildError(
            f"wrapper `{wrapper.name}` cannot be put on: {describe_error(error)}",
            where=where,
            mend="check its kwargs in the route",
        ) from error


def _make_native(request: EnvRequest, source: EnvSpec | Any) -> VectorEnv[Any, Any, Any]:
    if not isinstance(source, EnvSpec) or source.vector_entry_point is None:
        raise EnvironmentBuildError(
            f"`{request.id}` has no vector entry point of its own",
            where="vectorization: native",
            mend="use --vectorization sync or async",
        )
    if request.wrappers:
        raise EnvironmentBuildError(
            "wrappers of single environments cannot be put on a native vector environment",
            where="env.wrappers",
            mend="drop them, or use --vectorization sync",
        )
    kwargs = dict(request.kwargs)
    if request.max_episode_steps is not None:
        kwargs["max_episode_steps"] = request.max_episode_steps
    try:
        return gym.make_vec(source, num_envs=request.num_envs, vectorization_mode="vector_entry_point", **kwargs)
    except Exception as error:
        raise _cannot_build(request, error) from error


def _make_gymnasium(request: EnvRequest, source: EnvSpec | Any) -> VectorEnv[Any, Any, Any]:
    """Build gymnasium's own vector environment with the autoreset mode that the request names."""
    builders = [functools.partial(make_one, request, source)] * request.num_envs
    mode = AutoresetMode(_MODES[str(request.autoreset)])
    if request.vectorization == "async":
        # Shared memory cannot hold spaces that do not stack; copies through pipes can.
        return AsyncVectorEnv(builders, context=request.start_method, shared_memory=False, autoreset_mode=mode)
    return SyncVectorEnv(builders, autoreset_mode=mode)


_MODES = {mode.name.lower(): mode.value for mode in AutoresetMode}


def _foreign(env: VectorEnv[Any, Any, Any], rebuild: Any) -> tuple[Lanes, EnvInfo]:
    lanes = ForeignLanes(env, rebuild)
    spec = env.spec
    info = EnvInfo(
        id=spec.id if spec is not None else type(env.unwrapped).__name__,
        layers=tuple(_layers(env)),
        max_episode_steps=spec.max_episode_steps if spec is not None else None,
        autoreset=lanes.autoreset,
        is_seeded=lanes.is_seeded,
    )
    return lanes, info


def _info(env: gym.Env[Any, Any]) -> EnvInfo:
    spec = env.spec
    return EnvInfo(
        id=spec.id if spec is not None else type(env.unwrapped).__name__,
        layers=tuple(name for name in _layers(env) if name != RewardTap.__name__),
        max_episode_steps=_limit(env),
        autoreset="disabled",
        is_seeded=True,
    )


def _limit(env: Any) -> int | None:
    """Return the steps of the innermost time limit around the environment, None if there is none."""
    limit: int | None = env.spec.max_episode_steps if env.spec is not None else None
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            limit = int(env._max_episode_steps)
        env = env.env
    return limit


def _layers(env: Any) -> Iterator[str]:
    yield type(env).__name__
    while isinstance(env, (gym.Wrapper, gym.vector.VectorWrapper)):
        env = env.env
        yield type(env).__name__
