"""A summary in words: one (name, text) row for each thing that a reader of the number should see."""

from __future__ import annotations

from .evaluation import Evaluation
from .judgement.intervals import Interval
from .ledgers import ChunkLedger, Meaning, StartLedger
from .stats import Spread, Summary
from .wording import level, number

_AN = {"lane": "a lane", "episode": "an episode"}

Row = tuple[str, str]


def summary_rows(evaluation: Evaluation) -> list[Row]:
    """Return the rows of a run's summary."""
    summary = evaluation.summary
    rows = [("episodes", _episodes_text(evaluation)), *_success_rows(summary)]
    rows += [
        ("return", spread_text(summary.returns)),
        ("length", spread_text(summary.lengths)),
        ("ends", ", ".join(f"{end} {count}" for end, count in summary.ends.items()) or "none"),
    ]
    for name, spread in summary.metrics.items():
        rows.append((name, spread_text(spread, measured=summary.episodes - summary.errors)))
    rows.append(("starts", starts_text(summary.starts)))
    tally = evaluation.tally
    shared = "" if evaluation.instances == "shared" else f"; one instance {_AN[evaluation.instances]}"
    # Of a run that was killed, or played in several sittings, there is no count of them.
    calls = f", in {tally.calls:,} calls" if tally.calls and evaluation.sittings == 1 else ""
    rows.append(("policy", f"asked {summary.policy_calls:,} times for an episode{calls}{shared}"))
    chunks = chunks_text(summary.chunks)
    if chunks:
        rows.append(("chunks", chunks))
    if summary.clipped_actions:
        rows.append(("clipped", f"{summary.clipped_actions:,} actions in {summary.clipped_episodes} episodes"))
    return rows


def _episodes_text(evaluation: Evaluation) -> str:
    summary = evaluation.summary
    text = f"{summary.episodes} of {summary.planned}"
    if evaluation.in_flight:
        text += f" ({evaluation.in_flight} broken off)"
    if evaluation.discarded:
        text += f" ({evaluation.discarded} played beyond the end, not counted)"
    if summary.retried:
        text += f", {summary.retried} played again after the environment failed"
    return text


def _success_rows(summary: Summary) -> list[Row]:
    success = summary.success
    rows = [("success", success_text(summary))]
    if success.rate is None:
        return rows
    if success.worst is not None and success.best is not None and success.worst != success.best:
        unsettled = success.errored + success.unknown
        bounds = f"{success.worst * 100:.1f} to {success.best * 100:.1f} %"
        rows.append(("", f"{bounds}, whatever the {unsettled} that errored or did not report would have been"))
    rows.append(("success rule", success.rule))
    if any(meaning.known for meaning in summary.meanings if meaning.name != "return"):
        rows.append(("by meaning", ", ".join(map(_meaning_text, summary.meanings))))
    return rows


def _meaning_text(meaning: Meaning) -> str:
    name = {"at_reset": "at reset", "final": "last value", "any": "any step"}.get(meaning.name, meaning.name)
    text = f"{name} {meaning.successes}/{meaning.known}" if meaning.known else f"{name} unmeasured"
    return f"[{text}]" if meaning.is_declared else text


def success_text(summary: Summary) -> str:
    """Return the success in words with its counts, such as `2 of 4 (50.0 %), unknown: 2`."""
    success = summary.success
    if success.rate is None:
        errored = f", errored: {success.errored}" if success.errored else ""
        return f"n/a ({success.why_unknown}){errored}"
    known = success.successes + success.failures
    text = f"{success.successes} of {known + success.errored} ({success.rate * 100:.1f} %)"
    if success.errored and success.rate_completed is not None:
        text += f"; {success.successes} of {known} completed ({success.rate_completed * 100:.1f} %)"
        text += f", errored: {success.errored}"
    if success.unknown:
        text += f", unknown: {success.unknown}"
    return text + _rate_interval_text(success.interval)


def _rate_interval_text(interval: Interval | None) -> str:
    if interval is None:
        return ""
    bounds = f"{interval.low * 100:.1f} to {interval.high * 100:.1f} %"
    return f", {level(interval)} interval {bounds} ({interval.method})"


def spread_text(spread: Spread | None, *, measured: int | None = None) -> str:
    """Return a number over episodes in words; measured: how many episodes could have reported it."""
    if spread is None:
        return "n/a (not measured)"
    std = "" if spread.std is None else f", std {number(spread.std)}"
    interval = spread.told_interval
    bounds = ""
    if interval is not None:
        bounds = f" ({level(interval)} interval {number(interval.low)} to {number(interval.high)})"
    text = f"mean {number(spread.mean)}{bounds}{std}, median {number(spread.median)}, iqm {number(spread.iqm)}"
    text += f", min {number(spread.min)}, max {number(spread.max)}"
    if measured is not None and spread.n < measured:
        text += f" (reported by {spread.n} of {measured})"
    return text


def starts_text(starts: StartLedger) -> str:
    """Return from how many different starts a run was played."""
    text = f"{starts.distinct} distinct of {starts.known}"
    return f"{text}; the others repeat them: intervals count {starts.effective}" if starts.are_repeats else text


def chunks_text(chunks: ChunkLedger) -> str:
    """Return what became of planned actions; empty where every one was executed at once."""
    if chunks.predicted is None or chunks.dropped_by_replanning is None:
        return ""
    if not chunks.dropped_at_end and not chunks.dropped_by_replanning:
        return ""
    return (
        f"{chunks.predicted:,} actions predicted, {chunks.executed:,} executed, "
        f"{chunks.dropped_at_end:,} dropped at an end, {chunks.dropped_by_replanning:,} by replanning"
    )
