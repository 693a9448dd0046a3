"""Corrections: what becomes of an action's numbers when their range is mapped, in the order that v1 fixes.

They are carried out, explained and looked ahead at by what is said here. Axes: M rows, D numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from .plans import Segment


class Correction(msgspec.Struct, frozen=True):
    """One of them.

    whose: `model` or `environment`. field: `scale`, `invert` or `threshold`. value: a factor; of a threshold, what
        is taken off.
    """

    whose: str
    field: str
    value: float


def corrections(segment: Segment) -> tuple[Correction, ...]:
    """Return the corrections of a segment in order; the threshold of a `select` is none, it chooses a value."""
    found = []
    for whose, scale, invert, threshold in (
        ("model", segment.model_scale, segment.model_invert, segment.model_threshold),
        ("environment", segment.scale, segment.invert, segment.threshold),
    ):
        if scale is not None:
            found.append(Correction(whose, "scale", scale))
        if invert:
            found.append(Correction(whose, "invert", -1.0))
        if threshold is not None and not segment.select:
            found.append(Correction(whose, "threshold", threshold))
    return tuple(found)


def corrected(
    numbers: npt.NDArray[Any], steps: Sequence[Correction], *, is_binary: bool
) -> npt.NDArray[np.float64]:
    """Return (M, D) numbers after their corrections, snapped to -1 and +1 if they are binary."""
    if is_binary:
        numbers = numbers + 0.0  # of a negative zero it makes a positive one
    for step in steps:
        numbers = numbers - step.value if step.field == "threshold" else numbers * step.value
    # A tie is what the sign of its zero says: it stands on the positive side, and an inversion turns that.
    return np.copysign(1.0, numbers) if is_binary else numbers
