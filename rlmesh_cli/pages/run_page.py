"""Run page: everything that is said of one run, from its folder alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlmesh_cli.control_results import PairedDifference
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.exits import Exit
from rlmesh_cli.judgement.intervals import Interval
from rlmesh_cli.reports.report import Report, bars
from rlmesh_cli.stored_tables import moment
from rlmesh_cli.summary_rows import summary_rows
from rlmesh_cli.wording import counted, level, number, signed

from .clips import EMBEDDED, Reel
from .facts import (
    Block,
    Cell,
    Column,
    Entry,
    Facts,
    Gallery,
    Line,
    Meters,
    Page,
    Row,
    Section,
    Sentence,
    Sentences,
    Table,
)
from .listing import EPISODES, choose, entry_of, episode_table
from .opened import Opened
from .origins import origin_blocks, plan_blocks, probe_blocks
from .run_claims import bar_sentence, run_claim, run_meters, run_verdict
from .run_figures import plot_blocks


def run_page(known: Opened, folder: Path, *, made: str) -> Page:
    """Return the page of one run; folder: that the page is put into. made: when and by what it was."""
    reel = Reel([known.footage], folder)
    rows, note = choose(known.evaluation.rows, known.footage.videos)
    entries = tuple(entry_of(row, known.footage, reel, prefix="e") for row in rows)
    table = episode_table(rows, known.footage, id=EPISODES, prefix="e", note=note)
    bars_ = bars_of(known)
    return Page(
        title=f"{known.policy} on {known.env}",
        heading=f"{known.called} on {known.env}",
        lead=lead_of(known),
        claim=run_claim(known.evaluation),
        verdict=run_verdict(known.evaluation, [(bar.name, bar.text.partition(":")[0]) for bar in bars_]),
        top=tuple(top_blocks(known, bars_)),
        sections=(
            Section("summary", "Summary", (summary_facts(known.evaluation), *control_blocks(known.evaluation))),
            Section("plots", "Plots", tuple(plot_blocks(known))),
            Section("episodes", "Episodes", (table, *video_blocks([known], reel, entries))),
            Section("advisories", "Advisories", (advisory_block(known.evaluation, prefix=""),)),
            Section("plan", "Plan", plan_blocks(known.run)),
            Section("probe", "Probe", probe_blocks(known.run, prefix="")),
            Section("provenance", "Provenance", origin_blocks(known.run)),
        ),
        entries=entries,
        made=made,
    )


def lead_of(known: Opened) -> str:
    """Return where a run is from, in a line."""
    return f"{known.run.name} · {moment(known.run.record['started_at'])} · {known.evaluation.status}"


def bars_of(known: Opened) -> tuple[Sentence, ...]:
    """Return the bars that a run was held against, and what came of each."""
    record = known.run.record
    sittings = record.get("sessions") or [record]
    is_strict = "--strict" in (sittings[-1].get("argv") or ())
    report = Report(code=Exit.DONE, evaluation=known.evaluation, strict=is_strict, command="", record=record)
    return tuple(bar_sentence(bar.name, bar.state, bar.text) for bar in bars(report))


def top_blocks(known: Opened, bars_: Sequence[Sentence]) -> list[Block]:
    """Return what stands beside the claim: intervals, bars, and what puts the number in doubt."""
    found: list[Block] = []
    meters = run_meters(known.evaluation)
    if meters:
        found.append(Meters(meters))
    doubts = [
        *bars_,
        *(Sentence(note, "caution", "note") for note in known.notes),
        *(
            Sentence(
                f"{caution.message} ({caution.count:,})" if caution.count > 1 else caution.message,
                "caution",
                caution.code,
            )
            for caution in known.evaluation.cautions
        ),
    ]
    if doubts:
        found.append(Sentences(tuple(doubts)))
    return found


def summary_facts(evaluation: Evaluation) -> Facts:
    """Return the summary as `rlmesh show` tells it."""
    return Facts(tuple(Line(name, text) for name, text in summary_rows(evaluation)))


def control_blocks(evaluation: Evaluation) -> tuple[Table, ...]:
    """Return how built-in policies did on the same episodes."""
    rows = []
    for control in evaluation.controls:
        for name, found in (("success", control.success), ("return", control.returns)):
            if found is not None:
                rows.append(
                    Row(
                        (
                            Cell(control.name),
                            Cell(name),
                            Cell(_pairs_text(found), found.pairs),
                            Cell(number(found.policy), found.policy),
                            Cell(number(found.control), found.control),
                            Cell(_difference(found.difference, found.interval), found.difference),
                        )
                    )
                )
    if not rows:
        return ()
    numbers = [Column(name, "number") for name in ("pairs", "policy", "control")]
    columns = (Column("policy beside"), Column("metric"), *numbers, Column("difference", "text"))
    return (Table(id="controls", caption="Controls on the same episodes", columns=columns, rows=tuple(rows)),)


def _pairs_text(found: PairedDifference) -> str:
    return f"{found.pairs:,}, {found.left_out:,} left out" if found.left_out else f"{found.pairs:,}"


def _difference(value: float, interval: Interval | None) -> str:
    if interval is None:
        return signed(value)
    return f"{signed(value)} ({level(interval)} interval {signed(interval.low)} to {signed(interval.high)})"


def advisory_block(evaluation: Evaluation, *, prefix: str) -> Block:
    """Return what is degraded, or that nothing is."""
    if not evaluation.advisories:
        return Sentences((Sentence("Nothing was substituted, clipped or made up."),))
    return Table(
        id=f"{prefix}advisory-table",
        caption="Advisories",
        columns=(
            Column("severity"),
            Column("advisory"),
            Column("what it says", "text"),
            Column("count", "number"),
        ),
        rows=tuple(
            Row(
                (
                    Cell(advisory.severity, outcome="failure" if advisory.severity == "caution" else None),
                    Cell(advisory.code),
                    Cell(advisory.message),
                    Cell(f"{advisory.count:,}", advisory.count),
                )
            )
            for advisory in evaluation.advisories
        ),
    )


def video_blocks(runs: Sequence[Opened], reel: Reel, entries: Sequence[Entry]) -> list[Block]:
    """Return the videos, or that there are none, and where they are."""
    count = sum(len(videos) for known in runs for videos in known.footage.videos.values())
    steps = sum(len(known.footage.steps) for known in runs)
    said = []
    if not count:
        said.append(Sentence("No episode was filmed; `rlmesh eval --record video` does so.", "note"))
    elif not reel.is_embedded:
        said.append(
            Sentence(
                f"{counted(count, 'video')} of {reel.bytes / 2**20:.0f} MiB together are linked, not part of this "
                f"page (up to {EMBEDDED // 2**20} MiB would be): keep the page beside them.",
                "note",
            )
        )
    if count > len(reel.clips):
        hidden = counted(count - len(reel.clips), "more video")
        said.append(
            Sentence(
                f"There {'is' if hidden.startswith('1 ') else 'are'} {hidden} of episodes that are not listed.",
                "note",
            )
        )
    if steps:
        said.append(Sentence(f"Steps of {counted(steps, 'episode')} are linked from their details.", "note"))
    blocks: list[Block] = [Gallery(tuple(reel.clips))] if reel.clips else []
    return [*blocks, Sentences(tuple(said))] if said else blocks
