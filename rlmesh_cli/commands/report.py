"""`rlmesh report`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader

_PAIR = "Two runs"


def report_command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="A run's folder, its name or how that begins or ends, or latest; of two, BASE and NEW.",
            show_default=False,
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Where the page is put (default report.html in the last run's folder)."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder that runs were put into.")] = Path("runs"),
    margin: Annotated[
        list[str] | None,
        typer.Option("--margin", help="As in compare: 5%, return=10 (default 5%); repeat.", rich_help_panel=_PAIR),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="Chance of a false verdict, one-sided.", rich_help_panel=_PAIR)
    ] = 0.05,
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="What is judged, as in compare; repeat.", rich_help_panel=_PAIR),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="Field of the protocol that may differ; repeat.", rich_help_panel=_PAIR),
    ] = None,
    first_divergence: Annotated[
        bool,
        typer.Option(
            "--first-divergence",
            help="Play a flipped episode of both again, and name where they part.",
            rich_help_panel=_PAIR,
        ),
    ] = False,
    trust_entrypoints: Annotated[
        bool,
        typer.Option(
            "--trust-entrypoints", help="Import functions that a model spec names.", rich_help_panel=_PAIR
        ),
    ] = False,
) -> None:
    """Write a run, or several beside one another, as one HTML page that needs no network.

    Of two runs the second is judged by the first, as compare does.

    Examples:
      rlmesh report latest
      rlmesh report 7a1a latest --file report.html
    """
    from rlmesh_cli.report_command import ReportRequest, run  # noqa: PLC0415 - numpy starts with it

    with quiet_without_reader():
        code = run(
            ReportRequest(
                runs=tuple(runs),
                file=file,
                out=out,
                margins=tuple(margin or ()),
                alpha=alpha,
                metrics=tuple(metric or ()),
                allowed=tuple(allow or ()),
                wants_divergence=first_divergence,
                trusts_entrypoints=trust_entrypoints,
            )
        )
    raise typer.Exit(int(code))
