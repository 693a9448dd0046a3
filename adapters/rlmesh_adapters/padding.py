"""Padding: every batched call has the same number of rows, so that a network's kernels always see one shape.

Axes: M asking rows, K rows of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec
import numpy as np

from .batches import leaves, take_rows
from .context import EpisodeContext
from .corners import Corner
from .errors import LoadError, describe_error, is_fault, user_place
from .outputs import to_array


def with_rows(corner: Corner, rows: int | None, num_lanes: int, *, policy: object = None) -> Corner:
    """Return a corner whose calls all have K = `rows` rows: the first is repeated, and its answers are dropped.

    rows: None takes what the policy itself says in `batch_rows`; if that says nothing, the corner stays as it is.

    Raises LoadError for a corner that takes one observation at a time, for fewer rows than lanes, and for a
    `batch_rows` of the policy that is no count.
    """
    is_declared = rows is None
    if rows is None:
        rows = declared_rows(policy)
    if rows is None:
        return corner
    where = f"batch_rows of {type(policy).__name__}" if is_declared else "batch_rows"
    if not corner.is_batched:
        drop = "drop batch_rows" if is_declared else "drop --batch-rows"
        raise LoadError(
            f"`{corner.name}` takes one observation at a time: there are no batches to pad",
            where=where,
            mend=f"give the policy predict_batch, or {drop}",
        )
    if rows < num_lanes:
        fewer = f"use --num-envs {rows} or fewer, or "
        raise LoadError(
            f"{rows} rows a call are fewer than {num_lanes} lanes",
            where=where,
            mend=f"{fewer if is_declared else 'use '}--batch-rows {num_lanes} or more",
        )
    return msgspec.structs.replace(corner, call=_padded(corner.call, rows))


def declared_rows(policy: object) -> int | None:
    """Return the rows that every call of a policy must have, by its attribute `batch_rows`; None if it has none.

    Raises LoadError for what is no whole number from 1 on.
    """
    try:
        rows = getattr(policy, "batch_rows", None)
    except Exception as error:  # a user's property may raise anything
        raise LoadError(
            f"batch_rows of {type(policy).__name__} cannot be read: {describe_error(error)}",
            where=user_place(error.__traceback__),
            mend="make it a whole number, or None for batches of any size",
        ) from error
    if rows is None:
        return None
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise LoadError(
            f"batch_rows of {type(policy).__name__} is {rows!r}, no count of rows",
            where="batch_rows of the policy",
            mend="make it a whole number from 1 on, or None for batches of any size",
        )
    return rows


def _padded(call: Callable[..., Any], rows: int) -> Callable[..., Any]:
    def padded(batch: Any, **options: Any) -> Any:
        asked = _rows_of(batch, options)
        # Lanes are never more than the rows of a call; a probe may ask for more at once.
        parts = [range(start, min(start + rows, asked)) for start in range(0, asked, rows)]
        answers = [ask(batch, part, options) for part in parts]
        return answers[0] if len(answers) == 1 else _joined(answers)

    def ask(batch: Any, part: range, options: Mapping[str, Any]) -> Any:
        chosen = [*part, *[part[0]] * (rows - len(part))]
        more = {
            # Contexts and states come one a row; the horizon is one for all.
            name: [*(value[row] for row in part), *_stand_ins(value[part[0]], rows - len(part))]
            if isinstance(value, list)
            else value
            for name, value in options.items()
        }
        return _first(call(take_rows(batch, chosen), **more), len(part))

    return padded


def _rows_of(batch: Any, options: Mapping[str, Any]) -> int:
    parts = leaves(batch) or [value for value in options.values() if isinstance(value, list)]
    return len(parts[0]) if parts else 1


def _stand_ins(value: Any, count: int) -> list[Any]:
    """Return so many copies of a row's context or state, each of which goes on as the row itself does.

    A policy that fails in one of them would have failed in the row: what is thrown away must not decide.
    """
    try:
        is_context = isinstance(value, EpisodeContext)
        return [value.twin() if is_context else deepcopy(value) for _ in range(count)]
    except BaseException as error:  # a state of the user's own type may refuse
        if not is_fault(error):
            raise
        return [value] * count


def _joined(answers: Sequence[Any]) -> Any:
    """Return the answers of several calls as one: arrays, lists, or trees of them, row after row."""
    first = answers[0]
    if isinstance(first, Mapping):
        return {key: _joined([answer[key] for answer in answers]) for key in first}
    if isinstance(first, tuple):
        return tuple(_joined(parts) for parts in zip(*answers, strict=True))
    if isinstance(first, list):
        return [row for answer in answers for row in answer]
    return np.concatenate([to_array(answer) for answer in answers])


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
