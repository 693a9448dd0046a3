"""`rlmesh doctor`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader


def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder that runs are put into.")] = Path("runs"),
) -> None:
    """Say what works on this machine, what is missing, and how to get it; exit code 2 if nothing could be run.

    Examples:
      rlmesh doctor
      rlmesh doctor --json
    """
    from rlmesh_cli.doctor_command import run  # noqa: PLC0415 - it looks around when it is asked to

    with quiet_without_reader():
        code = run(out, as_json=as_json)
    raise typer.Exit(int(code))
