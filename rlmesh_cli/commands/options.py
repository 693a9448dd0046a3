"""Options that several commands take, each said once."""

from pathlib import Path
from typing import Annotated

import typer

# Panels of the help.
ROUTE = "Route"
OUTPUT = "Output"

Policy = Annotated[
    str | None,
    typer.Argument(
        help="policy.py, policy.py:Name, package.module:Name, random, zero or hold.", show_default=False
    ),
]
RouteFile = Annotated[
    Path | None, typer.Option("--route", help="YAML file; flags override it.", rich_help_panel=ROUTE)
]
EnvId = Annotated[str | None, typer.Option("--env", help="Environment id, or module:id.", rich_help_panel=ROUTE)]
EnvArgs = Annotated[
    list[str] | None,
    typer.Option("--env-arg", help="NAME=VALUE for its constructor; repeat.", rich_help_panel=ROUTE),
]
PolicyArgs = Annotated[
    list[str] | None,
    typer.Option("--policy-arg", help="NAME=VALUE for the policy's constructor; repeat.", rich_help_panel=ROUTE),
]
Horizon = Annotated[
    int | None, typer.Option("--horizon", help="Actions executed a call (default 1).", rich_help_panel=ROUTE)
]
TrustEntrypoints = Annotated[
    bool,
    typer.Option("--trust-entrypoints", help="Import functions that a model spec names.", rich_help_panel=ROUTE),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else.", rich_help_panel=OUTPUT)
]
