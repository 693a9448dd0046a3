"""Prediction: what a call gave for its rows, and how the parts of several calls become one.

Axes: M asking rows, H actions of a chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from .batches import Batch, map_leaves, row_of, stack_rows
from .chunks import chunk_length
from .errors import Failure


class Prediction(msgspec.Struct, gc=False):
    """Checked actions for M rows.

    actions: (M, H, ...) from a chunk corner, (M, ...) from the others, in the action space's dtypes; undefined
        in the rows of failures, None if all failed.
    lengths: of a chunk corner, actions planned for each row where they differ or fall short of the horizon.
    clipped: (M, H) or (M,), which actions were clipped into their Box; None if none was.
    failures: row -> why it has no action.
    planned: actions in the policy's own chunk for the first row, before the horizon cut it; 1 if un-chunked.
    planned_each: the same for every row, where rows differ.
    seconds: spent inside the policy's own code.
    was_repeated: whether the batch raised and its rows were asked one by one.
    """

    actions: Batch
    lengths: list[int] | None = None
    clipped: npt.NDArray[np.bool_] | None = None
    failures: Mapping[int, Failure] = msgspec.field(default_factory=dict)
    planned: int = 1
    seconds: float = 0.0
    was_repeated: bool = False
    planned_each: list[int] | None = None

    def planned_for(self, row: int) -> int:
        """Return how many actions the policy's own chunk held for a row."""
        return self.planned if self.planned_each is None else self.planned_each[row]


Parts = Sequence[tuple[Sequence[int], Prediction]]


def merge(rows: int, parts: Parts, failures: Mapping[int, Failure], *, is_chunked: bool) -> Prediction:
    """Join predictions for disjoint sets of rows into one for `rows` rows.

    parts: (rows, prediction for them) pairs; every row is in one of them or in `failures`.
    Rows without an answer repeat some other row's actions, which nobody may execute.
    """
    failures = dict(failures)
    seconds = sum(part.seconds for _, part in parts)
    source: dict[int, tuple[Prediction, int]] = {}
    for chosen, part in parts:
        failures.update({chosen[place]: failure for place, failure in part.failures.items()})
        if part.actions is not None:
            source.update({row: (part, place) for place, row in enumerate(chosen)})
    if not source:
        return Prediction(None, failures=failures, seconds=seconds)
    anybody = next(iter(source.values()))
    picked = [source.get(row, anybody) for row in range(rows)]
    if is_chunked:
        return _merge_chunks(picked, failures, seconds)
    masks = [None if part.clipped is None else bool(part.clipped[place]) for part, place in picked]
    return Prediction(
        stack_rows([row_of(part.actions, place) for part, place in picked]),
        clipped=None if all(mask is None for mask in masks) else np.array(masks, np.bool_),
        failures=failures,
        seconds=seconds,
    )


def _merge_chunks(
    picked: Sequence[tuple[Prediction, int]], failures: Mapping[int, Failure], seconds: float
) -> Prediction:
    lengths = [
        chunk_length(part.actions) if part.lengths is None else part.lengths[place] for part, place in picked
    ]
    longest = max(lengths)
    is_uneven = len(set(lengths)) > 1 or any(part.lengths is not None for part, _ in picked)
    return Prediction(
        stack_rows([padded(row_of(part.actions, place), longest) for part, place in picked]),
        lengths if is_uneven else None,
        _merge_clipped(picked, longest),
        failures,
        picked[0][0].planned,
        seconds,
        planned_each=[part.planned_for(place) for part, place in picked],
    )


def padded(chunk: Batch, length: int) -> Batch:
    """Cut or lengthen one chunk (H, ...) to `length`; repeats its last action, which is never executed."""
    return map_leaves(lambda leaf: leaf[np.minimum(np.arange(length), len(leaf) - 1)], chunk)


def _merge_clipped(picked: Sequence[tuple[Prediction, int]], length: int) -> npt.NDArray[np.bool_] | None:
    if all(part.clipped is None for part, _ in picked):
        return None
    mask = np.zeros((len(picked), length), np.bool_)
    for row, (part, place) in enumerate(picked):
        if part.clipped is not None:
            known = part.clipped[place][:length]
            mask[row, : len(known)] = known
    return mask
