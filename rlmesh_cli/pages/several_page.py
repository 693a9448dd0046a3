"""Several page: more than two runs beside one another; nothing is judged between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rlmesh_cli.judgement.intervals import Interval
from rlmesh_cli.stats import Spread
from rlmesh_cli.wording import level, number

from .clips import Reel
from .facts import (
    Block,
    Cell,
    Column,
    Entry,
    Figure,
    Figures,
    Gallery,
    Group,
    Page,
    Row,
    Section,
    Sentence,
    Sentences,
    Table,
)
from .figures import axis
from .labels import plotted
from .listing import LISTED, choose, entry_of, episode_table
from .opened import Opened
from .origins import origin_blocks, plan_blocks, probe_blocks
from .run_claims import run_claim
from .run_page import advisory_block, bars_of, lead_of, summary_facts, top_blocks


def several_page(runs: Sequence[Opened], folder: Path, *, made: str) -> Page:
    """Return the page of several runs, in the order they were named; folder: see run_page."""
    reel = Reel([known.footage for known in runs], folder)
    entries: list[Entry] = []
    sections = []
    for at, known in enumerate(runs):
        prefix = f"r{at}-"
        rows, note = choose(known.evaluation.rows, known.footage.videos, LISTED // len(runs))
        first = len(reel.clips)
        entries += [entry_of(row, known.footage, reel, prefix=prefix) for row in rows]
        clips = tuple(reel.clips[first:])
        table = episode_table(
            rows,
            known.footage,
            id=f"episodes-{at}",
            prefix=prefix,
            note=note,
            caption=f"Episodes of run {at + 1}",
        )
        blocks: list[Block] = [
            Sentences((Sentence(lead_of(known), "note"), Sentence(run_claim(known.evaluation)))),
            *top_blocks(known, bars_of(known)),
            Group("Summary", (summary_facts(known.evaluation),)),
            Group(f"Episodes ({len(known.evaluation.rows):,})", (table, *((Gallery(clips),) if clips else ()))),
            Group("Advisories", (advisory_block(known.evaluation, prefix=f"r{at}-"),)),
            Group("Plan and probe", (*plan_blocks(known.run), *probe_blocks(known.run, prefix=f"r{at}-"))),
            Group("Provenance", origin_blocks(known.run)),
        ]
        sections.append(Section(f"run-{at + 1}", f"{at + 1}. {known.called} on {known.env}", tuple(blocks)))
    figures = tuple(figure for figure in (_rates(runs), _returns(runs)) if figure is not None)
    return Page(
        title=f"{len(runs)} runs",
        heading=f"{len(runs)} runs",
        lead=" · ".join(dict.fromkeys(known.env for known in runs)),
        claim=(
            "These runs stand beside one another; none is judged by another here. "
            "Intervals that overlap do not show that two runs are alike: name two runs to compare them by seed."
        ),
        verdict=None,
        top=(_runs_table(runs),),
        sections=(*([Section("intervals", "Intervals", (Figures(figures),))] if figures else []), *sections),
        entries=tuple(entries),
        made=made,
    )


def _runs_table(runs: Sequence[Opened]) -> Table:
    return Table(
        id="run-table",
        caption="Runs",
        is_sortable=True,
        columns=(
            Column("run", "number"),
            Column("policy", "text"),
            *([Column("environment")] if _envs(runs) > 1 else []),
            Column("status"),
            Column("success", "number"),
            Column("interval"),
            Column("mean return", "number"),
            Column("interval of the mean"),
            *(Column(name, "number") for name in ("episodes", "errors")),
            Column("name"),
        ),
        rows=tuple(_run_row(at, known, has_env=_envs(runs) > 1) for at, known in enumerate(runs)),
    )


def _envs(runs: Sequence[Opened]) -> int:
    return len({known.env for known in runs})


def _run_row(at: int, known: Opened, *, has_env: bool) -> Row:
    summary = known.evaluation.summary
    rate, returns = summary.success.rate, summary.returns
    return Row(
        (
            Cell(str(at + 1), at, href=f"#run-{at + 1}"),
            Cell(known.called),
            *([Cell(known.env)] if has_env else []),
            Cell(known.evaluation.status),
            Cell("n/a" if rate is None else f"{rate * 100:.1f} %", rate),
            Cell(_ends(summary.success.interval, lambda rate: f"{rate * 100:.1f} %")),
            Cell("n/a" if returns is None else number(returns.mean), None if returns is None else returns.mean),
            Cell("-" if returns is None else _mean_ends(returns)),
            Cell(f"{summary.episodes:,} of {summary.planned:,}", summary.episodes),
            Cell(f"{summary.errors:,}", summary.errors),
            Cell(known.run.name),
        )
    )


def _mean_ends(returns: Spread) -> str:
    return "none: all are alike" if returns.is_alike else _ends(returns.told_interval, number)


def _ends(interval: Interval | None, shown: Callable[[float], str]) -> str:
    if interval is None:
        return "-"
    return f"{shown(interval.low)} to {shown(interval.high)} ({level(interval)})"


def _rates(runs: Sequence[Opened]) -> Figure | None:
    found = [(at, known.evaluation.summary.success) for at, known in enumerate(runs)]
    return _intervals(
        runs,
        [(at, success.rate * 100, success.interval, 100.0) for at, success in found if success.rate is not None],
        id="rates",
        title="Success rate",
        unit="success (%)",
        range_=[0, 100],
    )


def _returns(runs: Sequence[Opened]) -> Figure | None:
    found = [(at, known.evaluation.summary.returns) for at, known in enumerate(runs)]
    return _intervals(
        runs,
        [(at, returns.mean, returns.interval, 1.0) for at, returns in found if returns is not None],
        id="means",
        title="Mean return",
        unit="mean return (sum of rewards)",
        range_=None,
    )


def _intervals(
    runs: Sequence[Opened],
    values: Sequence[tuple[int, float, Interval | None, float]],
    *,
    id: str,
    title: str,
    unit: str,
    range_: list[float] | None,
) -> Figure | None:
    """Return a point and its interval for each run. values: (place of the run, value, interval, scale)."""
    if not values:
        return None
    low = [
        0.0 if interval is None else max(0.0, value - interval.low * scale) for _, value, interval, scale in values
    ]
    high = [
        0.0 if interval is None else max(0.0, interval.high * scale - value)
        for _, value, interval, scale in values
    ]
    return Figure(
        id=id,
        title=title,
        caption="A point a run, with its interval.",
        spec={
            "data": [
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": [value for _, value, _, _ in values],
                    "y": [f"{at + 1}. {plotted(runs[at].policy, 20)}" for at, _, _, _ in values],
                    "error_x": {
                        "type": "data",
                        "symmetric": False,
                        "array": high,
                        "arrayminus": low,
                        "color": "@success",
                        "thickness": 2,
                        "width": 5,
                    },
                    "marker": {"color": "@success", "size": 9},
                    "hovertext": [
                        f"{plotted(runs[at].run.name)}<br>{number(value)}" for at, value, _, _ in values
                    ],
                    "hoverinfo": "text",
                }
            ],
            "layout": {
                "xaxis": axis(unit, **({"range": range_} if range_ else {})),
                "yaxis": axis("run", type="category", autorange="reversed"),
                "showlegend": False,
                "height": 130 + 34 * len(values),
            },
        },
    )
