"""From an env request to lanes."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import gymnasium as gym
import msgspec
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rlmesh_adapters.errors import EnvironmentBuildError, HarnessError, describe_error, user_place

from .endings import KeptEnding
from .env_info import foreign_info, lane_info, time_limits
from .filming import FilmedEnv
from .lane_set import LaneSet, Limit
from .lanes import LaneVectorEnv
from .registry import find_environment
from .request import EnvInfo, EnvRequest
from .rewards import RawReward, RewardTap
from .wrapping import wrap

if TYPE_CHECKING:
    from .foreign import ForeignLanes
    from .processes import WorkerLanes

Lanes: TypeAlias = "LaneVectorEnv | WorkerLanes | ForeignLanes"


def make_lanes(request: EnvRequest) -> tuple[Lanes, EnvInfo]:
    """Build the lanes of a request.

    Raises EnvironmentBuildError for an unknown id, a package that is not installed, a constructor that
    refuses its arguments, a wrapper that does not exist, or a combination that cannot be had.
    """
    _check(request)
    source = _find(request)
    if request.film is not None and (request.vectorization == "native" or request.autoreset is not None):
        raise _cannot_film(request)
    if request.vectorization == "native":
        return _foreign(request, source, functools.partial(_make_native, request, source))
    if not isinstance(source, EnvSpec) and _takes_lanes(source):
        if request.film is not None:
            raise _cannot_film(request)
        return _foreign(request, source, functools.partial(_make_vector, request, source))
    if request.autoreset is not None:
        return _foreign(request, source, functools.partial(_make_gymnasium, request, source))
    if request.vectorization == "async":
        from .processes import WorkerLanes  # noqa: PLC0415 - lanes in this process start sooner

        workers = WorkerLanes(_with_spec(request, source), serve_request)
        return workers, workers.info
    return _in_process(request, source)


def _check(request: EnvRequest) -> None:
    """Refuse words and counts that a route file would have refused already."""
    for name, word, known in (
        ("vectorization", request.vectorization, ("sync", "async", "native")),
        ("autoreset", request.autoreset, (None, *_MODES)),
    ):
        if word not in known:
            words = ", ".join(str(choice) for choice in known if choice is not None)
            raise EnvironmentBuildError(
                f"{name} `{word}` does not exist here",
                where=f"env.{name}",
                mend=f"use one of {words}",
            )
    if request.start_method is not None:
        from .crew import check_start_method  # noqa: PLC0415 - few name one

        check_start_method(request.start_method)
    if request.num_envs < 1:
        raise EnvironmentBuildError(
            f"{request.num_envs} lanes cannot be built", where="num_envs", mend="use at least 1"
        )
    if request.workers is not None and request.workers < 1:
        raise EnvironmentBuildError(
            f"{request.workers} workers cannot be started", where="env.workers", mend="use at least 1"
        )
    if request.autoreset is not None and request.vectorization == "native":
        raise EnvironmentBuildError(
            "a native vector environment has an autoreset mode of its own",
            where="env.autoreset",
            mend="drop autoreset, or use --vectorization sync or async",
        )


def _in_process(request: EnvRequest, source: EnvSpec | Any) -> tuple[Lanes, EnvInfo]:
    first = make_one(request, source, may_be_vector=True)
    if isinstance(first, VectorEnv):
        first.close()
        if request.film is not None:
            raise _cannot_film(request)
        return _foreign(request, source, functools.partial(_make_vector, request, source))
    stock = [first]

    def build() -> Any:
        return stock.pop() if stock else make_one(request, source)

    lanes = LaneVectorEnv([build] * request.num_envs, _limit_of(request))
    return lanes, lane_info(lanes.envs[0])


def serve_request(request: EnvRequest, num_lanes: int) -> tuple[LaneSet, EnvInfo]:
    """Build the lanes of one worker process, from nothing but the request."""
    source = _find_in_worker(request)
    lanes = LaneSet([functools.partial(make_one, request, source)] * num_lanes, _limit_of(request))
    return lanes, lane_info(lanes.envs[0])


def _limit_of(request: EnvRequest) -> Limit | None:
    """Return what steps and resets are called through, None where they may take their time."""
    if request.step_timeout is None:
        return None
    from .deadlines import limited  # noqa: PLC0415 - few runs have a limit

    seconds = request.step_timeout
    return lambda call, name: limited(call, seconds, f"{name} of the environment")


def serve_one(request: EnvRequest) -> Any:
    """Build one environment in a worker process of gymnasium's, from nothing but the request."""
    return make_one(request, _find_in_worker(request))


def spec_of(request: EnvRequest) -> bytes | None:
    """Return the registered spec of an environment, pickled, for other processes; None if it cannot travel."""
    return _with_spec(request, find_environment(request)).spec


