"""Plots of one run: returns, lengths, ends, actuators, times."""

from __future__ import annotations

from typing import Any

from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.wording import counted, number

from .courses import by_seed
from .facts import Block, Figure, Figures, Sentence, Sentences
from .figures import amounts
from .listing import EPISODES
from .opened import Opened
from .spreads import histogram
from .strips import strip


def plot_blocks(known: Opened) -> list[Block]:
    """Return the plots of a run, and a sentence where one cannot be drawn."""
    evaluation, rows = known.evaluation, known.evaluation.rows
    limit = (known.run.record.get("limits") or {}).get("steps")
    longest = max(row.length for row in rows)
    returns = evaluation.summary.returns
    drawn: list[Figure | None] = [
        histogram(
            rows,
            [row.return_ for row in rows],
            id="returns",
            title="Return distribution",
            unit="return (sum of rewards)",
            mark="return",
            listed=EPISODES,
            lines=[] if returns is None else [(returns.mean, f"mean {number(returns.mean)}")],
        ),
        strip(rows, prefix="e", listed=EPISODES),
        by_seed(rows, prefix="e", listed=EPISODES),
        histogram(
            rows,
            [float(row.length) for row in rows],
            id="lengths",
            title="Episode lengths",
            unit="length (steps)",
            mark="length",
            listed=EPISODES,
            lines=[(limit, f"limit {number(float(limit))}")] if limit and limit <= 2 * longest else [],
        ),
        _ends(evaluation),
        _actuators(known.run.record),
        _times(known),
    ]
    found: list[Block] = [Figures(tuple(figure for figure in drawn if figure is not None))]
    missing = []
    if drawn[-1] is None:
        missing.append(Sentence("Times are not known: the run has no summary.json.", "note"))
    if evaluation.summary.success.rate is None:
        why = evaluation.summary.success.why_unknown
        missing.append(Sentence(f"There is no strip of success: {why}.", "note"))
    return [*found, Sentences(tuple(missing))] if missing else found


def _ends(evaluation: Evaluation) -> Figure:
    count = evaluation.summary.episodes
    return amounts(
        [
            (end.replace("_", " "), known, f"{known:,} ({known / count * 100:.0f} %)")
            for end, known in evaluation.summary.ends.items()
        ],
        id="ends",
        title="Ends",
        caption="What ended the episodes.",
        unit="episodes",
        names="end",
    )


def _actuators(record: dict[str, Any]) -> Figure | None:
    parts = []
    for use in record.get("actuators") or ():
        values = use.get("values") or 0
        if values:
            at_end, clipped = use.get("saturated", 0) / values * 100, use.get("clipped", 0) / values * 100
            parts.append((str(use.get("role", "")), at_end, f"{at_end:.1f} %, {clipped:.1f} % clipped"))
    if not parts:
        return None
    return amounts(
        parts,
        id="actuators",
        title="Action saturation",
        caption="Share of the numbers in the policy's answers at an end of their range, clipped ones too.",
        unit="at an end of the range (%)",
        names="role",
    )


def _times(known: Opened) -> Figure | None:
    evaluation = known.evaluation
    if evaluation.seconds <= 0:
        return None
    ledger = evaluation.times
    whole = ledger.total * ledger.workers
    parts = {
        "env step": ledger.env_step,
        "env reset": ledger.env_reset,
        "policy": ledger.policy,
        "adapter": ledger.adapter,
        "recording": ledger.recording,
        "harness": ledger.harness,
    }
    of = "the last sitting" if evaluation.sittings > 1 else "the run"
    rate = "" if ledger.steps_per_second is None else f", {ledger.steps_per_second:,.0f} steps/s"
    caption = f"{ledger.total:.2f} s of {of}: {counted(ledger.steps, 'step')}{rate}."
    if ledger.workers > 1:
        caption += f" Times of {ledger.workers} workers are added up."
    return amounts(
        [(name, seconds, f"{seconds:.3g} s ({seconds / whole * 100:.0f} %)") for name, seconds in parts.items()],
        id="times",
        title="Time ledger",
        caption=f"{caption} {_as_sentence(ledger.advice)}".strip(),
        unit="time (s)",
        names="part",
    )


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else ""
