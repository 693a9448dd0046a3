"""`rlmesh explain`: parse, call, show, leave."""

from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader

from .options import OUTPUT, AsJson, EnvArgs, EnvId, Horizon, Policy, PolicyArgs, RouteFile, TrustEntrypoints


def explain_command(
    policy: Policy = None,
    route: RouteFile = None,
    env: EnvId = None,
    env_arg: EnvArgs = None,
    policy_arg: PolicyArgs = None,
    horizon: Horizon = None,
    trust_entrypoints: TrustEntrypoints = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Leave with 1 where there is a caution.", rich_help_panel=OUTPUT)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Resolve a route and say what will happen to every number; nothing is stepped.

    Examples:
      rlmesh explain policy.py --env CartPole-v1
      rlmesh explain --route route.yaml
    """
    from rlmesh_cli.explanation_command import (  # noqa: PLC0415 - gymnasium and numpy start with it
        ExplainRequest,
        run,
    )

    with quiet_without_reader():
        code = run(
            ExplainRequest(
                policy=policy,
                route=route,
                env=env,
                env_args=tuple(env_arg or ()),
                policy_args=tuple(policy_arg or ()),
                horizon=horizon,
                trusts_entrypoints=trust_entrypoints,
                strict=strict,
                as_json=as_json,
            )
        )
    raise typer.Exit(int(code))
