"""`rlmesh compare`: parse, call, show, leave."""

from pathlib import Path
from typing import Annotated

import typer

from rlmesh_cli.streams import quiet_without_reader

from .options import OUTPUT, AsJson

_JUDGE = "Judgement"
_AGAIN = "Playing again"


def compare_command(
    base: Annotated[
        str,
        typer.Argument(
            metavar="BASE",
            help="Folder of a run, its name, how that begins or ends, or latest.",
            show_default=False,
        ),
    ],
    new: Annotated[
        str, typer.Argument(metavar="NEW", help="The run that is judged, named alike.", show_default=False)
    ],
    margin: Annotated[
        list[str] | None,
        typer.Option(
            "--margin",
            help="How much worse may pass: 5% is points of success, or a share of BASE; return=10 (default 5%).",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="Chance of a false verdict, one-sided.", rich_help_panel=_JUDGE)
    ] = 0.05,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="success_rate, mean_return or an info key; repeat (default the first that there is).",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            help="Field of the protocol that may differ, such as horizon; repeat.",
            rich_help_panel=_JUDGE,
        ),
    ] = None,
    first_divergence: Annotated[
        bool,
        typer.Option(
            "--first-divergence",
            help="Play a flipped episode of both again, and name where they part.",
            rich_help_panel=_AGAIN,
        ),
    ] = False,
    trust_entrypoints: Annotated[
        bool,
        typer.Option(
            "--trust-entrypoints", help="Import functions that a model spec names.", rich_help_panel=_AGAIN
        ),
    ] = False,
    as_json: AsJson = False,
    out: Annotated[
        Path, typer.Option("--out", help="Folder that runs were put into.", rich_help_panel=OUTPUT)
    ] = Path("runs"),
) -> None:
    """Judge a run by another over the same seeds: not worse (exit 0), worse (1), or not to be told (3).

    Examples:
      rlmesh compare 7a1a latest --margin 5%
      rlmesh compare runs/last-week latest --first-divergence
    """
    from rlmesh_cli.compare_command import CompareRequest, run  # noqa: PLC0415 - numpy starts with it

    with quiet_without_reader():
        code = run(
            CompareRequest(
                base=base,
                new=new,
                margins=tuple(margin or ()),
                alpha=alpha,
                metrics=tuple(metric or ()),
                allowed=tuple(allow or ()),
                out=out,
                wants_divergence=first_divergence,
                trusts_entrypoints=trust_entrypoints,
                as_json=as_json,
            )
        )
    raise typer.Exit(int(code))
