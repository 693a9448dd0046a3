"""Gates: bars that a run must meet, such as `success_rate >= 0.9`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence

import msgspec

from rlmesh_adapters.errors import RouteError
from rlmesh_envs.infos import SUCCESS_KEYS

from .judgement.intervals import Interval
from .stats import Summary
from .wording import exact, percent

_GATE = re.compile(r"\s*([A-Za-z_][\w./-]*)\s*(>=|<=|==|!=|>|<|=)\s*(\S+)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
SUCCESS_RATE = "success_rate"
#: Metrics that every run has; any other name is an info key.
BUILT_IN = (SUCCESS_RATE, "mean_return", "iqm_return", "errors", "cautions", "distinct_starts")
#: Metrics whose bound may be written with a `%`.
_RATES = (SUCCESS_RATE, *SUCCESS_KEYS)
#: Comparisons that a larger number helps to meet, and those that a smaller one does.
_UP, _DOWN = (">=", ">"), ("<=", "<")


class Gate(msgspec.Struct, frozen=True):
    """One bar: `metric`, comparison `op`, `bound`; is_percent: whether the bound was written with a `%`."""

    metric: str
    op: str
    bound: float
    is_percent: bool = False

    def __str__(self) -> str:
        return f"{self.metric} {self.op} {exact(self.bound)}"

    def holds(self, value: float) -> bool:
        """Tell whether a number meets the bar; what is not finite never does."""
        return math.isfinite(value) and _COMPARE[self.op](value, self.bound)


class GateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a gate.

    value: what was held against the bar; None where it was not measured, or has no interval: that never passes.
    point: the metric itself. held: which of the two, `value`, or the `lower` or `upper` end of its interval.
    is_open: whether the run ended before it was decided.
    """

    gate: str
    metric: str
    op: str
    value: float | None
    passed: bool
    point: float | None = None
    held: str = "value"
    is_open: bool = False


def left_open(verdicts: Sequence[GateVerdict], status: str) -> list[GateVerdict]:
    """Return what came of gates; of a run that was broken off, or still goes on, nothing is decided."""
    if status in ("finished", "stopped"):
        return list(verdicts)
    return [msgspec.structs.replace(verdict, passed=False, is_open=True) for verdict in verdicts]


def parse_gate(text: str) -> Gate:
    """Read a gate.

    Raises RouteError for text that is not `METRIC OP NUMBER` with one of >= <= == != > <.
    """
    match = _GATE.fullmatch(text)
    if match is None or match[2] == "=":
        raise RouteError(
            f"`{text}` is not a gate",
            where="gates",
            mend="write METRIC OP NUMBER, such as `success_rate >= 0.9` or `mean_return > 450`",
        )
    number = match[3]
    is_percent = number.endswith("%")
    try:
        bound = percent(number[:-1]) if is_percent else float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise RouteError(
            f"`{number}` is not a number", where=f"gate `{text}`", mend="write a bound such as 0.9 or 90%"
        )
    return Gate(match[1], match[2], bound, is_percent)


def info_metrics(gates: tuple[Gate, ...]) -> tuple[str, ...]:
    """Return the metrics of gates that have to be read from infos."""
    return tuple(gate.metric for gate in gates if gate.metric not in BUILT_IN)


def judge(gate: Gate, summary: Summary, *, cautions: int = 0, on: str = "value") -> GateVerdict:
    """Hold a run's summary against one bar; a metric that was not measured, or is not finite, misses it.

    cautions: how many advisories are cautions. on: `value`, or `lower` for the end of the interval that is worse.
    """
    value, interval = _measure(gate.metric, summary, cautions)
    point, held = value, "value"
    if on == "lower" and gate.metric not in _COUNTS and value is not None:
        held = "lower" if gate.op in _UP else "upper"
        # One episode has a mean and no interval: then nothing is shown.
        value = None if interval is None else interval.low if held == "lower" else interval.high
    passed = value is not None and gate.holds(value)
    return GateVerdict(
        gate=str(gate), metric=gate.metric, op=gate.op, value=value, passed=passed, point=point, held=held
    )


#: Metrics that are counted, and have no interval.
_COUNTS = ("errors", "cautions", "distinct_starts")


def check_bounds(gates: tuple[Gate, ...], on: str) -> None:
    """Raise RouteError for a gate that cannot be meant.

    It asks for a share of what is no rate, it cannot be held against an end of an interval, or no run can meet it.
    """
    for gate in gates:
        if gate.is_percent and gate.metric not in _RATES:
            raise RouteError(
                f"`{gate.metric} {gate.op} {exact(_percent(gate))}%` would be {gate}: only a rate is a share of 1",
                where="gates",
                mend=_percent_mend(gate),
            )
        if gate.metric == SUCCESS_RATE and not _is_met_by_a_rate(gate):
            share = f"; {exact(gate.bound)} % is {exact(gate.bound / 100)}" if 1 < gate.bound <= 100 else ""
            raise RouteError(
                f"no run can meet `{gate}`: a rate is from 0 to 1",
                where="gates",
                mend=f"write a bound from 0 to 1{share}",
            )
        if on == "lower" and gate.op not in (*_UP, *_DOWN) and gate.metric not in _COUNTS:
            raise RouteError(
                f"`{gate}` asks for one value, and an interval has two ends",
                where="gate_on: lower",
                mend="write it with >=, >, <= or <, or drop --gate-on",
            )


def _is_met_by_a_rate(gate: Gate) -> bool:
    # What neither end meets, no number between them does, unless it is the bound itself.
    return gate.holds(0.0) or gate.holds(1.0) or (gate.op == "==" and 0 < gate.bound < 1)


def _percent(gate: Gate) -> float:
    return round(gate.bound * 100, 9)


def _percent_mend(gate: Gate) -> str:
    """Return what to write in place of a `%` that is no share of 1."""
    if gate.metric == "mean_return":
        return (
            "write the return itself, such as 450; for a share of an earlier run's: "
            "--baseline RUN --margin return=10%"
        )
    if gate.metric in BUILT_IN:
        return "write the number itself, without %"
    return f"write `{gate}` if {gate.metric} is from 0 to 1, else the number itself, without %"


def _measure(metric: str, summary: Summary, cautions: int) -> tuple[float | None, Interval | None]:
    """Return a metric, None if it was not measured, and its interval."""
    returns = summary.returns
    if metric == SUCCESS_RATE:
        return summary.success.rate, summary.success.interval
    if metric in _COUNTS:
        counts = {"errors": summary.errors, "cautions": cautions, "distinct_starts": summary.starts.distinct}
        return float(counts[metric]), None
    if metric == "iqm_return":
        return (None, None) if returns is None else (returns.iqm, returns.iqm_interval)
    found = returns if metric == "mean_return" else summary.metrics.get(metric)
    return (None, None) if found is None else (found.mean, found.interval)
