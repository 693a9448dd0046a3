"""From an env request to lanes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import VectorEnv

from rlmesh_adapters.errors import EnvironmentBuildError

from .env_info import foreign_info, lane_info
from .lane_envs import Limit
from .lane_set import LaneSet
from .lanes import LaneVectorEnv
from .registry import find_environment, find_in_worker, with_spec
from .request import EnvInfo, EnvRequest
from .single import make_one
from .vectors import AUTORESET_MODES, make_from_factory, make_gymnasium, make_native, takes_lanes

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
    source = find_environment(request)
    if request.film is not None and (request.vectorization == "native" or request.autoreset is not None):
        raise _cannot_film(request)
    if request.vectorization == "native":
        return _foreign(request, source, functools.partial(make_native, request, source))
    if not isinstance(source, EnvSpec) and takes_lanes(source):
        if request.film is not None:
            raise _cannot_film(request)
        return _foreign(request, source, functools.partial(make_from_factory, request, source))
    if request.autoreset is not None:
        return _foreign(request, source, functools.partial(make_gymnasium, request, source))
    if request.vectorization == "async":
        from .processes import WorkerLanes  # noqa: PLC0415 - lanes in this process start sooner

        workers = WorkerLanes(with_spec(request, source), serve_request)
        return workers, workers.info
    return _in_process(request, source)


def _check(request: EnvRequest) -> None:
    """Refuse words and counts that a route file would have refused already."""
    for name, word, known in (
        ("vectorization", request.vectorization, ("sync", "async", "native")),
        ("autoreset", request.autoreset, (None, *AUTORESET_MODES)),
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
        return _foreign(request, source, functools.partial(make_from_factory, request, source))
    stock = [first]

    def build() -> Any:
        return stock.pop() if stock else make_one(request, source)

    lanes = LaneVectorEnv([build] * request.num_envs, _limit_of(request))
    return lanes, lane_info(lanes.envs[0])


def serve_request(request: EnvRequest, num_lanes: int) -> tuple[LaneSet, EnvInfo]:
    """Build the lanes of one worker process, from nothing but the request."""
    source = find_in_worker(request)
    lanes = LaneSet([functools.partial(make_one, request, source)] * num_lanes, _limit_of(request))
    return lanes, lane_info(lanes.envs[0])


def _limit_of(request: EnvRequest) -> Limit | None:
    """Return what steps and resets are called through, None where they may take their time."""
    if request.step_timeout is None:
        return None
    from .deadlines import limited  # noqa: PLC0415 - few runs have a limit

    seconds = request.step_timeout
    return lambda call, name: limited(call, seconds, f"{name} of the environment")


def _cannot_film(request: EnvRequest) -> EnvironmentBuildError:
    return EnvironmentBuildError(
        f"the lanes of {request.id} cannot be filmed: a vector environment that resets itself has no picture of "
        "how an episode ends",
        where="record",
        mend="use --vectorization sync or async without --autoreset, or drop --record video",
    )


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
