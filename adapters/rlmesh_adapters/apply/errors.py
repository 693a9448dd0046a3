"""Errors of applying a plan: values that are not what the spaces and documents promised."""

from __future__ import annotations

from collections.abc import Sequence

from rlmesh_adapters.errors import Failure


class ApplyError(ValueError):
    """Rows of a batch that cannot be converted; the others can.

    rows: their numbers.
    """

    def __init__(self, message: str, rows: Sequence[int]) -> None:
        super().__init__(message)
        self.rows = tuple(rows)


def failures_of(error: ApplyError) -> dict[int, Failure]:
    """Return the failure of each row that cannot be converted."""
    return {row: Failure(phase="adapter", message=str(error)) for row in error.rows}
