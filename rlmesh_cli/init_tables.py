"""What was found of an environment, and what to do next, as tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.text import Text

from rlmesh_adapters.documents.reading import read_tags
from rlmesh_adapters.errors import HarnessError

from .scaffolds.findings import Found, Leaf, leaves
from .scaffolds.scaffold import Scaffold
from .scaffolds.words import bounds, kind, number, one_line, title
from .screens import empty_table, make_console, plain_text, print_line, print_titled

_MOST_LEAVES, _MOST_KEYS = 20, 12


def show_scaffold(scaffold: Scaffold, console: Console | None = None) -> None:
    """Print what was found, what was written, and the next commands."""
    console = console or make_console()
    table = empty_table([("", "left"), ("", "text")], header=False)
    for name, value in _facts(scaffold):
        table.add_row(Text(name), plain_text(value))
    print_titled(console, "found", table)
    for path in (scaffold.policy, scaffold.route):
        print_line(console, f"wrote {path}")
    console.print()
    route = shlex.quote(str(scaffold.route))
    start = "PYTHONPATH=. rlmesh" if scaffold.needs_here else "rlmesh"
    table = empty_table([("", "left"), ("", "text")], header=False)
    for command, meaning in (
        (f"{start} eval --route {route}", "play it"),
        (f"{start} probe --route {route}", "examine the policy"),
        (f"{start} explain --route {route}", "see what becomes of every number"),
    ):
        table.add_row(plain_text(command), Text(meaning))
    print_titled(console, "next", table)


def _facts(scaffold: Scaffold) -> Iterator[tuple[str, str]]:
    found = scaffold.found
    yield "environment", one_line(found.id)
    yield from _parts("observation", list(leaves(found.observation, found.first)))
    yield from _parts("action", list(leaves(found.action)))
    limit = f"{found.max_episode_steps:,} steps" if found.max_episode_steps is not None else "none of its own"
    yield "time limit", limit
    yield "render modes", one_line(", ".join(found.render_modes)) or "none"
    yield "random steps", _steps(found)
    keys = list(found.infos)
    more = f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else ""
    yield "info keys", (one_line(", ".join(keys[:_MOST_KEYS])) + more) or "none"
    yield "success", f"reported as {found.success_key}" if found.success_key else "not reported in these steps"
    if isinstance(scaffold.tagging, str):
        yield "tags", f"none could be proposed: {scaffold.tagging}"
    elif found.tags is not None:
        yield "tags", _own_tags(found.tags)
    elif scaffold.tagging is not None:
        yield "tags", f"guessed, see {scaffold.route.name}"
    else:
        yield "tags", "none; --tags proposes some"


def _own_tags(tags: Any) -> str:
    try:
        read_tags(tags)
    except HarnessError as error:
        return one_line(f"its own cannot be read ({error.cause}): mend them, or name env_tags in the route")
    return "it brings its own"


def _parts(name: str, listed: list[Leaf]) -> Iterator[tuple[str, str]]:
    for place, leaf in enumerate(listed[:_MOST_LEAVES]):
        words = f"{title(leaf.path)}: " if leaf.path else ""
        ends = bounds(leaf.view)
        yield name if not place else "", f"{words}{kind(leaf.view)}{', ' + ends if ends else ''}"
    if len(listed) > _MOST_LEAVES:
        yield "", f"and {len(listed) - _MOST_LEAVES} more parts"


def _steps(found: Found) -> str:
    text = f"{found.steps}"
    if found.rewards:
        least, most = min(found.rewards), max(found.rewards)
        paid = number(least) if least == most else f"{number(least)} to {number(most)}"
        text += f", paying {paid} a step"
    if found.failure is not None:
        text += f"; then a step failed: {one_line(found.failure.message)}"
    elif found.end:
        text += f"; the episode was {found.end}"
    return text
