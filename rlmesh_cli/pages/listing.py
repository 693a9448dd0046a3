"""Listing: which episodes a page lists, and what it says of each of them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Sequence

from rlmesh_adapters.errors import shortened
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.wording import counted, error_text, number

from .clips import Footage, Reel
from .facts import Cell, Column, Entry, Line, Row, Side, Table
from .outcomes import outcome_of

#: Name of the table of episodes on the page of one run.
EPISODES = "episode-table"
#: Episodes that a page lists one by one.
LISTED = 2000
_ANSWER = {True: "yes", False: "no", None: "n/a"}
_ERROR, _LONG_ERROR = 160, 4000


def choose(
    rows: Sequence[EpisodeResult], filmed: Collection[str], most: int = LISTED
) -> tuple[list[EpisodeResult], str]:
    """Return the rows to list, in the order of the plan, and a sentence on those that are left out.

    Of many these are listed: those with a video, those that errored and the worst, a quarter each at most, and the
    first, which fill what is left. filmed: ids of episodes with a video.
    """
    if len(rows) <= most:
        return list(rows), ""
    quarter = most // 4
    parts = {
        "with a video": [row for row in rows if row.episode_id in filmed][:quarter],
        "that errored": [row for row in rows if row.is_error][:quarter],
        "of the lowest return": heapq.nsmallest(
            quarter,
            (row for row in rows if not math.isnan(row.return_)),
            key=lambda row: (row.return_, row.index),
        ),
    }
    chosen = {row.index: row for part in parts.values() for row in part}
    first = 0
    for row in rows:
        if len(chosen) >= most:
            break
        first += 1
        chosen.setdefault(row.index, row)
    said = [f"the first {first:,}", *(f"{len(part):,} {name}" for name, part in parts.items() if part)]
    text = (
        f"Of {len(rows):,} episodes {len(chosen):,} are listed: {', '.join(said)}. "
        "The numbers and plots above count every one; episodes.jsonl holds them all."
    )
    return sorted(chosen.values(), key=lambda row: row.index), text


def episode_table(
    rows: Sequence[EpisodeResult],
    footage: Footage,
    *,
    id: str,
    prefix: str,
    note: str,
    caption: str = "Episodes",
) -> Table:
    """Return the table of episodes; prefix: of the keys of their entries."""
    has_error = any(row.is_error for row in rows)
    has_clips = any(row.episode_id in footage.videos for row in rows)
    columns = [
        *(Column(name, "number") for name in ("episode", "seed", "return", "length")),
        *(Column(name) for name in ("end", "success")),
        *([Column("error", "text")] if has_error else []),
        *(Column(name, "number") for name in ("calls", "clipped")),
        *([Column("video")] if has_clips else []),
    ]
    return Table(
        id=id,
        caption=caption,
        columns=tuple(columns),
        rows=tuple(
            Row(
                tuple(_cells(row, footage, has_error=has_error, has_clips=has_clips)),
                entry=f"{prefix}{row.index}",
                # Bars of return and length count finished episodes alone.
                marks={"index": row.index}
                | ({} if row.is_error else {"return": row.return_, "length": row.length}),
            )
            for row in rows
        ),
        note=note,
        is_sortable=True,
        is_filtered=True,
        filters=("success", "failure", "unknown", "error"),
    )


def _cells(row: EpisodeResult, footage: Footage, *, has_error: bool, has_clips: bool) -> Iterable[Cell]:
    yield Cell(str(row.index), row.index)
    yield Cell("-" if row.seed is None else str(row.seed), row.seed)
    yield Cell(number(row.return_), row.return_)
    yield Cell(f"{row.length:,}", row.length)
    yield Cell(row.end)
    yield Cell("error" if row.is_error else _ANSWER[row.success], outcome=outcome_of(row))
    if has_error:
        yield Cell(shortened(error_text(row), _ERROR))
    yield Cell(f"{row.policy_calls:,}", row.policy_calls)
    yield Cell(f"{row.clipped_actions:,}", row.clipped_actions)
    if has_clips:
        videos = footage.videos.get(row.episode_id, ())
        yield Cell(counted(len(videos), "video") if videos else "-", len(videos))


def entry_of(row: EpisodeResult, footage: Footage, reel: Reel, *, prefix: str) -> Entry:
    """Return the details of an episode, and put its videos onto the page."""
    key, title = f"{prefix}{row.index}", episode_title(row)
    return Entry(key=key, title=title, sides=(side_of(row, footage, reel, entry=key, title=title),))


def episode_title(row: EpisodeResult) -> str:
    """Return how an episode is called."""
    return f"Episode {row.index}" if row.seed is None else f"Episode {row.index}, seed {row.seed}"


def side_of(row: EpisodeResult, footage: Footage, reel: Reel, *, entry: str, title: str, name: str = "") -> Side:
    """Return one episode in detail; name: of its run, where there are two."""
    steps = footage.steps.get(row.episode_id)
    return Side(
        name=name,
        lines=tuple(_lines(row)),
        clips=reel.add(footage, row.episode_id, entry=entry, title=title, side=f"{name}: " if name else ""),
        links=() if steps is None else ((f"steps of {row.episode_id} (Parquet)", reel.link(steps)),),
    )


def _lines(row: EpisodeResult) -> Iterable[Line]:
    yield Line("id", row.episode_id)
    yield Line("return", number(row.return_))
    yield Line("length", f"{counted(row.length, 'step')}, {row.end}")
    source = f" ({row.success_source})" if row.success_source else ""
    yield Line("success", f"{_ANSWER[row.success] if not row.is_error else 'errored'}{source}")
    meanings = {"last value": row.success_final, "any step": row.success_any, "at reset": row.success_at_reset}
    told = [f"{name} {_ANSWER[value]}" for name, value in meanings.items() if value is not None]
    if told:
        yield Line("reported", ", ".join(told))
    if row.error is not None:
        yield Line("error", shortened(error_text(row), _LONG_ERROR))
        if row.error.place:
            yield Line("place", row.error.place)
    for name, value in row.metrics.items():
        yield Line(shortened(name, 60), "not reported" if value is None else number(float(value)))
    yield Line("policy", f"asked {row.policy_calls:,} times, {counted(row.clipped_actions, 'action')} clipped")
    if row.planned_actions is not None and row.dropped_actions:
        yield Line("chunks", f"{row.planned_actions:,} actions planned, {row.dropped_actions:,} left at the end")
    if row.attempts > 1:
        yield Line("attempts", str(row.attempts))
    spent = row.seconds
    yield Line(
        "seconds",
        f"{spent.total:.3g}: env {spent.env:.3g}, policy {spent.policy:.3g}, adapter {spent.adapter:.3g}; "
        f"lane {row.lane}",
    )
    yield Line("hashes", f"start {row.start_hash or 'none'}, trace {row.trace_hash}")
