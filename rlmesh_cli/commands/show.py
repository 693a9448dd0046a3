"""`rlmesh show`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader


def show_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="A run's folder, its name or how that begins or ends, or latest.",
            show_default=False,
        ),
    ],
    show_all: Annotated[bool, typer.Option("--all", help="List every episode.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    episode: Annotated[
        str | None,
        typer.Option(
            "--episode", help="Draw one episode: its index, such as 7, or id, ep-000008.", show_default=False
        ),
    ] = None,
    trust_entrypoints: Annotated[
        bool, typer.Option("--trust-entrypoints", help="Import functions that a model spec names.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder that runs were put into.")] = Path("runs"),
) -> None:
    """Print a run again: the tables of its evaluation, from what is on disk, also if it was killed.

    With --episode, rewards and actions of one episode are drawn: from its steps
    if the run kept them, else it is played again.

    Examples:
      rlmesh show latest
      rlmesh show 7a1a --all
      rlmesh show latest --episode 7
    """
    from rlmesh_cli.show_command import ShowRequest, run  # noqa: PLC0415 - numpy starts with it

    with quiet_without_reader():
        code = run(
            ShowRequest(
                run=name,
                out=out,
                show_all=show_all,
                as_json=as_json,
                episode=episode,
                trusts_entrypoints=trust_entrypoints,
            )
        )
    raise typer.Exit(int(code))
