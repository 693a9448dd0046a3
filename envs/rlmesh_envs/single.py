"""One environment of a request, as a lane is built from it."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv

from rlmesh_adapters.errors import EnvironmentBuildError, HarnessError, describe_error, is_fault, user_place

from .endings import KeptEnding
from .env_info import time_limits
from .filming import FilmedEnv
from .remarks import cautions_of, layers_of, notes_of
from .request import EnvRequest
from .rewards import RawReward, RewardTap
from .wrapping import wrap


def make_one(request: EnvRequest, source: EnvSpec | Any, *, may_be_vector: bool = False) -> Any:
    """Build one environment with the request's limit and wrappers.

    The limit replaces the one there is: a second one around it could only shorten episodes.
    """
    if isinstance(source, EnvSpec):
        try:
            env = gym.make(
                source,
                max_episode_steps=request.max_episode_steps,
                disable_env_checker=True,
                **copy.deepcopy(dict(request.kwargs)),
            )
        except BaseException as error:
            if not is_fault(error):
                raise
            raise cannot_build(request, error) from error
    else:
        env = call_factory(request, source)
        if isinstance(env, VectorEnv):
            if may_be_vector and not request.wrappers:
                return env
            raise EnvironmentBuildError(
                f"`{request.id}` makes a vector environment, which cannot be put into lanes or wrappers",
                where="env.id",
                mend="use --vectorization sync without wrappers and autoreset, or name a single environment",
            )
    env = _limited(env, request.max_episode_steps)
    return _outermost(_wrapped(env, request), request)


def _wrapped(env: Any, request: EnvRequest) -> Any:
    if not request.wrappers:
        return env
    tap = RewardTap(env)
    wrapped: Any = tap
    for wrapper in request.wrappers:
        wrapped = wrap(wrapped, wrapper)
    paying = RawReward(wrapped, tap)
    layers = list(layers_of(paying))
    paying.notes, paying.cautions = notes_of(layers), cautions_of(layers)
    return paying


def _outermost(env: Any, request: EnvRequest) -> Any:
    """Put around an environment what is ours alone."""
    if request.film is not None:
        env = FilmedEnv(env, request.film)
    return KeptEnding(env) if request.autoreset == "same_step" else env


def _limited(env: Any, steps: int | None) -> Any:
    """Give an environment another time limit, in place of each that it has, wherever it comes from."""
    if steps is None:
        return env
    limits = list(time_limits(env))
    for limit in limits:
        limit._max_episode_steps = steps
    return env if limits else gym.wrappers.TimeLimit(env, steps)


def call_factory(request: EnvRequest, factory: Any, **extra: Any) -> Any:
    """Return what a class or function makes of the request's arguments: an environment, single or vector."""
    try:
        env = factory(**copy.deepcopy(dict(request.kwargs)), **extra)
    except BaseException as error:
        if not is_fault(error):
            raise
        raise cannot_build(request, error) from error
    if not isinstance(env, (gym.Env, VectorEnv)):
        raise EnvironmentBuildError(
            f"`{request.id}` made a {type(env).__name__}, not a gymnasium environment",
            where="env.id",
            mend="name a class or function that returns a gymnasium.Env",
        )
    return env


def cannot_build(request: EnvRequest, error: BaseException) -> EnvironmentBuildError:
    """Return what is said of an exception that came while an environment was built."""
    if isinstance(error, HarnessError):
        return EnvironmentBuildError(error.cause, where=error.where, mend=error.mend)
    # Gymnasium repeats a constructor's TypeError with the arguments, which stand in ours already.
    first = error.__cause__ if isinstance(error.__cause__, TypeError) else error
    arguments = ", ".join(f"{key}={value!r}" for key, value in request.kwargs.items())
    if isinstance(first, (ModuleNotFoundError, gym.error.DependencyNotInstalled)):
        mend = "install the package it needs"
    elif not request.kwargs and not isinstance(first, TypeError):
        mend = "build it in a Python shell to see more"
    else:
        mend = "check its arguments: env.kwargs in a route, --env-arg NAME=VALUE on the command line"
    place = user_place(first.__traceback__)
    return EnvironmentBuildError(
        f"`{request.id}` cannot be built with ({arguments}): {describe_error(first)}",
        where="env.kwargs" if "gymnasium" in place and "registration" in place else place or "env",
        mend=mend,
    )
