"""Vector environments of others: registered beside single ones, made by factories, or gymnasium's own."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode, VectorEnv

from rlmesh_adapters.errors import EnvironmentBuildError, HarnessError, is_fault

from .merging import WideAsyncVectorEnv, WideSyncVectorEnv
from .registry import find_in_worker, with_spec
from .request import EnvRequest
from .single import call_factory, cannot_build, make_one

#: Words for `autoreset` of a request, and gymnasium's for them.
AUTORESET_MODES = {mode.name.lower(): mode.value for mode in AutoresetMode}


def takes_lanes(factory: Any) -> bool:
    """Tell whether a class or function makes a vector environment: it asks for the number of lanes."""
    try:
        return "num_envs" in inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False


def make_from_factory(request: EnvRequest, factory: Any) -> VectorEnv[Any, Any, Any]:
    """Call a factory of vector environments, with the lanes and the limit that it takes."""
    if request.wrappers or request.autoreset is not None or request.vectorization == "async":
        raise EnvironmentBuildError(
            f"`{request.id}` makes a vector environment, which takes no wrappers, autoreset or worker processes",
            where="env",
            mend="drop them",
        )
    extra: dict[str, Any] = {"num_envs": request.num_envs}
    if request.max_episode_steps is not None:
        extra["max_episode_steps"] = request.max_episode_steps
    env = call_factory(request, factory, **extra)
    if not isinstance(env, VectorEnv):
        raise EnvironmentBuildError(
            f"`{request.id}` takes num_envs, but made a {type(env).__name__}, no vector environment",
            where="env.id",
            mend="name a class or function that returns a gymnasium VectorEnv, or takes no num_envs",
        )
    return env


def make_native(request: EnvRequest, source: EnvSpec | Any) -> VectorEnv[Any, Any, Any]:
    """Build the vector environment that is registered beside a single one."""
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
    kwargs = copy.deepcopy(dict(request.kwargs))
    if request.max_episode_steps is not None:
        kwargs["max_episode_steps"] = request.max_episode_steps
    try:
        return gym.make_vec(source, num_envs=request.num_envs, vectorization_mode="vector_entry_point", **kwargs)
    except BaseException as error:
        if not is_fault(error):
            raise
        raise cannot_build(request, error) from error


def make_gymnasium(request: EnvRequest, source: EnvSpec | Any) -> VectorEnv[Any, Any, Any]:
    """Build gymnasium's own vector environment with the autoreset mode that the request names."""
    mode = AutoresetMode(AUTORESET_MODES[str(request.autoreset)])
    try:
        if request.vectorization == "async":
            builder = functools.partial(serve_one, with_spec(request, source))
            # Shared memory cannot hold spaces that do not stack; copies through pipes can.
            return WideAsyncVectorEnv(
                [builder] * request.num_envs,
                context=request.start_method,
                shared_memory=False,
                autoreset_mode=mode,
            )
        return WideSyncVectorEnv(
            [functools.partial(make_one, request, source)] * request.num_envs, autoreset_mode=mode
        )
    except HarnessError:
        raise
    except BaseException as error:
        if not is_fault(error):
            raise
        raise cannot_build(request, error) from error


def serve_one(request: EnvRequest) -> Any:
    """Build one environment in a worker process of gymnasium's, from nothing but the request."""
    return make_one(request, find_in_worker(request))
