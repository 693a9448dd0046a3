"""Figures: plots as plotly takes them, drawn from rows. Colours are named, and become real where they are shown.

Up to DRAWN episodes each is a point of its own; more are put together, by a rule that is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.wording import number

from .bins import bins_of, block_size
from .facts import Cell, Column, Figure, Outcome, Row, Table
from .labels import plotted
from .outcomes import NAMES, outcome_of

#: Episodes that are drawn one by one.
DRAWN = 2000
_BLOCKS = 100
_SYMBOLS: dict[Outcome, str] = {"success": "circle", "failure": "diamond", "unknown": "circle-open", "error": "x"}
# Squares of a strip in a row, from few episodes to many.
_ROWS = ((0, 20), (120, 30), (600, 50))


def axis(title: str, **changes: Any) -> dict[str, Any]:
    """Return an axis with a title, its unit in it."""
    return {"title": {"text": title}, **changes}


def histogram(
    rows: Sequence[EpisodeResult],
    values: Sequence[float],
    *,
    id: str,
    title: str,
    unit: str,
    mark: str,
    listed: str,
    lines: Sequence[tuple[float, str]] = (),
) -> Figure | None:
    """Return how a number is spread over episodes, stacked by outcome; None where there is no finite one.

    values: one a row. mark: name by which a bar picks rows of the table `listed`. lines: (value, name) to draw.
    """
    kept = [(row, value) for row, value in zip(rows, values, strict=True) if math.isfinite(value)]
    if not kept:
        return None
    bins = bins_of([value for _, value in kept])
    counts: dict[Outcome, list[int]] = {outcome: [0] * bins.count for outcome in NAMES}
    for row, value in kept:
        counts[outcome_of(row)][bins.of(value)] += 1
    spans = [bins.span(place) for place in range(bins.count)]
    is_single = bins.width == 1 and all(float(value).is_integer() for _, value in kept)
    names = [number(low) if is_single else f"{number(low)} to {number(high)}" for low, high in spans]
    # A whole number that has a bar of its own stands below the middle of it.
    centre = 0.0 if is_single else bins.width / 2
    traces = [
        {
            "type": "bar",
            "name": NAMES[outcome],
            "x": [low + centre for low, _ in spans],
            "y": counts[outcome],
            "width": bins.width * 0.94,
            "marker": {"color": f"@{outcome}"},
            "customdata": spans,
            "hovertext": [
                f"{unit} {name}<br>{count} {NAMES[outcome]}"
                for name, count in zip(names, counts[outcome], strict=True)
            ],
            "hoverinfo": "text",
        }
        for outcome in NAMES
        if any(counts[outcome])
    ]
    left_out = len(rows) - len(kept)
    caption = f"{len(kept):,} episodes in bins of {number(bins.width)}."
    if left_out:
        caption += f" {left_out:,} whose value is not finite are left out."
    return Figure(
        id=id,
        title=title,
        caption=caption,
        spec={
            "data": traces,
            "layout": {
                "barmode": "stack",
                "xaxis": axis(unit),
                "yaxis": axis("episodes", rangemode="tozero"),
                **ruled(lines),
            },
        },
        table=_count_table(id, title, unit, names, counts),
        picks=mark,
        listed=listed,
    )


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


def _count_table(id: str, title: str, unit: str, names: Sequence[str], counts: dict[Outcome, list[int]]) -> Table:
    shown = [outcome for outcome in NAMES if any(counts[outcome])]
    return Table(
        id=f"{id}-table",
        caption=title,
        columns=(Column(unit), *(Column(NAMES[outcome], "number") for outcome in shown)),
        rows=tuple(
            Row(
                (
                    Cell(name, place),
                    *(Cell(f"{counts[outcome][place]:,}", counts[outcome][place]) for outcome in shown),
                )
            )
            for place, name in enumerate(names)
            if any(counts[outcome][place] for outcome in shown)
        ),
    )


def strip(rows: Sequence[EpisodeResult], *, prefix: str, listed: str) -> Figure | None:
    """Return the outcome of every episode in the order of the plan; None where no success was reported.

    prefix: of the keys of entries.
    """
    outcomes = [outcome_of(row) for row in rows]
    if not {"success", "failure"} & set(outcomes):
        return None
    if len(rows) > DRAWN:
        return _rates(rows, outcomes, listed)
    return squares(
        [(outcome, f"{prefix}{row.index}", _told(row)) for row, outcome in zip(rows, outcomes, strict=True)],
        id="strip",
        title="Success by seed",
        caption="A square an episode, in the order of the plan, from left to right.",
        legend=[(outcome, NAMES[outcome], f"@{outcome}") for outcome in NAMES],
    )


def squares(
    items: Sequence[tuple[str, str, str]],
    *,
    id: str,
    title: str,
    caption: str,
    legend: Sequence[tuple[str, str, str]],
) -> Figure:
    """Return a square for each item, line by line.

    items: (class, key of its entry, text). legend: (class, its name, its colour); those without an item are left out.
    """
    found = {kind for kind, _, _ in items}
    legend = [known for known in legend if known[0] in found]
    order = {kind: place for place, (kind, _, _) in enumerate(legend)}
    width = next(most for least, most in reversed(_ROWS) if len(items) > least or not least)
    width = min(width, len(items))
    starts = range(0, len(items), width)
    # The last line is filled up with nothing.
    padded = [*items, *[("", "", "")] * (len(starts) * width - len(items))]
    grid = [padded[start : start + width] for start in starts]
    steps = len(legend)
    scale = [[edge / steps, colour] for place, (_, _, colour) in enumerate(legend) for edge in (place, place + 1)]
    counts = {kind: sum(item[0] == kind for item in items) for kind in order}
    keys = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [None],
            "y": [None],
            "name": f"{name} ({counts[kind]:,})",
            "marker": {"color": colour, "symbol": "square", "size": 10},
            "hoverinfo": "skip",
        }
        for kind, name, colour in legend
    ]
    return Figure(
        id=id,
        title=title,
        caption=caption,
        spec={
            "data": [
                {
                    "type": "heatmap",
                    "z": [[None if not kind else order[kind] + 0.5 for kind, _, _ in line] for line in grid],
                    "y": list(starts),
                    "customdata": [[key for _, key, _ in line] for line in grid],
                    "text": [[text for _, _, text in line] for line in grid],
                    "hovertemplate": "%{text}<extra></extra>",
                    "hoverongaps": False,
                    "zmin": 0,
                    "zmax": steps,
                    "colorscale": scale,
                    "showscale": False,
                    "xgap": 2,
                    "ygap": 2,
                },
                *keys,
            ],
            "layout": {
                "xaxis": axis("place in the row", showgrid=False, zeroline=False, range=[-0.6, width - 0.4]),
                "yaxis": axis(
                    "row starts at",
                    autorange="reversed",
                    showgrid=False,
                    zeroline=False,
                    tickvals=list(starts)[:: math.ceil(len(starts) / 8)],
                ),
                "showlegend": True,
                "height": min(620, 130 + 24 * len(starts)),
            },
        },
        picks="entry",
    )


def _rates(rows: Sequence[EpisodeResult], outcomes: Sequence[Outcome], listed: str) -> Figure:
    size = block_size(len(rows), _BLOCKS)
    names, rates, spans, told = [], [], [], []
    for start in range(0, len(rows), size):
        part = outcomes[start : start + size]
        known = len(part) - part.count("unknown")
        first, last = rows[start].index, rows[min(start + size, len(rows)) - 1].index
        names.append(f"{first} to {last}")
        rates.append(part.count("success") / known * 100 if known else None)
        spans.append([first, last])
        told.append(f"episodes {first} to {last}<br>{part.count('success')} of {known} succeeded")
    return Figure(
        id="strip",
        title="Success by seed",
        caption=f"{len(rows):,} episodes are too many for a square each: the rate of {size:,} neighbours in the plan.",
        spec={
            "data": [
                {
                    "type": "bar",
                    "x": [span[0] + size / 2 for span in spans],
                    "y": rates,
                    "width": size * 0.9,
                    "marker": {"color": "@success"},
                    "customdata": spans,
                    "hovertext": told,
                    "hoverinfo": "text",
                }
            ],
            "layout": {
                "xaxis": axis("episode (index in the plan)"),
                "yaxis": axis("success (%)", range=[0, 100]),
                "showlegend": False,
            },
        },
        picks="index",
        listed=listed,
        is_wide=True,
    )


def _told(row: EpisodeResult) -> str:
    seed = "" if row.seed is None else f", seed {row.seed}"
    text = f"episode {row.index}{seed}<br>return {number(row.return_)}, length {row.length:,}"
    return f"{text}<br>{NAMES[outcome_of(row)]}, {row.end}"


def by_seed(rows: Sequence[EpisodeResult], *, prefix: str, listed: str) -> Figure | None:
    """Return the return of every episode in the order of the plan; None where none is finite."""
    kept = [row for row in rows if math.isfinite(row.return_)]
    if not kept:
        return None
    if len(kept) > DRAWN:
        return _bands(kept, listed)
    is_seeded = counts_up(kept)
    traces = []
    for outcome, name in NAMES.items():
        chosen = [row for row in kept if outcome_of(row) == outcome]
        if chosen:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": [row.seed if is_seeded else row.index for row in chosen],
                    "y": [row.return_ for row in chosen],
                    "marker": {"color": f"@{outcome}", "symbol": _SYMBOLS[outcome], "size": 8},
                    "customdata": [f"{prefix}{row.index}" for row in chosen],
                    "hovertext": [_told(row) for row in chosen],
                    "hoverinfo": "text",
                }
            )
    return Figure(
        id="by-seed",
        title="Return by seed",
        caption="A point an episode. Choose one to see its details and its video.",
        spec={
            "data": traces,
            "layout": {
                "xaxis": axis("seed" if is_seeded else "episode (index in the plan)"),
                "yaxis": axis("return (sum of rewards)"),
                "hovermode": "closest",
            },
        },
        picks="entry",
        is_wide=True,
    )


def counts_up(rows: Sequence[EpisodeResult]) -> bool:
    """Tell whether seeds rise with the plan and leave no wide gaps, so that they can be an axis."""
    seeds = [row.seed for row in rows if row.seed is not None]
    if len(seeds) < len(rows) or any(one >= other for one, other in pairwise(seeds)):
        return False
    return seeds[-1] - seeds[0] < 4 * len(seeds)


def _bands(rows: Sequence[EpisodeResult], listed: str) -> Figure:
    size = block_size(len(rows), _BLOCKS)
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    sorted_ = [sorted(row.return_ for row in block) for block in blocks]
    middle = [_middle(values) for values in sorted_]
    places = [(block[0].index + block[-1].index) / 2 for block in blocks]
    spans = [[block[0].index, block[-1].index] for block in blocks]
    told = [
        f"episodes {first} to {last}<br>median {number(value)}, from {number(values[0])} to {number(values[-1])}"
        for (first, last), value, values in zip(spans, middle, sorted_, strict=True)
    ]
    return Figure(
        id="by-seed",
        title="Return by seed",
        caption=(
            f"{len(rows):,} episodes are too many for a point each: the median of {size:,} neighbours in the plan, "
            "and a line from the least to the greatest."
        ),
        spec={
            "data": [
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": places,
                    "y": middle,
                    "error_y": {
                        "type": "data",
                        "symmetric": False,
                        "array": [values[-1] - value for value, values in zip(middle, sorted_, strict=True)],
                        "arrayminus": [value - values[0] for value, values in zip(middle, sorted_, strict=True)],
                        "thickness": 1,
                        "width": 0,
                        "color": "@muted",
                    },
                    "marker": {"color": "@success", "size": 6},
                    "customdata": spans,
                    "hovertext": told,
                    "hoverinfo": "text",
                }
            ],
            "layout": {
                "xaxis": axis("episode (index in the plan)"),
                "yaxis": axis("return (sum of rewards)"),
                "hovermode": "closest",
                "showlegend": False,
            },
        },
        picks="index",
        listed=listed,
        is_wide=True,
    )


def _middle(ordered: Sequence[float]) -> float:
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return below / 2 + above / 2


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
                    "y": [plotted(name, 24) for name, _, _ in parts],
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
