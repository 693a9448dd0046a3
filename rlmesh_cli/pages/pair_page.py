"""Pair page: a run held against another over the same seeds."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from rlmesh_cli.claims import claim, notes_on_comparison
from rlmesh_cli.comparing import Comparison
from rlmesh_cli.comparison_rows import metric_rows, words
from rlmesh_cli.distinctions import NO_DISTINCTION
from rlmesh_cli.margins import SUCCESS
from rlmesh_cli.metric_judging import MetricComparison
from rlmesh_cli.pairing import Pair, silence_of
from rlmesh_cli.wording import number, signed

from .bins import round_up
from .clips import Reel
from .facts import (
    Block,
    Cell,
    Column,
    Entry,
    Figures,
    Group,
    Meter,
    Meters,
    Page,
    Row,
    Section,
    Sentence,
    Sentences,
    Severity,
    Table,
    Text,
)
from .figures import DRAWN
from .listing import LISTED, side_of
from .opened import Opened
from .origins import origin_blocks, plan_blocks, probe_blocks
from .outcomes import outcome_of
from .pair_figures import KINDS, against, difference_of, differences, kind_of, outcome_squares
from .run_claims import run_claim
from .run_page import advisory_block, bars_of, summary_facts, video_blocks

_SEVERITIES: dict[str, Severity] = {"not_worse": "good", "worse": "bad", "inconclusive": "caution"}
_ANSWER = {"success": "yes", "failure": "no", "unknown": "n/a", "error": "error"}
PAIRS = "pairs"


def pair_page(
    base: Opened, new: Opened, comparison: Comparison, folder: Path, *, divergence: Sequence[str] | None, made: str
) -> Page:
    """Return the page of two runs.

    divergence: where an episode of both parts, in sentences; None if it was not looked for. folder: see run_page.
    """
    reel = Reel([base.footage, new.footage], folder)
    pairs = comparison.pairs.pairs
    keys = [f"p{place}" for place in range(len(pairs))]
    listed, note = _choose(pairs)
    entries = tuple(_entry(base, new, pairs[place], keys[place], reel) for place in listed)
    drawn = [
        differences(pairs, keys, listed=PAIRS),
        outcome_squares(pairs, keys),
        against(pairs, keys),
    ]
    drawn_blocks: tuple[Block, ...] = (Figures(tuple(figure for figure in drawn if figure is not None)),)
    if len(pairs) > DRAWN:
        text = f"{len(pairs):,} pairs are too many for a square and a point each."
        drawn_blocks = (*drawn_blocks, Sentences((Sentence(text, "note"),)))
    sides = (("BASE", base, "b"), ("NEW", new, "n"))
    return Page(
        title=f"{new.run.name} against {base.run.name}",
        heading=f"{new.called} against {base.called} on {new.env}",
        lead=f"BASE {base.run.name} · NEW {new.run.name}",
        claim=f"{claim(comparison)}.",
        verdict=Sentence(words(comparison.verdict), _SEVERITIES[comparison.verdict]),
        top=tuple(_top(comparison)),
        sections=(
            Section("runs", "Runs", (_sides_table(base, new), *_differ_table(comparison), *_bars(base, new))),
            Section("metrics", "Metrics", (_metrics_table(comparison),)),
            Section("plots", "Plots", drawn_blocks),
            Section("flips-section", "Flips", tuple(_flip_blocks(comparison, keys, set(listed)))),
            Section("divergence", "First divergence", _divergence(base, new, divergence)),
            Section(
                "pairs-section",
                "Pairs",
                (
                    _pairs_table([(pairs[place], keys[place], place) for place in listed], base, new, note),
                    *video_blocks([base, new], reel, entries),
                ),
            ),
            *(
                Section(
                    name.lower(),
                    name,
                    (
                        Sentences((Sentence(run_claim(known.evaluation)),)),
                        Group("Summary", (summary_facts(known.evaluation),)),
                        Group("Advisories", (advisory_block(known.evaluation, prefix=prefix),)),
                        Group(
                            "Plan and probe", (*plan_blocks(known.run), *probe_blocks(known.run, prefix=prefix))
                        ),
                        Group("Provenance", origin_blocks(known.run)),
                    ),
                )
                for name, known, prefix in sides
            ),
        ),
        entries=entries,
        made=made,
    )


def _top(comparison: Comparison) -> Iterable[Block]:
    yield Meters(tuple(_meter(metric, comparison) for metric in comparison.metrics))
    notes = [
        *(Sentence(f"{known.field}: {known.describe()}", "caution", "allowed") for known in comparison.allowed),
        *(Sentence(note, "caution", "note") for note in notes_on_comparison(comparison)),
    ]
    if notes:
        yield Sentences(tuple(notes))


def _meter(metric: MetricComparison, comparison: Comparison) -> Meter:
    """Return a difference with its interval around 0."""
    rows = {name: value for name, value in metric_rows(metric, comparison) if value}
    interval = metric.interval
    ends = () if interval is None else (interval.low, interval.high)
    reach = max(map(abs, (metric.difference, metric.margin or 0.0, *ends))) or 1.0
    unit = " points" if metric.metric == SUCCESS else ""
    scale = 100 if metric.metric == SUCCESS else 1
    reach = round_up(reach * 1.05 * scale) / scale
    marks = [(0.0, "no difference")]
    if metric.margin is not None and metric.verdict is not None:
        marks.append((-metric.margin, f"margin -{number(metric.margin * scale)}{unit}"))
    return Meter(
        name=f"Difference of {metric.metric}",
        value=rows["difference"],
        text=next((f"{name} {value}" for name, value in rows.items() if name.endswith("interval")), "no interval"),
        start=-reach,
        end=reach,
        ends=(f"NEW worse {number(-reach * scale)}", f"{number(reach * scale)} NEW better"),
        point=metric.difference,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        marks=tuple(marks),
        is_signed=True,
    )


def _metrics_table(comparison: Comparison) -> Table:
    columns = [metric_rows(metric, comparison) for metric in comparison.metrics]
    rows = []
    for cells in zip(*columns, strict=True):
        if any(value for _, value in cells):
            rows.append(Row((Cell(cells[0][0]), *(Cell(value or "-") for _, value in cells))))
    return Table(
        id="metric-table",
        caption="Metrics of both runs",
        columns=(Column("number"), *(Column(metric.metric, "number") for metric in comparison.metrics)),
        rows=tuple(rows),
    )


def _sides_table(base: Opened, new: Opened) -> Table:
    return Table(
        id="run-table",
        caption="Both runs",
        columns=(Column("run"), Column("policy", "text"), Column("name", "text"), Column("what it shows", "text")),
        rows=tuple(
            Row((Cell(side), Cell(known.called), Cell(known.run.name), Cell(run_claim(known.evaluation))))
            for side, known in (("BASE", base), ("NEW", new))
        ),
    )


def _differ_table(comparison: Comparison) -> Iterable[Block]:
    changes = [change for found in comparison.distinctions.values() for change in found]
    if changes:
        yield Table(
            id="differ-table",
            caption="What the runs differ in",
            columns=(Column("differs"), Column("BASE", "text"), Column("NEW", "text")),
            rows=tuple(Row((Cell(change.path), *map(Cell, change.texts))) for change in changes[:LISTED]),
            note=f"{len(changes) - LISTED:,} more are left out." if len(changes) > LISTED else "",
        )
    elif not comparison.allowed:
        yield Sentences((Sentence(f"The runs differ in {NO_DISTINCTION}.", "note"),))


def _bars(base: Opened, new: Opened) -> tuple[Block, ...]:
    found = [
        Sentence(f"{bar.name} {bar.text}", bar.severity, side)
        for side, known in (("BASE", base), ("NEW", new))
        for bar in bars_of(known)
    ]
    return (Sentences(tuple(found)),) if found else ()


def _choose(pairs: Sequence[Pair]) -> tuple[list[int], str]:
    """Return places of the pairs to list, and a sentence on those that are left out."""
    if len(pairs) <= LISTED:
        return list(range(len(pairs))), ""
    quarter = LISTED // 4
    flips = [place for place, pair in enumerate(pairs) if kind_of(pair) in ("gained", "lost")][:quarter]
    errored = [place for place, pair in enumerate(pairs) if pair.is_error][:quarter]
    known = [place for place, pair in enumerate(pairs) if not math.isnan(difference_of(pair))]
    by_difference = sorted(known, key=lambda place: (-abs(difference_of(pairs[place])), place))[:quarter]
    chosen = dict.fromkeys([*flips, *errored, *by_difference])
    for place in range(len(pairs)):
        if len(chosen) >= LISTED:
            break
        chosen.setdefault(place)
    note = (
        f"Of {len(pairs):,} pairs {len(chosen):,} are listed: {len(flips):,} that flipped, {len(errored):,} that "
        f"errored, {len(by_difference):,} of the greatest difference, and the first of the others. "
        "The numbers count every one."
    )
    return sorted(chosen), note


def _entry(base: Opened, new: Opened, pair: Pair, key: str, reel: Reel) -> Entry:
    title = _title(pair)
    return Entry(
        key=key,
        title=f"{title}: {KINDS[kind_of(pair)][0]}",
        sides=tuple(
            side_of(row, known.footage, reel, entry=key, title=title, name=f"{side}, episode {row.index}")
            for side, known, row in (("BASE", base, pair.base), ("NEW", new, pair.new))
        ),
    )


def _title(pair: Pair) -> str:
    return f"Seed {pair.base.seed}" if pair.base.seed is not None else f"Episode {pair.base.index}"


def _pairs_table(listed: Sequence[tuple[Pair, str, int]], base: Opened, new: Opened, note: str) -> Table:
    return Table(
        id=PAIRS,
        caption="Pairs of episodes",
        columns=(
            *(Column(name, "number") for name in ("seed", "return BASE", "return NEW", "difference")),
            *(Column(name) for name in ("success BASE", "success NEW", "outcome")),
            *(Column(name, "number") for name in ("length BASE", "length NEW", "videos")),
        ),
        rows=tuple(_pair_row(pair, key, place, base, new) for pair, key, place in listed),
        note=note,
        is_sortable=True,
        is_filtered=True,
        filters=("success", "failure", "unknown", "error"),
    )


def _pair_row(pair: Pair, key: str, place: int, base: Opened, new: Opened) -> Row:
    difference = difference_of(pair)
    videos = len(base.footage.videos.get(pair.base.episode_id, ())) + len(
        new.footage.videos.get(pair.new.episode_id, ())
    )
    outcomes = [outcome_of(row) for row in (pair.base, pair.new)]
    return Row(
        (
            Cell("-" if pair.base.seed is None else str(pair.base.seed), pair.base.seed),
            Cell(number(pair.base.return_), pair.base.return_),
            Cell(number(pair.new.return_), pair.new.return_),
            Cell("-" if pair.is_error else signed(difference), None if pair.is_error else difference),
            *(Cell(_ANSWER[outcome], outcome=outcome) for outcome in outcomes),
            Cell(KINDS[kind_of(pair)][0]),
            Cell(f"{pair.base.length:,}", pair.base.length),
            Cell(f"{pair.new.length:,}", pair.new.length),
            Cell(str(videos) if videos else "-", videos),
        ),
        entry=key,
        marks={"pair": place},
    )


def _flip_blocks(comparison: Comparison, keys: Sequence[str], listed: Collection[int]) -> Iterable[Block]:
    """Return the pairs that flipped, as far as they are listed: those have details that can be opened."""
    metric = next((known for known in comparison.metrics if known.gained is not None), None)
    if metric is None:
        text = f"Success was not measured, so nothing can flip: {silence_of(comparison.pairs.pairs)}."
        yield Sentences((Sentence(text, "note"),))
        return
    gained, lost = metric.gained or [], metric.lost or []
    text = f"NEW alone succeeded in {len(gained):,} of {metric.pairs:,} pairs, BASE alone in {len(lost):,}."
    yield Sentences((Sentence(text),))
    if not gained and not lost:
        return
    places = {
        (pair.base.index, pair.new.index): (place, pair) for place, pair in enumerate(comparison.pairs.pairs)
    }
    rows = []
    for kind, flips in (("lost", lost), ("gained", gained)):
        for flip in flips:
            place, pair = places[flip.base_index, flip.new_index]
            if place not in listed:
                continue
            rows.append(
                Row(
                    (
                        Cell("-" if flip.seed is None else str(flip.seed), flip.seed),
                        Cell(KINDS[kind][0], outcome="success" if kind == "gained" else "failure"),
                        Cell(str(flip.base_index), flip.base_index),
                        Cell(str(flip.new_index), flip.new_index),
                        Cell(number(pair.base.return_), pair.base.return_),
                        Cell(number(pair.new.return_), pair.new.return_),
                    ),
                    entry=keys[place],
                )
            )
    left_out = len(gained) + len(lost) - len(rows)
    yield Table(
        id="flip-table",
        caption="Pairs that flipped",
        is_sortable=True,
        columns=(
            Column("seed", "number"),
            Column("flip"),
            *(Column(name, "number") for name in ("episode BASE", "episode NEW", "return BASE", "return NEW")),
        ),
        rows=tuple(rows),
        note=f"{left_out:,} more flips are left out." if left_out else "",
    )


def _divergence(base: Opened, new: Opened, found: Sequence[str] | None) -> tuple[Block, ...]:
    if found is not None:
        return (Sentences(tuple(Sentence(line) for line in found)),)
    folders = " ".join(shlex.quote(str(known.run.folder)) for known in (base, new))
    text = "Not looked for, as an episode of both has to be played again. This does so:"
    command = Text("", f"rlmesh compare {folders} --first-divergence")
    return Sentences((Sentence(text, "note"),)), command
