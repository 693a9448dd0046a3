"""Probing: the battery of rlmesh_adapters.probe on a route's own environment and policy."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.probe.battery import run_battery
from rlmesh_adapters.probe.verdicts import ProbeVerdict
from rlmesh_envs.make import Lanes, make_lanes
from rlmesh_envs.request import EnvInfo

from .evaluate import contract_of, env_request
from .loading import PolicySource, load_policy
from .observing import observe
from .schema import Route
from .surroundings import Surroundings

_BATCHES, _ROWS = 5, 4
#: Seconds that the short form may take before a run.
SHORT_SECONDS = 10.0


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that was probed for a route."""

    env: EnvInfo
    policy: str
    verdict: ProbeVerdict


def probe(route: Route, route_file: Path | None, *, budget: float, trusts_entrypoints: bool = False) -> Probed:
    """Run the full battery on a route's policy.

    budget: seconds that it may take.

    Raises HarnessError where policy or environment cannot be built, or the route cannot be resolved.
    """
    policy = load_policy(route.policy.source, route.policy.params)
    one = msgspec.structs.replace(route, num_envs=1)
    lanes, env = make_lanes(env_request(one))
    with contextlib.ExitStack() as stack:
        stack.callback(lanes.close)
        contract = contract_of(
            one,
            lanes,
            env,
            policy,
            source={"route_file": route_file and str(route_file.absolute())},
            trusts_entrypoints=trusts_entrypoints,
        )
        verdict, _ = probe_policy(policy, contract, lanes, env, most_seconds=budget)
        return Probed(env=env, policy=policy.label, verdict=verdict)


def probe_policy(
    policy: PolicySource,
    contract: RouteContract,
    lanes: Lanes,
    env: EnvInfo,
    *,
    is_short: bool = False,
    most_seconds: float | None = None,
) -> tuple[ProbeVerdict, str]:
    """Run the battery with observations of lane 0; return the verdict, and what observations lose when stored."""
    is_own = env.is_seeded and env.autoreset == "disabled" and hasattr(lanes, "reset_lanes")
    seen = observe(lanes, contract.observation, contract.action, batches=_BATCHES, rows=_ROWS, is_own=is_own)
    renew, surroundings = policy.renew, Surroundings()

    def build() -> Any:
        return policy.build(contract.action)

    def renewed() -> Any:
        assert renew is not None
        anew = renew()
        return lambda: anew(contract.action)

    verdict = run_battery(
        build,
        contract,
        seen.batches,
        clock=time.perf_counter,
        is_short=is_short,
        most_seconds=most_seconds,
        renew=None if renew is None else renewed,
        changes=surroundings.changes,
    )
    return verdict, seen.casts
