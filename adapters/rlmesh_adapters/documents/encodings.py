"""Encodings of rotations, as documents name them; and the user's own, built on one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from rlmesh_adapters.rotations import WIDTHS

from .checks import accept_set, one_of, text
from .schema import DocumentError, Record, entry


def _arm(value: Any) -> Any:
    return value if callable(value) else text(value)


@dataclasses.dataclass(frozen=True)
class CustomEncoding(Record):
    """A rotation encoding of the user's own: what it is, is its base's.

    base: name of the encoding it is built on. from_base, to_base: functions from one flat array to another, of
    the base's width; as text, they are only named and never run. name: for messages.
    """

    what: ClassVar[str] = "a custom encoding"

    base: str = entry(one_of(*WIDTHS))
    from_base: str | Callable[[Any], Any] | None = entry(_arm, default=None)
    to_base: str | Callable[[Any], Any] | None = entry(_arm, default=None)
    name: str = entry(text, default="custom")

    def check(self) -> None:
        """Refuse an encoding that leads nowhere."""
        if self.from_base is None and self.to_base is None:
            raise DocumentError("a custom encoding needs `from_base` or `to_base`", mend="give one of the two")


def accepted(value: Any) -> tuple[str, ...]:
    """Check the encodings of an environment's leaf."""
    return accept_set(value)


def accepted_or_custom(value: Any) -> tuple[str, ...] | CustomEncoding:
    """Check the encodings of a model's state."""
    return CustomEncoding.parse(value) if _is_custom(value) else accept_set(value)


def single_or_custom(value: Any) -> str | CustomEncoding:
    """Check the one encoding of an actuator."""
    if _is_custom(value):
        return CustomEncoding.parse(value)
    if isinstance(value, (list, tuple)):
        raise DocumentError("an actuator has one encoding, got a list", mend="name the one that is meant")
    return str(one_of(*WIDTHS)(value))


def _is_custom(value: Any) -> bool:
    return isinstance(value, (dict, CustomEncoding))


def first_known(names: tuple[str, ...]) -> str:
    """Return the first name that is known, or an empty text."""
    return next((name for name in names if name in WIDTHS), "")


def written(names: Any) -> Any:
    """Return an accept-set in canonical form: one name stands alone."""
    return names[0] if len(names) == 1 else list(names)
