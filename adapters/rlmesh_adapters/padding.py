"""Padding: every batched call has the same number of rows, so that a network's kernels always see one shape.

Axes: M asking rows, K rows of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .batches import leaves, take_rows
from .corners import Corner
from .errors import LoadError


def with_rows(corner: Corner, rows: int, num_lanes: int) -> Corner:
    """Return a corner whose calls all have K = `rows` rows: the first is repeated, and its answers are dropped.

    Raises LoadError for a corner that takes one observation at a time, and for fewer rows than lanes.
    """
    if not corner.is_batched:
        raise LoadError(
            f"`{corner.name}` takes one observation at a time: there are no batches to pad",
            where="batch_rows",
            mend="give the policy predict_batch, or drop --batch-rows",
        )
    if rows < num_lanes:
        raise LoadError(
            f"{rows} rows a call are fewer than {num_lanes} lanes",
            where="batch_rows",
            mend=f"use --batch-rows {num_lanes} or more",
        )
    return msgspec.structs.replace(corner, call=_padded(corner.call, rows))


def _padded(call: Callable[..., Any], rows: int) -> Callable[..., Any]:
    def padded(batch: Any, **options: Any) -> Any:
        asked = len(leaves(batch)[0])
        chosen = [*range(asked), *[0] * (rows - asked)]
        more = {
            # Contexts and states come one a row; the horizon is one for all.
            name: [value[row] for row in chosen] if isinstance(value, list) else value
            for name, value in options.items()
        }
        return _first(call(take_rows(batch, chosen), **more), asked)

    return padded


def _first(answer: Any, rows: int) -> Any:
    """Return the first rows of whatever a corner gave: an array, a list, or a tree of them."""
    if isinstance(answer, Mapping):
        return {key: _first(part, rows) for key, part in answer.items()}
    if isinstance(answer, tuple):
        return tuple(_first(part, rows) for part in answer)
    try:
        return answer[:rows]
    except (TypeError, IndexError, KeyError):  # no rows; the seam says what it is
        return answer
