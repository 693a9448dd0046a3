"""Run claims: what may be said of one run in a few sentences, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.judgement.intervals import Interval
from rlmesh_cli.stats import Spread
from rlmesh_cli.wording import counted, level, number

from .facts import Meter, Sentence

_STATES = {"met": "good", "missed": "bad", "undecided": "caution"}


def run_claim(run: Evaluation) -> str:
    """Return what a run shows, with intervals and counts."""
    summary, success = run.summary, run.summary.success
    of = "" if summary.episodes == summary.planned else f" of {summary.planned:,} planned"
    over = f"{counted(summary.episodes, 'episode')}{of}"
    parts = []
    if success.rate is None and success.unknown:
        parts.append(f"Success was not reported in {over}")
    elif success.rate is None:
        parts.append(f"Success is not known, as none of {over} was finished")
    else:
        known = success.successes + success.failures + success.errored
        text = f"{success.rate * 100:.1f} % of {counted(known, 'episode')} succeeded"
        text += f" ({success.successes:,} of {known:,}"
        parts.append(f"{text}{_interval(success.interval, 100, ' %')})")
        if known != summary.episodes or of:
            parts.append(
                f"{over} were played, {success.unknown:,} of them did not report success"
                if success.unknown
                else f"{over} were played"
            )
    returns = summary.returns
    if returns is not None:
        parts.append(f"mean return {number(returns.mean)}{_bracketed(returns)}")
    if summary.errors:
        counts = "counted as failed" if success.rate is not None else "without a return"
        parts.append(f"{counted(summary.errors, 'episode')} errored, {counts}")
    return "; ".join(parts) + "."


def _bracketed(returns: Spread) -> str:
    interval = returns.told_interval
    if interval is None:
        return f" over {counted(returns.n, 'finished episode')}, without an interval"
    return f" ({level(interval)} interval {number(interval.low)} to {number(interval.high)})"


def _interval(interval: Interval | None, scale: float, unit: str) -> str:
    if interval is None:
        return ""
    return f"; {level(interval)} interval {interval.low * scale:.1f} to {interval.high * scale:.1f}{unit}"


def run_meters(run: Evaluation) -> tuple[Meter, ...]:
    """Return success rate and mean return on their axes, with the bars that gates set."""
    summary = run.summary
    found = []
    success = summary.success
    if success.rate is not None:
        interval = success.interval
        text = "" if interval is None else f"{level(interval)} interval, {interval.method}"
        found.append(
            Meter(
                name="Success rate",
                value=f"{success.rate * 100:.1f} %",
                text=text or "no interval",
                start=0.0,
                end=1.0,
                ends=("0 %", "100 %"),
                point=success.rate,
                low=None if interval is None else interval.low,
                high=None if interval is None else interval.high,
                marks=tuple(_bars(run, "success_rate")),
            )
        )
    returns = summary.returns
    if returns is not None and all(map(math.isfinite, (returns.mean, returns.min, returns.max))):
        interval = returns.told_interval
        text = f"no interval{': all are alike' if returns.is_alike else ''}"
        if interval is not None:
            text = f"{level(interval)} interval, {interval.method}"
        found.append(
            Meter(
                name="Mean return",
                value=number(returns.mean),
                text=text if interval is None else f"{text}; axis from the least to the greatest",
                start=returns.min,
                end=returns.max,
                ends=(number(returns.min), number(returns.max)),
                point=returns.mean,
                low=None if interval is None else interval.low,
                high=None if interval is None else interval.high,
                marks=tuple(
                    (bound, name)
                    for bound, name in _bars(run, "mean_return")
                    if returns.min <= bound <= returns.max
                ),
            )
        )
    return tuple(found)


def _bars(run: Evaluation, metric: str) -> Iterable[tuple[float, str]]:
    for verdict in run.verdicts:
        if verdict.metric == metric:
            yield float(verdict.gate.rpartition(" ")[2]), f"gate {verdict.op} {verdict.gate.rpartition(' ')[2]}"


def run_verdict(run: Evaluation, bars: Iterable[tuple[str, str]]) -> Sentence | None:
    """Return what the bars come to; None where none was stated. bars: (name, state) of each."""
    states = [state for _, state in bars]
    if run.status in ("interrupted", "stopped", "running", "killed", "failed"):
        return Sentence(run.status, "caution")
    if not states:
        return None
    if "missed" in states:
        count = states.count("missed")
        return Sentence(f"{count} of {len(states)} bars missed" if len(states) > 1 else "bar missed", "bad")
    if "undecided" in states:
        return Sentence("not decided", "caution")
    return Sentence("all bars met" if len(states) > 1 else "bar met", "good")


def bar_sentence(name: str, state: str, text: str) -> Sentence:
    """Return one bar and what came of it."""
    return Sentence(f"{state}: {text}", _STATES[state], name)  # type: ignore[arg-type]