def _with_spec(request: EnvRequest, source: EnvSpec | Any) -> EnvRequest:
    """Give a request the spec along, if it can travel."""
    if not isinstance(source, EnvSpec):
        return request
    try:
        return msgspec.structs.replace(request, spec=pickle.dumps(source))
    except Exception:  # an entry point that cannot be pickled; the id has to do
        return request


def _find_in_worker(request: EnvRequest) -> EnvSpec | Any:
    if request.prepare is not None:
        request.prepare()
    return _find(request)


def _find(request: EnvRequest) -> EnvSpec | Any:
    """Return where an environment comes from; one that is registered elsewhere only, from the spec given along."""
    try:
        return find_environment(request)
    except EnvironmentBuildError:
        if request.spec is None:
            raise
        return pickle.loads(request.spec)


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
        except (Exception, SystemExit) as error:
            raise _cannot_build(request, error) from error
    else:
        env = _call_factory(request, source)
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
    return RawReward(wrapped, tap)


def _outermost(env: Any, request: EnvRequest) -> Any:
    """Put around an environment what is ours alone."""
    if request.film is not None:
        env = FilmedEnv(env, request.film)
    return KeptEnding(env) if request.autoreset == "same_step" else env


def _cannot_film(request: EnvRequest) -> EnvironmentBuildError:
    return EnvironmentBuildError(
        f"the lanes of {request.id} cannot be filmed: a vector environment that resets itself has no picture of "
        "how an episode ends",
        where="record",
        mend="use --vectorization sync or async without --autoreset, or drop --record video",
    )


def _limited(env: Any, steps: int | None) -> Any:
    """Give a ready-made environment another time limit, in place of its own where it has one."""
    if steps is None:
        return env
    limits = list(time_limits(env))
    for limit in limits:
        limit._max_episode_steps = steps
    return env if limits else gym.wrappers.TimeLimit(env, steps)


def _takes_lanes(factory: Any) -> bool:
    """Tell whether a class or function makes a vector environment: it asks for the number of lanes."""
    try:
        return "num_envs" in inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False


def _call_factory(request: EnvRequest, factory: Any, **extra: Any) -> Any:
    try:
        env = factory(**copy.deepcopy(dict(request.kwargs)), **extra)
    except (Exception, SystemExit) as error:
        raise _cannot_build(request, error) from error
    if not isinstance(env, (gym.Env, VectorEnv)):
        raise EnvironmentBuildError(
            f"`{request.id}` made a {type(env).__name__}, not a gymnasium environment",
            where="env.id",
            mend="name a class or function that returns a gymnasium.Env",
        )
    return env


def _make_vector(request: EnvRequest, factory: Any) -> VectorEnv[Any, Any, Any]:
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
    env = _call_factory(request, factory, **extra)
    if not isinstance(env, VectorEnv):
        raise EnvironmentBuildError(
            f"`{request.id}` takes num_envs, but made a {type(env).__name__}, no vector environment",
            where="env.id",
            mend="name a class or function that returns a gymnasium VectorEnv, or takes no num_envs",
        )
    return env


def _cannot_build(request: EnvRequest, error: BaseException) -> EnvironmentBuildError:
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
    kwargs = copy.deepcopy(dict(request.kwargs))
    if request.max_episode_steps is not None:
        kwargs["max_episode_steps"] = request.max_episode_steps
    try:
        return gym.make_vec(source, num_envs=request.num_envs, vectorization_mode="vector_entry_point", **kwargs)
    except (Exception, SystemExit) as error:
        raise _cannot_build(request, error) from error


def _make_gymnasium(request: EnvRequest, source: EnvSpec | Any) -> VectorEnv[Any, Any, Any]:
    """Build gymnasium's own vector environment with the autoreset mode that the request names."""
    mode = AutoresetMode(_MODES[str(request.autoreset)])
    try:
        if request.vectorization == "async":
            builder = functools.partial(serve_one, _with_spec(request, source))
            # Shared memory cannot hold spaces that do not stack; copies through pipes can.
            return AsyncVectorEnv(
                [builder] * request.num_envs,
                context=request.start_method,
                shared_memory=False,
                autoreset_mode=mode,
            )
        return SyncVectorEnv(
            [functools.partial(make_one, request, source)] * request.num_envs, autoreset_mode=mode
        )
    except HarnessError:
        raise
    except (Exception, SystemExit) as error:
        raise _cannot_build(request, error) from error


_MODES = {mode.name.lower(): mode.value for mode in AutoresetMode}


def _foreign(
    request: EnvRequest, source: EnvSpec | Any, build: Callable[[], VectorEnv[Any, Any, Any]]
) -> tuple[Lanes, EnvInfo]:
    from .foreign import ForeignLanes  # noqa: PLC0415 - lanes of our own start sooner

    env = build()
    try:
        lanes = ForeignLanes(env, build, _limit_of(request))
        return lanes, foreign_info(request, source, env, lanes)
    except BaseException:
        env.close()
        raise
