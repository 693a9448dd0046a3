"""Figures: plots as plotly takes them. Colours are named, and become real where they are shown.

Up to DRAWN episodes each is a point of its own; more are put together, by a rule that is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.wording import number

from .facts import Cell, Column, Figure, Row, Table
from .labels import plotted
from .outcomes import NAMES, outcome_of

#: Episodes that are drawn one by one.
DRAWN = 2000
#: Blocks of neighbours that more of them are put into.
BLOCKS = 100


def axis(title: str, **changes: Any) -> dict[str, Any]:
    """Return an axis with a title, its unit in it."""
    return {"title": {"text": title}, **changes}


def whole(title: str, values: Sequence[float], **changes: Any) -> dict[str, Any]:
    """Return an axis of whole numbers; few of them get no ticks between."""
    few = {"dtick": 1} if max(values) - min(values) <= 12 else {}
    return axis(title, **few, **changes)


def ruled(lines: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """Return a layout's vertical lines, each with its name at the top."""
    return {
        "shapes": [
            {
                "type": "line",
                "x0": x,
                "x1": x,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": "@ink", "width": 1.5, "dash": "dot"},
            }
            for x, _ in lines
        ],
        "annotations": [
            {"x": x, "yref": "paper", "y": 1, "yanchor": "bottom", "text": plotted(name), "showarrow": False}
            for x, name in lines
        ],
    }


def told(row: EpisodeResult) -> str:
    """Return an episode in a few words, as plots tell it where they are pointed at."""
    seed = "" if row.seed is None else f", seed {row.seed}"
    text = f"episode {row.index}{seed}<br>return {number(row.return_)}, length {row.length:,}"
    return f"{text}<br>{NAMES[outcome_of(row)]}, {row.end}"


def counts_up(rows: Sequence[EpisodeResult]) -> bool:
    """Tell whether seeds rise with the plan and leave no wide gaps, so that they can be an axis."""
    seeds = [row.seed for row in rows if row.seed is not None]
    if len(seeds) < len(rows) or any(one >= other for one, other in pairwise(seeds)):
        return False
    # Beyond 2**53 neighbours are one number to a plot.
    return seeds[-1] - seeds[0] < 4 * len(seeds) and max(map(abs, seeds)) < 2**53


def amounts(
    parts: Sequence[tuple[str, float, str]], *, id: str, title: str, caption: str, unit: str, names: str
) -> Figure:
    """Return a bar for each of a few amounts.

    parts: (name, amount, amount as text). unit: of the amounts. names: what the names are.
    """
    return Figure(
        id=id,
        title=title,
        caption=caption,
        spec={
            "data": [
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": _labels([name for name, _, _ in parts]),
                    "x": [amount for _, amount, _ in parts],
                    "text": [plotted(text) for _, _, text in parts],
                    "textposition": "auto",
                    "cliponaxis": False,
                    "marker": {"color": "@bar"},
                    "hoverinfo": "none",
                }
            ],
            "layout": {
                "xaxis": axis(unit, rangemode="tozero"),
                "yaxis": axis(names, type="category", autorange="reversed", automargin=True),
                "showlegend": False,
                "height": 92 + 34 * len(parts),
            },
        },
        table=Table(
            id=f"{id}-table",
            caption=title,
            columns=(Column(names, "text"), Column(unit, "number")),
            rows=tuple(Row((Cell(name), Cell(text, amount))) for name, amount, text in parts),
        ),
    )


def _labels(names: Sequence[str]) -> list[str]:
    """Return names as plots show them; numbered where short ones would be the same, and their bars one."""
    labels = [plotted(name, 24) for name in names]
    if len(set(labels)) == len(labels):
        return labels
    return [f"{at + 1}. {plotted(name, 20)}" for at, name in enumerate(names)]
