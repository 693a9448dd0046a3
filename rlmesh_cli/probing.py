"""Probing: the battery of rlmesh_adapters.probe on a route's own environment and policy."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.errors import EnvironmentBuildError, RouteError
from rlmesh_adapters.probe.battery import run_battery
from rlmesh_adapters.probe.verdicts import ProbeVerdict, TestResult
from rlmesh_envs.deadlines import deadline
from rlmesh_envs.make import Lanes, make_lanes
from rlmesh_envs.request import EnvInfo

from .auditing import audit
from .contracting import alone, apart, contract_of, env_request, has_leaf, metrics_of
from .loading import PolicySource, load_policy
from .observing import observe
from .outcomes import InfoReader
from .schema import Route
from .surroundings import Surroundings

_BATCHES, _ROWS = 5, 4
#: Seconds that the short form may take before a run.
SHORT_SECONDS = 10.0


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """A policy that was probed for a route.

    audit: what was found about the environment, None if it was not asked for.
    """

    env: EnvInfo
    policy: str
    verdict: ProbeVerdict
    audit: tuple[TestResult, ...] | None = None

    @property
    def is_safe(self) -> bool:
        """Whether neither policy nor environment was found to make numbers meaningless."""
        return self.verdict.is_safe and all(test.outcome != "fail" for test in self.audit or ())


def probe(
    route: Route,
    route_file: Path | None,
    *,
    budget: float,
    trusts_entrypoints: bool = False,
    is_env_checked: bool = False,
) -> Probed:
    """Run the full battery on a route's policy.

    budget: seconds that it may take. is_env_checked: whether the environment is audited too, in as many seconds.

    Raises HarnessError where policy or environment cannot be built, or the route cannot be resolved.
    """
    policy = load_policy(route.policy.source, route.policy.params, route_file)
    lanes, env = make_lanes(env_request(alone(route)))
    with contextlib.ExitStack() as stack:
        stack.callback(lanes.close)
        contract = contract_of(
            msgspec.structs.replace(route, num_envs=1),
            lanes,
            env,
            policy,
            source={"route_file": route_file and str(route_file.absolute())},
            trusts_entrypoints=trusts_entrypoints,
        )
        own = lanes if env.autoreset == "disabled" and env.is_seeded else None
        verdict = _run(policy, contract, own, is_short=False, most_seconds=budget)
        checked = None
        if is_env_checked:
            request = env_request(alone(route))
            checked = audit(
                lambda: make_lanes(request),
                contract.action,
                InfoReader(route.success_rule, metrics_of(route)),
                clock=time.perf_counter,
                most_seconds=budget,
            )
        return Probed(env=env, policy=policy.label, verdict=verdict, audit=checked)


def probe_shortly(policy: PolicySource, contract: RouteContract, route: Route) -> ProbeVerdict:
    """Run the short form of the battery before a run, with an environment of its own.

    The lanes of the run are not touched: some environments take their starts in turn, and would begin elsewhere.

    Raises HarnessError where the policy cannot be built, or the route cannot be resolved.
    """
    try:
        lanes, env = make_lanes(env_request(apart(route)))
    except EnvironmentBuildError:  # such as one that only makes vectors of environments
        return _run(policy, contract, None, is_short=True, most_seconds=SHORT_SECONDS)
    with contextlib.closing(lanes):
        own = lanes if env.autoreset == "disabled" and env.is_seeded else None
        return _run(policy, contract, own, is_short=True, most_seconds=SHORT_SECONDS)


def _run(
    policy: PolicySource, contract: RouteContract, lanes: Lanes | None, *, is_short: bool, most_seconds: float
) -> ProbeVerdict:
    if not has_leaf(contract.observation):
        raise RouteError(
            f"the observation space {contract.observation.label} holds nothing that a policy could be asked with",
            where="env.id",
            mend="there is nothing to probe; use --no-probe",
        )
    # The probe has a limit of its own, and tells what hangs.
    contract = msgspec.structs.replace(contract, limit_call=None)
    batches = observe(lanes, contract.observation, contract.action, batches=_BATCHES, rows=_ROWS)
    renew, surroundings = policy.renew, Surroundings()

    def build() -> Any:
        return policy.build(contract.action)

    def renewed() -> Any:
        assert renew is not None
        anew = renew()
        return lambda: anew(contract.action)

    return run_battery(
        build,
        contract,
        batches,
        clock=time.perf_counter,
        is_short=is_short,
        most_seconds=most_seconds,
        renew=None if renew is None else renewed,
        changes=surroundings.changes,
        deadline=deadline,
    )
