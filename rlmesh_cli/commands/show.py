"""`rlmesh show`: parse, call, show, leave."""

from __future__ import annotations

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
    out: Annotated[Path, typer.Option("--out", help="Folder that runs were put into.")] = Path("runs"),
) -> None:
    """Print a run again: the tables of its evaluation, from what is on disk, also if it was killed.

    Examples:
      rlmesh show latest
      rlmesh show 7a1a --all
    """
    from rlmesh_cli.show_command import ShowRequest, run  # noqa: PLC0415 - numpy starts with it

    with quiet_without_reader():
        code = run(ShowRequest(run=name, out=out, show_all=show_all, as_json=as_json))
    raise typer.Exit(int(code))
