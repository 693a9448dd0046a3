"""`rlmesh replay`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader


def replay_command(
    run: Annotated[str, typer.Argument(help="Folder of a run, a part of its name, or latest.")],
    episode: Annotated[str, typer.Argument(help="Index, such as 7, or id, such as ep-000008.")],
    out: Annotated[Path, typer.Option("--out", help="Folder that runs are looked for in.")] = Path("runs"),
    render: Annotated[
        str | None, typer.Option("--render", help="human: in a window; video: into a file.", show_default=False)
    ] = None,
    video: Annotated[
        Path | None,
        typer.Option("--video", help="File for --render video (default videos/ep-000008.mp4 in the run)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
    trust_entrypoints: Annotated[
        bool, typer.Option("--trust-entrypoints", help="Import functions that a model spec names.")
    ] = False,
) -> None:
    """Play one episode of a run again from its seed: is it what it was? If not, why?

    Examples:
      rlmesh replay latest 7
      rlmesh replay latest ep-000008 --render video
    """
    from rlmesh_cli import replay_command as command  # noqa: PLC0415 - gymnasium and numpy start with it

    with quiet_without_reader():
        code = command.run(
            command.ReplayRequest(
                run=run,
                episode=episode,
                out=out,
                render=render,
                video=video,
                as_json=as_json,
                trusts_entrypoints=trust_entrypoints,
            )
        )
    raise typer.Exit(int(code))
