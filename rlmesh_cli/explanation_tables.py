"""A resolved route as tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rlmesh_adapters.explain import Explanation

from .explanation import Explained
from .screens import advisory_table, empty_table, make_console, plain_text, print_titled


def show_explanation(explained: Explained, console: Console | None = None) -> None:
    """Print a resolved route to standard output."""
    console = console or make_console()
    print_titled(console, "route", _route_table(explained))
    if explained.inputs:
        print_titled(console, "model input", _steps_table(explained.inputs))
        print_titled(console, "action", _steps_table(explained.action))
    else:
        console.print(Text("The policy sees raw observations, and its actions are sent as they are."))
        console.print()
    if explained.unused:
        console.print(plain_text(f"the model does not ask for: {', '.join(explained.unused)}"), soft_wrap=True)
        console.print()
    if len(explained.book):
        print_titled(console, "advisories", advisory_table(explained.book))


def _route_table(explained: Explained) -> Table:
    plan = explained.plan
    others = [name for name in plan.corners if name != plan.corner]
    corner = plan.corner + (f" (it also has {', '.join(others)})" if others else "")
    horizon = f"{plan.horizon} action{'s' if plan.horizon > 1 else ''} a call"
    if plan.is_ensembled:
        horizon = f"every step is asked, and up to {plan.horizon} plans for it are averaged"
    table = empty_table([("", "text"), ("", "text")], header=False)
    for name, value in (
        ("environment", explained.env.id),
        ("observation", explained.observation),
        ("action", explained.action_space),
        ("policy", explained.policy),
        ("corner", corner),
        ("horizon", horizon),
    ):
        table.add_row(plain_text(name), plain_text(value))
    return table


def _steps_table(explanations: Sequence[Explanation]) -> Table:
    table = empty_table([("to", "text"), ("is", "text"), ("from", "text")])
    for explanation in explanations:
        for number, step in enumerate(explanation.steps):
            first = number == 0
            table.add_row(
                plain_text(explanation.target if first else ""),
                plain_text(explanation.shape if first else ""),
                plain_text(step),
            )
    return table
