"""Gates: bars that a run must meet, such as `success_rate >= 0.9`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable

import msgspec

from rlmesh_adapters.errors import RouteError

from .stats import Summary
from .wording import exact

_GATE = re.compile(r"\s*([A-Za-z_][\w./-]*)\s*(>=|<=|==|!=|>|<|=)\s*(\S+)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
#: Metrics that every run has; any other name is an info key.
BUILT_IN = ("success_rate", "mean_return", "errors")


class Gate(msgspec.Struct, frozen=True):
    """One bar: `metric`, comparison `op`, `bound`."""

    metric: str
    op: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric} {self.op} {exact(self.bound)}"


class GateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a gate. value is None where the metric was not measured, which is never a pass."""

    gate: str
    metric: str
    op: str
    value: float | None
    passed: bool


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
    try:
        bound = float(number[:-1]) / 100 if number.endswith("%") else float(number)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise RouteError(
            f"`{number}` is not a number", where=f"gate `{text}`", mend="write a bound such as 0.9 or 90%"
        )
    return Gate(match[1], match[2], bound)


def info_metrics(gates: tuple[Gate, ...]) -> tuple[str, ...]:
    """Return the metrics of gates that have to be read from infos."""
    return tuple(gate.metric for gate in gates if gate.metric not in BUILT_IN)


def judge(gate: Gate, summary: Summary) -> GateVerdict:
    """Hold a run's summary against one bar; a metric that was not measured, or is not finite, misses it."""
    value = _measure(gate.metric, summary)
    passed = value is not None and math.isfinite(value) and _COMPARE[gate.op](value, gate.bound)
    return GateVerdict(gate=str(gate), metric=gate.metric, op=gate.op, value=value, passed=passed)


def _measure(metric: str, summary: Summary) -> float | None:
    if metric == "success_rate":
        return summary.success.rate
    if metric == "mean_return":
        return summary.returns.mean if summary.returns is not None else None
    if metric == "errors":
        return float(summary.errors)
    found = summary.metrics.get(metric)
    return found.mean if found is not None else None
