"""Pair figures: two runs held against one another, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlmesh_cli.pairing import Pair
from rlmesh_cli.wording import number, signed

from .bins import block_size
from .facts import Figure
from .figures import DRAWN, axis, counts_up, whole
from .strips import squares

#: What became of a pair -> how it is read, its colour, and its symbol.
KINDS = {
    "gained": ("NEW alone succeeded", "@success", "triangle-up"),
    "lost": ("BASE alone succeeded", "@failure", "triangle-down"),
    "same": ("same outcome", "@unknown", "circle"),
    "silent": ("success not reported", "@bar", "circle"),
    "open": ("errored, or not reported in one", "@error", "x"),
}
_BLOCKS = 100


def kind_of(pair: Pair) -> str:
    """Return what became of the success of a pair."""
    if pair.is_error or (pair.base.success is None) != (pair.new.success is None):
        return "open"
    if pair.base.success == pair.new.success:
        return "same" if pair.base.success is not None else "silent"
    return "gained" if pair.new.success else "lost"


def difference_of(pair: Pair) -> float:
    """Return by how much the return of NEW is above that of BASE; NaN where one was not finished."""
    return math.nan if pair.is_error else pair.new.return_ - pair.base.return_


def told(pair: Pair) -> str:
    """Return a pair in a few words."""
    seed = f"seed {pair.base.seed}" if pair.base.seed is not None else f"episode {pair.base.index}"
    values = f"return {number(pair.base.return_)} in BASE, {number(pair.new.return_)} in NEW"
    return f"{seed}<br>{values}<br>{KINDS[kind_of(pair)][0]}"


def differences(pairs: Sequence[Pair], keys: Sequence[str], *, listed: str) -> Figure | None:
    """Return the difference of the return by pair; None where none is finite. keys: of their entries."""
    kept = [
        (place, pair, key)
        for place, (pair, key) in enumerate(zip(pairs, keys, strict=True))
        if math.isfinite(difference_of(pair))
    ]
    if not kept:
        return None
    if len(pairs) > DRAWN:  # then not every pair has details
        return _blocks([(place, difference_of(pair)) for place, pair, _ in kept], listed)
    is_seeded = counts_up([pair.base for _, pair, _ in kept])
    traces = []
    for kind, (name, colour, _) in KINDS.items():
        chosen = [known for known in kept if kind_of(known[1]) == kind]
        if chosen:
            traces.append(
                {
                    "type": "bar",
                    "name": name,
                    "x": [pair.base.seed if is_seeded else place for place, pair, _ in chosen],
                    "width": 0.9,
                    "y": [difference_of(pair) for _, pair, _ in chosen],
                    "marker": {"color": colour},
                    "customdata": [key for _, _, key in chosen],
                    "hovertext": [
                        f"{told(pair)}<br>difference {signed(difference_of(pair))}" for _, pair, _ in chosen
                    ],
                    "hoverinfo": "text",
                }
            )
    return Figure(
        id="differences",
        title="Difference of the return by seed",
        caption="NEW - BASE, a bar a pair. Choose one to see both episodes and their videos.",
        spec={
            "data": traces,
            "layout": {
                "barmode": "overlay",
                "xaxis": whole(
                    "seed" if is_seeded else "pair (in the order of BASE)", [place for place, _, _ in kept]
                ),
                "yaxis": axis("NEW - BASE (return)"),
            },
        },
        picks="entry",
        is_wide=True,
    )


def _blocks(values: Sequence[tuple[int, float]], listed: str) -> Figure:
    size = block_size(len(values), _BLOCKS)
    blocks = [values[start : start + size] for start in range(0, len(values), size)]
    means = [math.fsum(value / len(block) for _, value in block) for block in blocks]
    spans = [[block[0][0], block[-1][0] + 1] for block in blocks]
    return Figure(
        id="differences",
        title="Difference of the return by seed",
        caption=f"{len(values):,} pairs are too many for a bar each: the mean NEW - BASE of {size:,} neighbours.",
        spec={
            "data": [
                {
                    "type": "bar",
                    "x": [(first + end) / 2 for first, end in spans],
                    "y": means,
                    "marker": {"color": "@success"},
                    "customdata": spans,
                    "hovertext": [
                        f"pairs {first} to {end - 1}<br>mean difference {signed(mean)}"
                        for (first, end), mean in zip(spans, means, strict=True)
                    ],
                    "hoverinfo": "text",
                }
            ],
            "layout": {
                "xaxis": axis("pair (in the order of BASE)"),
                "yaxis": axis("NEW - BASE (return)"),
                "showlegend": False,
            },
        },
        picks="pair",
        listed=listed,
        is_wide=True,
    )


def against(pairs: Sequence[Pair], keys: Sequence[str]) -> Figure | None:
    """Return the returns of NEW over those of BASE; None where there is none, or too many to be drawn."""
    kept = [(pair, key) for pair, key in zip(pairs, keys, strict=True) if math.isfinite(difference_of(pair))]
    if not kept or len(pairs) > DRAWN:
        return None
    values = [value for pair, _ in kept for value in (pair.base.return_, pair.new.return_)]
    ends = [min(values), max(values)]
    traces: list[dict[str, object]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": ends,
            "y": ends,
            "line": {"color": "@muted", "width": 1, "dash": "dot"},
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]
    for kind, (name, colour, symbol) in KINDS.items():
        chosen = [known for known in kept if kind_of(known[0]) == kind]
        if chosen:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": [pair.base.return_ for pair, _ in chosen],
                    "y": [pair.new.return_ for pair, _ in chosen],
                    "marker": {"color": colour, "symbol": symbol, "size": 8},
                    "customdata": [key for _, key in chosen],
                    "hovertext": [told(pair) for pair, _ in chosen],
                    "hoverinfo": "text",
                }
            )
    return Figure(
        id="against",
        title="NEW against BASE",
        caption="A point a pair; above the line NEW had the greater return.",
        spec={
            "data": traces,
            "layout": {
                "xaxis": axis("return in BASE"),
                "yaxis": axis("return in NEW"),
                "hovermode": "closest",
                "height": 360,
            },
        },
        picks="entry",
    )


def outcome_squares(pairs: Sequence[Pair], keys: Sequence[str]) -> Figure | None:
    """Return what became of the success of every pair; None where nothing was reported, or it is too much."""
    if len(pairs) > DRAWN or all(pair.base.success is None or pair.new.success is None for pair in pairs):
        return None
    return squares(
        [(_square(pair), key, told(pair)) for pair, key in zip(pairs, keys, strict=True)],
        id="flips",
        title="Success by pair",
        caption="A square a pair, in the order of BASE, from left to right.",
        legend=[
            ("gained", "NEW alone", "@success"),
            ("lost", "BASE alone", "@failure"),
            ("both", "both", "@muted"),
            ("neither", "neither", "@faint"),
            ("silent", "not reported", "@bar"),
            ("open", "errored, or not reported in one", "@error"),
        ],
    )


def _square(pair: Pair) -> str:
    kind = kind_of(pair)
    if kind != "same":
        return kind
    return "both" if pair.base.success else "neither"
