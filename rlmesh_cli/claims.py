"""Claims: the one sentence that a comparison allows, what puts it in doubt, and both for other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .comparing import Comparison
from .distinctions import distinction_records
from .exits import Exit
from .judgement.intervals import Interval
from .margins import RETURN, SUCCESS
from .metric_judging import POWER, MetricComparison
from .repeats import effective_count
from .run_lists import policy_name
from .run_reader import StoredRun
from .store import state_of
from .wording import counted, exact, level, listed, number, signed

#: What a verdict means to a script.
CODES = {"not_worse": Exit.DONE, "worse": Exit.MISSED, "inconclusive": Exit.INCONCLUSIVE}
#: Below so many pairs the interval of a mean is too short; see bootstrap.bca.
FEW_PAIRS = 20


def claim(comparison: Comparison) -> str:
    """Return what may be claimed, and never more."""
    judged, alpha = comparison.judged, exact(comparison.judging.alpha)
    is_same = comparison.is_identical and all(metric.difference == 0 for metric in judged)
    if is_same and comparison.verdict == "not_worse":
        count = len(comparison.pairs.pairs)
        pairs = f"all {counted(count, 'pair')}" if count > 1 else "the only pair"
        text = f"NEW is not worse than BASE: in {pairs} it took the same actions and was paid the same rewards"
        return text + _restriction(comparison)
    facts = listed([_fact(metric) for metric in judged])
    if comparison.verdict == "not_worse":
        bars = listed([_amount(metric, metric.margin or 0.0) for metric in judged])
        lead = f"NEW is not worse than BASE by {bars} or more at alpha {alpha}"
    elif comparison.verdict == "worse":
        lead = f"NEW is worse than BASE at alpha {alpha}"
        if len(judged) > 1:
            lead += f" in {listed([metric.metric for metric in judged if metric.verdict == 'worse'])}"
    else:
        lead = f"NEW is not shown to be worse or not worse than BASE at alpha {alpha}"
    return f"{lead}: {facts}{_outlook(judged)}{_restriction(comparison)}"


def _fact(metric: MetricComparison) -> str:
    text = f"the difference of {metric.metric} is {_signed_amount(metric)}"
    if metric.interval is not None:
        text += f" ({interval_text(metric, metric.interval)})"
    left_out = metric.errored + metric.unreported
    text += f" over {counted(metric.pairs, 'pair')}"
    return f"{text}, {left_out} left out" if left_out else text


def _outlook(judged: Sequence[MetricComparison]) -> str:
    """Return how many pairs would settle what is not settled."""
    open_ = [metric for metric in judged if metric.verdict == "inconclusive" and metric.pairs_needed]
    parts = [
        f"about {metric.pairs_needed:,} pairs would settle a margin of {_amount(metric, metric.margin)}"
        for metric in open_
        if metric.pairs_needed is not None and metric.pairs_needed > metric.pairs and metric.margin is not None
    ]
    return f"; if they do not differ, {listed(parts)}" if parts else ""


def _restriction(comparison: Comparison) -> str:
    if not comparison.allowed:
        return ""
    return f"; the runs differ in {listed([difference.field for difference in comparison.allowed])} too"


def _amount(metric: MetricComparison, value: float) -> str:
    if metric.metric == SUCCESS:
        return points_text(value)
    return f"{number(value)} of {metric.metric}"


def points_text(rate: float) -> str:
    """Return a difference of rates without its sign, such as `5 points`."""
    points = f"{rate * 100:.1f}".removesuffix(".0")
    return f"{points} point{'' if points == '1' else 's'}"


def _signed_amount(metric: MetricComparison) -> str:
    return difference_text(metric, metric.difference) + (" points" if metric.metric == SUCCESS else "")


def difference_text(metric: MetricComparison, value: float) -> str:
    """Return a difference with its sign, that of rates in points."""
    if metric.metric != SUCCESS:
        return signed(value)
    return f"{value * 100 + 0.0:+.1f}" if round(value * 100, 1) else "0.0"


def interval_text(metric: MetricComparison, interval: Interval) -> str:
    """Return an interval with its level, such as `90 % interval -9.1 to +5.2`."""
    low, high = (difference_text(metric, bound) for bound in (interval.low, interval.high))
    return f"{level(interval)} interval {low} to {high}"


def notes_on_comparison(comparison: Comparison) -> list[str]:
    """Return what puts a comparison in doubt, a sentence each."""
    notes = []
    for side, run in (("BASE", comparison.base), ("NEW", comparison.new)):
        if run.record.get("stopped_at") is not None:
            rule = run.record.get("stopping_rule")
            by = f" by `{rule}`" if rule else ""
            notes.append(f"{side} stopped{by} after {len(run.rows)} episodes: the level holds for a fixed number")
        elif len(run.rows) < run.planned:
            notes.append(
                f"{side} ({state_of(run.record, run.folder)}) has {len(run.rows)} of its {run.planned} episodes"
            )
        if run.is_torn:
            notes.append(f"the last line of {side}'s episodes.jsonl is half written and left out")
    if comparison.is_sequential:
        notes.append("judged by a rule that may stop early: the interval allows for that, the p-values do not")
    return [*notes, *_notes_on_pairs(comparison), *_notes_on_metrics(comparison)]


def _notes_on_pairs(comparison: Comparison) -> list[str]:
    pairs, notes = comparison.pairs, []
    count = len(pairs.pairs)
    if pairs.base_only or pairs.new_only:
        alone = f"{len(pairs.base_only)} of BASE and {len(pairs.new_only)} of NEW"
        notes.append(f"the seeds overlap in part: {alone} have no partner and do not count")
    if not pairs.is_by_seed:
        notes.append("paired in order, for seeds could not be set: a pair has nothing in common but its place")
    if pairs.repeats:
        tested = effective_count([pair.start for pair in pairs.pairs])
        notes.append(
            f"{pairs.repeats} of {counted(count, 'pair')} repeat others step by step and say nothing new: "
            f"tests count {tested}"
        )
    errors = Counter((pair.base.is_error, pair.new.is_error) for pair in pairs.pairs)
    if errored := errors[False, True]:
        finished = f"{counted(errored, 'pair')} that BASE finished"
        notes.append(f"NEW errored in {finished}; nothing shows it to be as good there")
    if errored := errors[True, False]:
        notes.append(f"BASE errored in {counted(errored, 'pair')} that NEW finished; they do not count")
    if errored := errors[True, True]:
        these = "this one" if errored == 1 else "these"
        notes.append(f"BASE and NEW both errored in {counted(errored, 'pair')}: nothing is known of {these}")
    # What has no start errored in its reset, which is said already.
    hashes = [(pair.base.start_hash, pair.new.start_hash) for pair in pairs.pairs]
    known = [(base, new) for base, new in hashes if base is not None and new is not None]
    moved = sum(base != new for base, new in known)
    if pairs.is_by_seed and moved:
        notes.append(f"{moved} of {count} pairs start differently in BASE and NEW, though their seed is the same")
    starts = len({base for base, _ in known})
    if starts < len(known) and not pairs.repeats:
        notes.append(
            f"{len(known)} pairs have only {counted(starts, 'different start')}: they say less than {len(known)}"
        )
    return notes


def _notes_on_metrics(comparison: Comparison) -> list[str]:
    notes = []
    means = [metric for metric in comparison.judged if metric.metric != SUCCESS]
    if any(metric.pairs < FEW_PAIRS for metric in means):
        notes.append(f"below {FEW_PAIRS} pairs the interval of a mean holds the true one less often than it says")
    if any(metric.metric != RETURN for metric in means):
        notes.append("of info metrics higher is taken to be better")
    return notes


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Return what `compare --json` prints."""
    pairs = comparison.pairs
    return {
        "schema": "rlmesh.comparison.v1",
        "claim": {
            "verdict": comparison.verdict,
            "metrics": [metric.metric for metric in comparison.judged],
            "alpha": comparison.judging.alpha,
            "pairs": len(pairs.pairs),
            "sentence": claim(comparison),
        },
        "base": _side(comparison.base),
        "new": _side(comparison.new),
        "power": POWER,
        "pairs": len(pairs.pairs),
        "paired_by_seed": pairs.is_by_seed,
        "identical": comparison.is_identical,
        "repeats": pairs.repeats,
        "base_only": pairs.base_only,
        "new_only": pairs.new_only,
        "allowed": msgspec.to_builtins(comparison.allowed),
        "differ_in": distinction_records(comparison.distinctions),
        "notes": notes_on_comparison(comparison),
        "metrics": msgspec.to_builtins(comparison.metrics),
        "exit_code": int(CODES[comparison.verdict]),
    }


def undecided_record(base: StoredRun, error: HarnessError) -> dict[str, Any]:
    """Return what a run says of its baseline where the two cannot be held against one another."""
    claim_ = {"verdict": "inconclusive", "sentence": f"NEW cannot be held against BASE: {error.cause}"}
    return {"schema": "rlmesh.comparison.v1", "claim": claim_, "base": _side(base)}


def _side(run: StoredRun) -> dict[str, Any]:
    return {
        "run": str(run.folder),
        "policy": policy_name(run.record),
        "status": state_of(run.record, run.folder),
        "episodes": len(run.rows),
        "planned": run.planned,
        "errors": sum(row.is_error for row in run.rows),
    }
