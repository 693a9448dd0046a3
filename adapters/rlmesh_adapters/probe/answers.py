"""Answers: what a policy gave for one row, and how two of them differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import leaves

#: Differences below this share of an output's scale are rounding: other kernels, other sums.
JITTER = 1e-5
#: What counts as scale where all outputs are zero.
_LEAST_SCALE = 1e-12


class Answer(msgspec.Struct, frozen=True):
    """What one row was given.

    numbers: all leaves in a row, float64. is_discrete: whether they are whole numbers, which are equal or not.
    failure: why there are none, empty if there are.
    """

    numbers: npt.NDArray[np.float64]
    is_discrete: bool
    failure: str = ""


def answer_of(actions: Any, row: int) -> Answer:
    """Return one row of a batch of actions as an answer."""
    parts = [np.asarray(leaf[row]) for leaf in leaves(actions)]
    flat = [part.astype(np.float64).ravel() for part in parts]
    return Answer(np.concatenate(flat), all(part.dtype.kind in "iub" for part in parts))


def scale_of(answers: Sequence[Answer]) -> float:
    """Return the largest number among some answers, as what differences are measured against."""
    largest = [float(np.abs(answer.numbers).max()) for answer in answers if answer.numbers.size]
    finite = [value for value in largest if np.isfinite(value)]
    return max(finite, default=0.0) or _LEAST_SCALE


def difference(one: Answer, other: Answer) -> float:
    """Return the largest difference of two answers; infinite where they cannot be compared."""
    if one.failure or other.failure or one.numbers.shape != other.numbers.shape:
        return float("inf") if (one.failure, one.numbers.shape) != (other.failure, other.numbers.shape) else 0.0
    if not one.numbers.size:
        return 0.0
    if one.numbers.tobytes() == other.numbers.tobytes():
        return 0.0
    gap = np.abs(one.numbers - other.numbers)
    # Of two NaN nothing can be said, so they differ.
    return float("inf") if np.isnan(gap).any() else float(gap.max())


def differ(one: Answer, other: Answer, scale: float) -> bool:
    """Tell whether two answers differ by more than rounding."""
    gap = difference(one, other)
    if one.is_discrete and other.is_discrete:
        return gap > 0
    return gap > JITTER * scale
