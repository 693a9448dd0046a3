"""Actions of a document: what the environment is driven by, and what a model puts out."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any, ClassVar

from rlmesh_adapters.plans import Ends

from .checks import count, ends, flag, nullable, number, one_of, pair, text
from .encodings import CustomEncoding, single_or_custom
from .schema import DocumentError, Record, entry
from .statistics import Statistics

#: All that a component without a role may have.
_OPAQUE = ("role", "dim", "fill", "extra")


@dataclasses.dataclass(frozen=True)
class Actuator(Record):
    """A run of numbers of a flat action.

    role: what it does; without one it is opaque: nobody drives it, and `fill` is sent. dim: how many numbers.
    encoding: of a rotation. range: (lo, hi) of its numbers, or of each. binary: snapped to -1 and +1.
    scale, invert, threshold: the number is multiplied, negated, and the threshold is taken off, in this order.
    clip: into the range (environment). fill: sent where no model drives it. optional: a model need
    not drive it (environment).

    Beyond v1: select: how a discrete action is read from the output: `argmax` of dim scores, `index`, or
    `threshold` of one number (model). mode: `absolute` or `delta`. reference: role of the state by which the one
    becomes the other (model). normalize: statistics by which the output was normalised (model). keep_sign: of a
    quaternion.
    """

    what: ClassVar[str] = "an actuator"
    is_open: ClassVar[bool] = True

    role: str | None = entry(nullable(text), default=None)
    dim: int = entry(count(1), default=1, always=True)
    encoding: str | CustomEncoding | None = entry(nullable(single_or_custom), default=None, always=True)
    range: Ends | None = entry(nullable(ends), default=None, always=True)
    binary: bool = entry(flag, default=False, always=True)
    scale: float | None = entry(nullable(number), default=None)
    threshold: float | None = entry(nullable(number), default=None)
    invert: bool = entry(flag, default=False)
    clip: bool = entry(flag, default=False)
    fill: float = entry(number, default=0.0)
    optional: bool = entry(flag, default=False)
    select: str | None = entry(nullable(one_of("argmax", "index", "threshold")), default=None)
    mode: str | None = entry(nullable(one_of("absolute", "delta")), default=None)
    reference: str | None = entry(nullable(text), default=None)
    normalize: Statistics | None = entry(nullable(Statistics.parse), default=None)
    keep_sign: bool = entry(flag, default=False)

    @classmethod
    def parse(cls, value: Any) -> Actuator:
        """Read one; its width must be given."""
        if isinstance(value, dict) and "dim" not in value:
            raise DocumentError("an actuator needs `dim`", mend="say how many numbers it has")
        return super().parse(value)

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.role is None:
            extra = [
                field.name
                for field in dataclasses.fields(self)
                if field.name not in _OPAQUE and getattr(self, field.name) != field.default
            ]
            if extra:
                raise DocumentError(
                    f"a role-less actuator has only `dim` and `fill`, got `{'`, `'.join(extra)}`",
                    mend="give it a role, or drop them",
                )
        elif self.fill and not self.optional:
            raise DocumentError(
                f'actuator "{self.role}" has a fill of {self.fill:g}, but is not optional',
                mend="set `optional: true`, or drop `fill`",
            )
        if isinstance(self.range, tuple) and isinstance(self.range[0], tuple) and len(self.range[0]) != self.dim:
            raise DocumentError(f"range has {len(self.range[0])} ends a side for {self.dim} dims", path=("range",))
        if self.range is not None and self.normalize is not None:
            raise DocumentError("range and normalize exclude one another", mend="keep one of the two")


def is_given(value: Any) -> bool:
    """Tell whether an optional field says something; 0 does."""
    return value is not None and value is not False


@dataclasses.dataclass(frozen=True, init=False)
class Action(Record):
    """A flat action, component by component.

    components: in order. clip: (lo, hi) of every number, on the environment's side.
    """

    what: ClassVar[str] = "an action"

    components: tuple[Actuator, ...] = entry(lambda value: actuators(value), always=True)
    clip: tuple[float, float] | None = entry(nullable(pair), default=None, always=True)

    def __init__(self, *components: Actuator, clip: Any = None, extra: Any = None) -> None:
        object.__setattr__(self, "components", components)
        object.__setattr__(self, "clip", clip)
        object.__setattr__(self, "extra", extra or {})
        self.__post_init__()

    @classmethod
    def build(cls, values: dict[str, Any], extra: dict[str, Any]) -> Action:
        """See Record."""
        return cls(*actuators_of(values["components"]), clip=values.get("clip"), extra=extra)

    def check(self) -> None:
        """Refuse a role that stands twice."""
        twice = [
            role for role, times in Counter(part.role for part in self.components).items() if role and times > 1
        ]
        if twice:
            raise DocumentError(f'action role "{twice[0]}" stands twice', path=("components",))


def actuators_of(value: Any) -> tuple[Any, ...]:
    """Return the components of an action as they were given."""
    if not isinstance(value, (list, tuple)):
        raise DocumentError("components must be a list", path=("components",))
    return tuple(value)


def actuators(value: Any) -> tuple[Actuator, ...]:
    """Check the components of an action."""
    checked = []
    for position, part in enumerate(actuators_of(value)):
        try:
            checked.append(Actuator.parse(part))
        except DocumentError as error:
            raise error.within(position) from None
    return tuple(checked)
