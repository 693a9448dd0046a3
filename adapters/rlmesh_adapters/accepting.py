"""Acceptance: a policy's raw answers become checked actions, cut to the horizon.

Axes: M asking rows, H actions of a chunk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .actions import ActionSeam, empty_chunk
from .batches import Batch, leaves, row_of, stack_rows
from .chunks import chunk_length, split_chunk
from .corners import Corner
from .errors import ActionError, Failure, failure_from
from .predictions import Prediction, merge, padded


class Acceptance:
    """Takes what a corner answers.

    corner: that was asked. seam: the action space's. horizon: most actions of a chunk that are executed.
    """

    def __init__(self, corner: Corner, seam: ActionSeam, horizon: int) -> None:
        self._corner, self._seam, self._horizon = corner, seam, horizon
        self._where = f"{corner.name} of the policy"

    def of_batch(self, raw: Any, rows: int) -> Prediction:
        """Take the answer of a batched corner to M rows.

        Raises ActionError where it does not fit the space.
        """
        if not self._corner.is_chunked:
            return self._accept(self._seam.convert(raw, (rows,), self._where))
        is_by_row = isinstance(raw, list) or (isinstance(raw, tuple) and self._seam.view.kind != "tuple")
        if is_by_row and len(raw) == rows and len({_length(part) for part in raw}) > 1:
            return self._accept_each([self._seam.convert(part, (None,), self._where) for part in raw])
        return self._accept_chunks(self._seam.convert(raw, (rows, None), self._where), rows)

    def of_rows(
        self, raws: dict[int, Any], failures: dict[int, Failure], rows: int, *, is_alone: bool = False
    ) -> Prediction:
        """Take the answers to single rows; one that does not fit fails its row alone.

        raws: row -> its answer. failures: of the other rows; written into. rows: M, how many there are in all.
        is_alone: each is a batched corner's answer to a batch of one.
        """
        stacked = None if failures or is_alone else self._quick_stack(list(raws.values()))
        if stacked is not None:
            return self._accept(stacked)
        lead: tuple[int | None, ...] = (1,) if is_alone else ()
        if self._corner.is_chunked:
            lead += (None,)
        chunks: dict[int, Batch] = {}
        for row, raw in raws.items():
            try:
                converted = self._seam.convert(raw, lead, self._where)
                chunk = row_of(converted, 0) if is_alone else converted
                if self._corner.is_chunked and len(leaves(chunk)[0]) == 0:
                    raise empty_chunk(self._where)
                chunks[row] = chunk
            except ActionError as error:
                failures[row] = failure_from(error, "policy")
        if not chunks:
            return Prediction(None, failures=failures)
        # A number that does not fit is kept in a type of its own, which must not become its neighbours' too.
        alike: dict[tuple[Any, ...], list[int]] = {}
        for row, chunk in chunks.items():
            alike.setdefault(tuple(leaf.dtype for leaf in leaves(chunk)), []).append(row)
        is_chunked = self._corner.is_chunked
        parts = []
        for together in alike.values():
            answers = [chunks[row] for row in together]
            accepted = self._accept_each(answers) if is_chunked else self._accept(stack_rows(answers))
            parts.append((together, accepted))
        if len(parts) == 1 and len(chunks) == rows:
            return parts[0][1]
        return merge(rows, parts, failures, is_chunked=is_chunked)

    def _quick_stack(self, raws: list[Any]) -> npt.NDArray[Any] | None:
        """Return (M, ...) actions if the answers stack at once into the space's own dtype, else None."""
        view = self._seam.view
        if self._corner.is_chunked or not isinstance(raws[0], (int, float, np.generic, np.ndarray)):
            return None
        try:
            stacked = np.array(raws)
        except (ValueError, TypeError):
            return None
        if stacked.shape != (len(raws), *view.shape) or stacked.dtype != view.dtype:
            return None
        return stacked

    def _accept(self, actions: Batch) -> Prediction:
        """Check the values of (M, ...) actions."""
        checked = self._seam.check(actions)
        return Prediction(checked.actions, None, checked.clipped, checked.failures)

    def _accept_chunks(self, chunks: Batch, rows: int) -> Prediction:
        """Cut (M, H, ...) to the horizon, check the values, and note short chunks."""
        planned = chunk_length(chunks)
        if planned == 0:
            raise empty_chunk(self._where)
        used = min(planned, self._horizon)
        if planned > used:
            chunks = split_chunk(chunks, 0, used)
        checked = self._seam.check(chunks)
        lengths = [used] * rows if used < self._horizon else None
        return Prediction(checked.actions, lengths, checked.clipped, checked.failures, planned)

    def _accept_each(self, chunks: list[Batch]) -> Prediction:
        """Accept one chunk (H, ...) a row; their lengths may differ."""
        planned = [len(leaves(chunk)[0]) for chunk in chunks]
        if min(planned) == 0:
            raise empty_chunk(self._where)
        if len(set(planned)) == 1:
            return self._accept_chunks(stack_rows(chunks), len(chunks))
        used = [min(length, self._horizon) for length in planned]
        prediction = self._accept_chunks(stack_rows([padded(chunk, max(used)) for chunk in chunks]), len(chunks))
        prediction.lengths, prediction.planned, prediction.planned_each = used, planned[0], planned
        return prediction


def _length(part: Any) -> Any:
    """Return the lengths of the leaves of one row's chunk, in its structure."""
    if isinstance(part, dict):
        return tuple(_length(leaf) for leaf in part.values())
    if isinstance(part, tuple) and not all(isinstance(leaf, (int, float)) for leaf in part):
        return tuple(_length(leaf) for leaf in part)
    try:
        return len(part)
    except TypeError:
        return -1
