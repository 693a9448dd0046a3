"""Explanation: a route that was resolved and not run."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.contract import RoutePlan
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.explain import Explanation, explain_action, explain_input
from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvInfo

from .contracting import contract_of, env_request
from .evaluation import advisory_records
from .loading import load_policy
from .schema import Route

_ROUTE = "route"


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """A route, resolved.

    inputs: how the model's input is made; empty where the policy sees raw observations. action: how actions are.
    unused: roles of the environment that the model does not ask for. description: the plans in the peer's grammar.
    """

    env: EnvInfo
    observation: str
    action_space: str
    policy: str
    plan: RoutePlan
    inputs: tuple[Explanation, ...]
    action: tuple[Explanation, ...]
    unused: tuple[str, ...]
    book: AdvisoryBook


def explain(route: Route, route_file: Path | None, *, trusts_entrypoints: bool) -> Explained:
    """Resolve a route without stepping its environment; raises HarnessError where it cannot be."""
    policy = load_policy(route.policy.source, route.policy.params, route_file)
    one = msgspec.structs.replace(route, num_envs=1)
    lanes, env = make_lanes(env_request(one))
    with contextlib.ExitStack() as stack:
        stack.callback(lanes.close)
        engine = AdapterEngine(advisories=AdvisoryBook())
        stack.callback(engine.close)
        contract = contract_of(
            one,
            lanes,
            env,
            policy,
            source={"route_file": route_file and str(route_file.absolute())},
            trusts_entrypoints=trusts_entrypoints,
        )
        plan = engine.configure(_ROUTE, lambda: policy.build(contract.action), contract)
        adapter = engine.route(_ROUTE).adapter
        resolved = None if adapter is None else adapter.resolved
        return Explained(
            env=env,
            observation=str(contract.observation),
            action_space=str(contract.action),
            policy=policy.label,
            plan=plan,
            inputs=() if resolved is None else tuple(explain_input(plan) for plan in resolved.plans),
            action=() if resolved is None else tuple(explain_action(resolved.action)),
            unused=() if resolved is None else resolved.unused,
            book=engine.advisories,
        )


def explanation_record(explained: Explained) -> dict[str, Any]:
    """Return what `--json` prints."""
    plan = explained.plan
    return {
        "schema": "rlmesh.explain.v1",
        "env": {
            "id": explained.env.id,
            "observation_space": explained.observation,
            "action_space": explained.action_space,
        },
        "policy": {
            "label": explained.policy,
            "corner": plan.corner,
            "corners": list(plan.corners),
            "horizon": plan.horizon,
        },
        "inputs": msgspec.to_builtins(explained.inputs),
        "action": msgspec.to_builtins(explained.action),
        "unused": list(explained.unused),
        "description": plan.description.splitlines() or None,
        "advisories": advisory_records(explained.book),
    }
