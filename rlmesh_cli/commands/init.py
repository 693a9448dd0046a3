"""`rlmesh init`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader

_ENV = "Environment"
_FILES = "Files"


def init_command(
    env: Annotated[
        str, typer.Option("--env", help="Environment id, or module:id.", show_default=False, rich_help_panel=_ENV)
    ],
    env_arg: Annotated[
        list[str] | None,
        typer.Option("--env-arg", help="NAME=VALUE for its constructor; repeat.", rich_help_panel=_ENV),
    ] = None,
    tags: Annotated[
        bool,
        typer.Option(
            "--tags",
            help="Propose env tags by shape, name and bounds, and a model spec for them.",
            rich_help_panel=_FILES,
        ),
    ] = False,
    folder: Annotated[
        Path, typer.Option("--dir", help="Folder that the files are written into.", rich_help_panel=_FILES)
    ] = Path(),
    policy: Annotated[
        str, typer.Option("--policy", help="Name of the policy file.", rich_help_panel=_FILES)
    ] = "policy.py",
    route: Annotated[
        str, typer.Option("--route", help="Name of the route file.", rich_help_panel=_FILES)
    ] = "route.yaml",
) -> None:
    """Ask an environment what it gives and takes, and write a policy and a route that run; nothing is overwritten.

    Examples:
      rlmesh init --env CartPole-v1
      rlmesh init --env my_envs:Reach --dir reach
      rlmesh init --env gym_pusht/PushT-v0 --env-arg obs_type=pixels_agent_pos --tags
    """
    from rlmesh_cli.init_command import InitRequest, run  # noqa: PLC0415 - gymnasium and numpy start with it

    with quiet_without_reader():
        code = run(
            InitRequest(
                env=env,
                env_args=tuple(env_arg or ()),
                wants_tags=tags,
                folder=folder,
                policy=policy,
                route=route,
            )
        )
    raise typer.Exit(int(code))
