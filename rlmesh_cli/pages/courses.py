"""Courses: the return of every episode in the order of the plan."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.wording import counted, number

from .bins import block_size
from .facts import Figure, Outcome
from .figures import BLOCKS, DRAWN, axis, counts_up, told, whole
from .outcomes import NAMES, outcome_of

_SYMBOLS: dict[Outcome, str] = {"success": "circle", "failure": "diamond", "unknown": "circle-open", "error": "x"}


def by_seed(rows: Sequence[EpisodeResult], *, prefix: str, listed: str) -> Figure | None:
    """Return the return of every episode in the order of the plan; None where none is finite."""
    kept = [row for row in rows if math.isfinite(row.return_)]
    if not kept:
        return None
    left_out = len(rows) - len(kept)
    note = f" Left out: {left_out:,} without a finite return." if left_out else ""
    if len(rows) > DRAWN:  # then not every episode has details
        return _bands(kept, note, listed)
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
                    "hovertext": [told(row) for row in chosen],
                    "hoverinfo": "text",
                }
            )
    return Figure(
        id="by-seed",
        title="Return by seed",
        caption=f"A point an episode. Choose one to see its details and its video.{note}",
        spec={
            "data": traces,
            "layout": {
                "xaxis": whole(
                    "seed" if is_seeded else "episode (index in the plan)", [row.index for row in kept]
                ),
                "yaxis": axis("return (sum of rewards)"),
                "hovermode": "closest",
            },
        },
        picks="entry",
        is_wide=True,
    )


def _bands(kept: Sequence[EpisodeResult], note: str, listed: str) -> Figure:
    finished = [row for row in kept if not row.is_error]
    rows, kind = (finished, "finished") if finished else (kept, "errored")
    size = block_size(len(rows), BLOCKS)
    blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
    sorted_ = [sorted(row.return_ for row in block) for block in blocks]
    middle = [_middle(values) for values in sorted_]
    places = [(block[0].index + block[-1].index) / 2 for block in blocks]
    spans = [[block[0].index, block[-1].index + 1] for block in blocks]
    texts = [
        f"episodes {first} to {end - 1}<br>"
        f"median {number(value)}, from {number(values[0])} to {number(values[-1])}"
        for (first, end), value, values in zip(spans, middle, sorted_, strict=True)
    ]
    return Figure(
        id="by-seed",
        title="Return by seed",
        caption=(
            f"{counted(len(rows), f'{kind} episode')}, too many for a point each: the median of {size:,} "
            f"neighbours in the plan, and a line from the least to the greatest.{note}"
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
                    "hovertext": texts,
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
