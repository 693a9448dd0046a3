"""`rlmesh probe`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader

_ROUTE = "Route"
_TESTS = "Tests"
_SHOW = "Output"


def probe_command(
    policy: Annotated[
        str | None,
        typer.Argument(help="policy.py, policy.py:Name, package.module:Name, random or zero.", show_default=False),
    ] = None,
    route: Annotated[
        Path | None, typer.Option("--route", help="YAML file; flags override it.", rich_help_panel=_ROUTE)
    ] = None,
    env: Annotated[
        str | None, typer.Option("--env", help="Environment id, or module:id.", rich_help_panel=_ROUTE)
    ] = None,
    env_arg: Annotated[
        list[str] | None,
        typer.Option("--env-arg", help="NAME=VALUE for its constructor; repeat.", rich_help_panel=_ROUTE),
    ] = None,
    policy_arg: Annotated[
        list[str] | None,
        typer.Option(
            "--policy-arg", help="NAME=VALUE for the policy's constructor; repeat.", rich_help_panel=_ROUTE
        ),
    ] = None,
    horizon: Annotated[
        int | None, typer.Option("--horizon", help="Actions executed a call (default 1).", rich_help_panel=_ROUTE)
    ] = None,
    trust_entrypoints: Annotated[
        bool,
        typer.Option(
            "--trust-entrypoints", help="Import functions that a model spec names.", rich_help_panel=_ROUTE
        ),
    ] = False,
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
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=_SHOW)
    ] = False,
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
