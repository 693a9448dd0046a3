"""`rlmesh probe`: parse, call, show, leave."""

from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader

from .options import AsJson, EnvArgs, EnvId, Horizon, Policy, PolicyArgs, RouteFile, TrustEntrypoints

_TESTS = "Tests"


def probe_command(
    policy: Policy = None,
    route: RouteFile = None,
    env: EnvId = None,
    env_arg: EnvArgs = None,
    policy_arg: PolicyArgs = None,
    horizon: Horizon = None,
    trust_entrypoints: TrustEntrypoints = False,
    budget: Annotated[
        float, typer.Option("--budget", help="Seconds that it may take.", rich_help_panel=_TESTS)
    ] = 60.0,
    env_check: Annotated[
        bool,
        typer.Option(
            "--env-check",
            help="Audit the environment too: seeds, resets, random state, limit.",
            rich_help_panel=_TESTS,
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Test a policy as a black box: does it carry state, couple lanes, leak across resets?

    Examples:
      rlmesh probe policy.py --env CartPole-v1
      rlmesh probe --route route.yaml --env-check
    """
    from rlmesh_cli.probe_command import ProbeRequest, run  # noqa: PLC0415 - gymnasium and numpy start with it

    with quiet_without_reader():
        code = run(
            ProbeRequest(
                policy=policy,
                route=route,
                env=env,
                env_args=tuple(env_arg or ()),
                policy_args=tuple(policy_arg or ()),
                horizon=horizon,
                trusts_entrypoints=trust_entrypoints,
                budget=budget,
                is_env_checked=env_check,
                as_json=as_json,
            )
        )
    raise typer.Exit(int(code))
