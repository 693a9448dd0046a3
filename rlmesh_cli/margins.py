"""Margins: by how much a new run may be worse and still pass."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from rlmesh_adapters.errors import HarnessError

from .wording import percent

SUCCESS, RETURN = "success_rate", "mean_return"
#: What may be written for the two metrics that every run can have.
ALIASES = {"success": SUCCESS, "return": RETURN}


class MarginError(HarnessError):
    """A margin cannot be meant."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            cause, where="--margin", mend="write 5% or 0.05 for all metrics, or NAME=NUMBER such as return=10"
        )


class Margin(msgspec.Struct, frozen=True):
    """A bar: `value`, or that share of |BASE|; of the success rate a share is points, 0.05 five of them."""

    value: float
    is_share: bool


class Margins(msgspec.Struct, frozen=True):
    """The margin of each metric: its own, or else the general one."""

    general: Margin = Margin(0.05, True)
    own: dict[str, Margin] = {}

    def of(self, metric: str, base: float) -> float:
        """Return the margin of a metric in its own unit; base: what BASE has. 0 for a share of nothing."""
        margin = self.own.get(metric, self.general)
        return margin.value * abs(base) if margin.is_share and metric != SUCCESS else margin.value


def full_name(name: str) -> str:
    """Return the name of a metric for what may be written in its place."""
    return ALIASES.get(name, name)


def parse_margins(texts: Sequence[str]) -> Margins:
    """Read what `--margin` was given.

    Raises MarginError for what is no number, not above 0, or said twice.
    """
    general: Margin | None = None
    own: dict[str, Margin] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        metric = full_name(name.strip())
        if (metric in own) if equals else general is not None:
            raise MarginError(f"the margin{f' of {metric}' if equals else ''} is given twice: {', '.join(texts)}")
        if equals:
            own[metric] = _margin(text, number, is_general=False, is_rate=metric == SUCCESS)
        else:
            general = _margin(text, number, is_general=True, is_rate=True)
    return Margins(general, own) if general is not None else Margins(own=own)


def _margin(text: str, number: str, *, is_general: bool, is_rate: bool) -> Margin:
    is_percent = number.strip().endswith("%")
    try:
        value = percent(number.strip()[:-1]) if is_percent else float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise MarginError(f"`{text}` is not a margin")
    if value <= 0:
        raise MarginError(f"a margin of {text} leaves no room: it has to be above 0")
    if is_rate and value >= 1:
        raise MarginError(f"a margin of {text} is {value * 100:g} %, which every run would pass")
    return Margin(value, is_percent or is_general)
