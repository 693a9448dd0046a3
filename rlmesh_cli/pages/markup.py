"""Markup: a page as HTML, one file that needs no other; all text is escaped by the template engine."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files

import jinja2
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from rlmesh_cli.documents import printable

from .facts import Block, Figure, Figures, Group, Page
from .labels import scripted


def html_of(page: Page) -> bytes:
    """Return a page as UTF-8."""
    figures = [*_figures(page.top), *(figure for section in page.sections for figure in _figures(section.blocks))]
    data = {
        "figures": [
            {"id": figure.id, "picks": figure.picks, "listed": figure.listed, **figure.spec} for figure in figures
        ],
        "entries": {entry.key: {"title": entry.title, "sides": entry.sides} for entry in page.entries},
    }
    text = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            page=page,
            css=Markup(_look("page.css")),
            js=Markup(_look("page.js")),
            # About 4.8 MB; the only library that the page needs.
            plotly=Markup(get_plotlyjs()) if figures else None,
            data=Markup(scripted(data)),
        )
    )
    return text.encode()


def _figures(blocks: tuple[Block, ...]) -> list[Figure]:
    found: list[Figure] = []
    for block in blocks:
        if isinstance(block, Figures):
            found += block.items
        elif isinstance(block, Group):
            found += _figures(block.blocks)
    return found


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("rlmesh_cli.pages", "look"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """Return text without what would steer a terminal or turn its direction; our own markup stays as it is.

    An infinity is written as scripts read it.
    """
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _look(name: str) -> str:
    return files("rlmesh_cli.pages").joinpath("look", name).read_text(encoding="utf-8")
