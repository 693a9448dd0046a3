"""Errors of applying a plan: values that are not what the spaces and documents promised."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from rlmesh_adapters.errors import Failure


class ApplyError(ValueError):
    """Rows of a batch that cannot be converted; the others can.

    messages: row -> what is wrong with it. A row's message says nothing of the other rows, for what is recorded
        of an episode must not depend on its neighbours.
    """

    def __init__(self, messages: Mapping[int, str]) -> None:
        super().__init__(next(iter(messages.values())))
        self.messages = dict(messages)

    @classmethod
    def each(cls, rows: Iterable[int], tell: Callable[[int], str]) -> ApplyError:
        """Return the error of some rows. tell: returns a row's message."""
        return cls({row: tell(row) for row in rows})

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows that cannot be converted."""
        return tuple(self.messages)


def failures_of(error: ApplyError) -> dict[int, Failure]:
    """Return the failure of each row that cannot be converted."""
    return {row: Failure(phase="adapter", message=message) for row, message in error.messages.items()}
