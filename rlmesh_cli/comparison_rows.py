"""A comparison in words: one (name, value) row for each number of a metric that a reader should see."""

from __future__ import annotations

from .claims import difference_text, points_text
from .comparing import Comparison
from .margins import SUCCESS
from .metric_judging import POWER, MetricComparison
from .wording import level, number


def words(verdict: str) -> str:
    """Return a verdict as it is read."""
    return verdict.replace("_", " ")


def metric_rows(metric: MetricComparison, comparison: Comparison) -> list[tuple[str, str]]:
    """Return (name, value) of what is shown of a metric; an empty value is not measured."""
    interval = metric.interval
    confidence = level(interval) if interval is not None else f"{100 - 200 * comparison.judging.alpha:g} %"
    chance = f"{POWER * 100:g} %"
    bounds = metric.bounds
    left_out = {"errored": metric.errored, "not reported or not finite": metric.unreported}
    return [
        ("pairs", _pairs(metric)),
        ("left out", ", ".join(f"{count} {why}" for why, count in left_out.items() if count)),
        ("BASE", _value(metric, metric.base)),
        ("NEW", _value(metric, metric.new)),
        ("difference", _difference(metric, metric.difference)),
        (
            f"{confidence} interval",
            "" if interval is None else f"{_plain(metric, interval.low)} to {_difference(metric, interval.high)}",
        ),
        (
            "bounds, all pairs",
            "" if bounds is None else f"{_plain(metric, bounds[0])} to {_difference(metric, bounds[1])}",
        ),
        ("p, two-sided", f"{metric.p:.3g}"),
        ("p that NEW is worse", f"{metric.p_worse:.3g}"),
        (
            f"the same, for {len(comparison.judged)} metrics",
            ""
            if metric.p_worse_adjusted is None or len(comparison.judged) == 1
            else f"{metric.p_worse_adjusted:.3g}",
        ),
        ("margin", "" if metric.margin is None else _amount(metric, metric.margin)),
        (f"drop found in {chance}", _found_drop(metric, comparison.judging.alpha)),
        (f"pairs for the margin, {chance}", "" if metric.pairs_needed is None else f"{metric.pairs_needed:,}"),
        ("verdict", "not judged" if metric.verdict is None else words(metric.verdict)),
    ]


def _pairs(metric: MetricComparison) -> str:
    is_fewer = metric.effective < metric.pairs
    return f"{metric.pairs:,}" + (f", tests count {metric.effective:,}" if is_fewer else "")


def _found_drop(metric: MetricComparison, alpha: float) -> str:
    if metric.detectable is not None:
        return _amount(metric, metric.detectable)
    return "none" if 0.5**metric.effective > alpha else ""


def _value(metric: MetricComparison, value: float) -> str:
    return f"{value * 100:.1f} %" if metric.metric == SUCCESS else number(value)


def _plain(metric: MetricComparison, value: float) -> str:
    return difference_text(metric, value)


def _difference(metric: MetricComparison, value: float) -> str:
    return difference_text(metric, value) + (" points" if metric.metric == SUCCESS else "")


def _amount(metric: MetricComparison, value: float) -> str:
    return points_text(value) if metric.metric == SUCCESS else number(value)
