"""RunRecord: what `run.json` says, while a run goes on and when it is over."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.contract import RouteContract, RoutePlan
from rlmesh_envs.make import Lanes
from rlmesh_envs.request import EnvInfo

from .evaluation import advisory_records
from .loading import PolicySource
from .provenance import GitState, file_record, host, versions, weight_files
from .schema import Route
from .store import RUN_SCHEMA


class RunRecord:
    """Makes `run.json` of one run.

    source: `argv`, `route_file` and its hash. contract: what the engine is configured with.
    guard: steps after which we end an episode, None if the environment has a limit.
    git: state of the checkout, read when the run is over. probe: what was found before the run.
    """

    def __init__(
        self,
        route: Route,
        *,
        source: dict[str, Any],
        policy: PolicySource,
        env: EnvInfo,
        lanes: Lanes,
        contract: RouteContract,
        guard: int | None,
        git: GitState,
        probe: dict[str, Any] | None = None,
    ) -> None:
        self._route, self._policy, self._env, self._git = route, policy, env, git
        self._lanes, self._contract = lanes, contract
        self._source, self._guard = source, guard
        self.probe = probe
        self._started = _now()
        self._modules: tuple[str, ...] = ()
        self._policy_facts: dict[str, Any] = {}
        self._description = ""

    def open(self, plan: RoutePlan, first: Any) -> None:
        """Take down what the policy is: its files are hashed as they are now.

        plan: how it runs. first: its first instance.
        """
        file = self._policy.file
        self._modules = (type(first).__module__, _env_module(self._lanes))
        self._policy_facts = {
            "label": self._policy.label,
            "file": file_record(file) if file is not None else None,
            "weights": weight_files(self._route.policy.params, first),
            "corner": plan.corner,
            "corners": list(plan.corners),
            "horizon": plan.horizon,
            "instances": plan.sharing,
        }
        self._description = plan.description

    def make(
        self, status: str, advisories: AdvisoryBook, chunk_length: int | None, actuators: Sequence[Any]
    ) -> dict[str, Any]:
        """Return the record as it stands now.

        status: `running`, `finished`, `interrupted` or `failed`. chunk_length: of the policy's first chunk.
        actuators: how far each component of the action was driven, where the route converts.
        """
        route = self._route
        is_over = status != "running"
        return {
            "schema": RUN_SCHEMA,
            "status": status,
            "started_at": self._started,
            "finished_at": _now() if is_over else None,
            **self._source,
            "route": _route_record(route),
            "seeds": list(route.episode_seeds),
            "seeded": self._env.is_seeded,
            "env": self._env_facts(),
            "policy": {**self._policy_facts, "chunk_length": chunk_length},
            "probe": self.probe,
            "adapter": self._description.splitlines() or None,
            "actuators": msgspec.to_builtins(actuators),
            "success_rule": route.success_rule.describe(),
            "limits": {
                "steps": self._env.max_episode_steps or self._guard,
                "seconds": route.env.max_episode_seconds,
            },
            "advisories": advisory_records(advisories),
            "versions": versions(self._modules),
            "host": host(),
            "git": self._git.read() if is_over else None,
        }

    def _env_facts(self) -> dict[str, Any]:
        env = self._env
        return {
            "id": env.id,
            "layers": list(env.layers),
            "lanes": self._lanes.num_envs,
            "autoreset": env.autoreset,
            "max_episode_steps": env.max_episode_steps,
            "observation_space": self._contract.observation.label,
            "action_space": self._contract.action.label,
        }


def _route_record(route: Route) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(route)
    if route.seeds is not None:
        del record["seed"]  # nothing counts from it, and a route that has both is refused
    return record


def _env_module(lanes: Lanes) -> str:
    envs = getattr(lanes, "envs", None)
    return type(envs[0].unwrapped).__module__ if envs else ""


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
