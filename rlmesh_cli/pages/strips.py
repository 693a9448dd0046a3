"""Strips: the outcome of every episode as a square, in the order of the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlmesh_cli.episodes import EpisodeResult

from .bins import block_size
from .facts import Figure, Outcome
from .figures import BLOCKS, DRAWN, axis, told
from .outcomes import NAMES, outcome_of

# Squares in a row, from few episodes to many.
_ROWS = ((0, 20), (120, 30), (600, 50))


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
        [(outcome, f"{prefix}{row.index}", told(row)) for row, outcome in zip(rows, outcomes, strict=True)],
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

    items: (class, key of its entry, text). legend: (class, its name, its colour), used where they occur.
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
                "xaxis": axis(
                    "place in the row", showgrid=False, zeroline=False, range=[-0.6, max(width, _ROWS[0][1]) - 0.4]
                ),
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
    size = block_size(len(rows), BLOCKS)
    rates, spans, texts = [], [], []
    for start in range(0, len(rows), size):
        part = outcomes[start : start + size]
        known = len(part) - part.count("unknown")
        first, last = rows[start].index, rows[min(start + size, len(rows)) - 1].index
        rates.append(part.count("success") / known * 100 if known else None)
        spans.append([first, last + 1])
        texts.append(f"episodes {first} to {last}<br>{part.count('success')} of {known} succeeded")
    return Figure(
        id="strip",
        title="Success by seed",
        caption=f"{len(rows):,} episodes are too many for a square each: the rate of {size:,} neighbours.",
        spec={
            "data": [
                {
                    "type": "bar",
                    "x": [span[0] + size / 2 for span in spans],
                    "y": rates,
                    "width": size * 0.9,
                    "marker": {"color": "@success"},
                    "customdata": spans,
                    "hovertext": texts,
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
