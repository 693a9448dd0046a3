"""Contracting: what a route asks of the environments' side, and promises the engine."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.errors import RouteError
from rlmesh_adapters.spaces import SpaceView
from rlmesh_envs.filming import FilmRequest
from rlmesh_envs.make import Lanes
from rlmesh_envs.request import EnvInfo, EnvRequest, WrapperRequest
from rlmesh_envs.spaces import view_of

from .gates import info_metrics, parse_gate
from .loading import PolicySource, prepare_worker
from .schema import Route

#: Steps after which we end an episode of an environment that has no limit of its own.
GUARD_STEPS = 100_000


def metrics_of(route: Route) -> tuple[str, ...]:
    """Return the info keys that are kept by episode: those that a route names, and those of its gates.

    Raises RouteError for a gate that cannot be read.
    """
    return tuple(dict.fromkeys(route.metrics + info_metrics(tuple(map(parse_gate, route.gates)))))


def contract_of(
    route: Route,
    lanes: Lanes,
    env: EnvInfo,
    policy: PolicySource,
    *,
    source: Mapping[str, Any],
    trusts_entrypoints: bool = False,
) -> RouteContract:
    """Return what the engine is configured with: spaces, counts, and the documents of the route.

    Raises DocumentError for documents of the environment that cannot be meant.
    """
    action = view_of(lanes.single_action_space)
    if not has_leaf(action):
        raise RouteError(
            f"the action space {action.label} of {env.id} holds nothing to act with",
            where="env.id",
            mend="give it at least one number, such as Discrete(1)",
        )
    contract = RouteContract(
        observation=view_of(lanes.single_observation_space),
        action=action,
        num_lanes=lanes.num_envs,
        horizon=route.horizon,
        sharing=route.instances,
        batch_rows=route.batch_rows,
        limit_call=_limit_of(route.policy.call_timeout),
    )
    has_documents = route.env_tags or route.model_spec or route.ensemble or env.metadata
    # The built-in policies act in the environment's own spaces.
    if not has_documents or route.policy.source in BASELINES:
        return contract
    from .adapting import with_documents  # noqa: PLC0415 - a route without conversion starts sooner

    file = source.get("route_file")
    folders = [Path(file).parent] if file else []
    folders += [policy.file.parent] if policy.file is not None else []
    return with_documents(
        contract, route, env.metadata, folders=(*folders, Path.cwd()), trusts_entrypoints=trusts_entrypoints
    )


def has_leaf(view: SpaceView) -> bool:
    """Tell whether values of a space hold anything."""
    if view.kind in ("dict", "tuple"):
        return any(has_leaf(child) for _, child in view.children)
    return True


def _limit_of(seconds: float | None) -> Callable[[Callable[..., Any]], Callable[..., Any]] | None:
    """Return what calls of the policy are made through, None where they may take their time."""
    if seconds is None:
        return None
    from rlmesh_envs.deadlines import limited  # noqa: PLC0415 - few runs have a limit

    return lambda call: limited(call, seconds, "the call")


def guard_of(route: Route, env: EnvInfo) -> int | None:
    """Return the steps after which we end an episode, None if the environment has a limit."""
    return None if env.max_episode_steps is not None else route.env.max_episode_steps or GUARD_STEPS


def env_request(
    route: Route, render_mode: str | None = None, spec: bytes | None = None, film: FilmRequest | None = None
) -> EnvRequest:
    """Return what a route asks of the environment's side; its arguments are copies.

    render_mode: given to the environment beside the route's own arguments. spec, film: see EnvRequest.
    """
    env = route.env
    is_own = env.autoreset is None and env.vectorization != "native"
    wrappers = (
        WrapperRequest(name=wrapper)
        if isinstance(wrapper, str)
        else WrapperRequest(name=wrapper.name, kwargs=copy.deepcopy(wrapper.kwargs))
        for wrapper in env.wrappers
    )
    return EnvRequest(
        id=env.id,
        kwargs=copy.deepcopy(env.kwargs) | ({} if render_mode is None else {"render_mode": render_mode}),
        imports=env.imports,
        wrappers=tuple(wrappers),
        # A lane without an episode would only cost its environment; others step in lockstep and need them all.
        num_envs=min(route.num_envs, route.episodes) if is_own else route.num_envs,
        vectorization=env.vectorization,
        autoreset=env.autoreset,
        start_method=env.start_method,
        workers=env.workers,
        max_episode_steps=env.max_episode_steps,
        step_timeout=env.step_timeout,
        prepare=partial(prepare_worker, route.policy.source),
        spec=spec,
        film=film,
    )


def apart(route: Route) -> Route:
    """Return a route with one lane, in a process of its own where the route's lanes have some.

    Whoever wants that may have an environment that ends its process, and it shall not end ours.
    """
    lone = alone(route)
    if route.env.vectorization != "async" and route.workers == 1 and route.cluster is None:
        return lone
    env = msgspec.structs.replace(lone.env, vectorization="async", start_method=route.env.start_method, workers=1)
    return msgspec.structs.replace(lone, env=env)


def alone(route: Route) -> Route:
    """Return a route whose episodes are played on one lane in this process."""
    env = msgspec.structs.replace(route.env, vectorization="sync", autoreset=None, start_method=None, workers=None)
    return msgspec.structs.replace(route, env=env, num_envs=1)
