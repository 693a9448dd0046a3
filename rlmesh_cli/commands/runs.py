"""`rlmesh runs`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader


def runs_command(
    out: Annotated[Path, typer.Option("--out", help="Folder that runs were put into.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> None:
    """List the runs of a folder, the newest first.

    Examples:
      rlmesh runs
      rlmesh runs --out elsewhere --json
    """
    from rlmesh_cli.runs_command import run  # noqa: PLC0415 - numpy starts with it

    with quiet_without_reader():
        code = run(out, as_json=as_json)
    raise typer.Exit(int(code))
