"""Spreads: how a number is spread over episodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.wording import counted, number
from rlmesh_cli.wording import listed as listed_words

from .bins import bins_of
from .facts import Cell, Column, Figure, Outcome, Row, Table
from .figures import axis, ruled
from .outcomes import NAMES, outcome_of


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
    """Return how a number is spread over finished episodes, stacked by outcome; None where none has a finite one.

    values: one a row. mark: name by which a bar picks rows of the table `listed`; a colour picks those of its
    outcome. lines: (value, name) to draw.
    """
    finished = [(row, value) for row, value in zip(rows, values, strict=True) if not row.is_error]
    kept = [(row, value) for row, value in finished if math.isfinite(value)]
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
            "customdata": [(*span, outcome) for span in spans],
            "hovertext": [
                f"{unit} {name}<br>{count} {NAMES[outcome]}"
                for name, count in zip(names, counts[outcome], strict=True)
            ],
            "hoverinfo": "text",
        }
        for outcome in NAMES
        if any(counts[outcome])
    ]
    caption = f"{counted(len(kept), 'finished episode')} in bins of {number(bins.width)}."
    left_out = {"that errored": len(rows) - len(finished), "without a finite value": len(finished) - len(kept)}
    if any(left_out.values()):
        parts = [f"{count:,} {why}" for why, count in left_out.items() if count]
        caption += f" Left out: {listed_words(parts)}."
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
