"""Repeats: episodes that only do again, step by step, what another one did from the same start."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Repeats(Generic[T]):
    """Holds back what repeats an earlier one, as long as every start is followed by one course.

    Once a start takes another course, chance comes after the start: equal ones are no repeats then, and all that
    was held back counts after all.
    """

    def __init__(self) -> None:
        self._courses: dict[Hashable, Hashable] = {}
        self._held: list[T] | None = []

    def take(self, item: T, start: Hashable | None, course: Hashable) -> list[T]:
        """Return what counts by now, in order; start: None is one that nobody knows, which repeats nothing."""
        if self._held is None or start is None:
            return [item]
        if start not in self._courses:
            self._courses[start] = course
            return [item]
        if self._courses[start] == course:
            self._held.append(item)
            return []
        held, self._held = self._held, None
        return [*held, item]
