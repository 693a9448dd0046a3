"""Repeats: episodes that only do again, step by step, what another one did from the same start.

Each start then tells one thing, however often it came. What a run says is still a mean over its episodes, so a
start weighs the more the more often it came, and the interval is that of fewer episodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


def effective_count(starts: Sequence[Hashable | None]) -> int:
    """Return how many different starts, each as often as any other, would say as much as these.

    That is the number of different ones if they came equally often, and fewer if not. None is a start that nobody
    knows, and equals no other.
    Source: Kish 1965, (sum of weights)^2 / sum of their squares; rounded down.
    """
    squares = _squares(starts)
    return len(starts) ** 2 // squares if squares else 0


def inflation(starts: Sequence[Hashable | None]) -> float:
    """Return by how much the mean over all varies more than that of one of each start, as a factor of its std."""
    different = sum(start is None for start in starts) + len({start for start in starts if start is not None})
    return math.sqrt(different * _squares(starts)) / len(starts)


def _squares(starts: Sequence[Hashable | None]) -> int:
    counts = Counter(start for start in starts if start is not None)
    return sum(count * count for count in counts.values()) + sum(start is None for start in starts)


def scaled(part: int, whole: int, count: int) -> tuple[int, int]:
    """Return how many `part` of `whole` are of `count`, rounded down and up."""
    return part * count // whole, -(-part * count // whole)


def one_each(values: Sequence[float], starts: Sequence[Hashable | None]) -> list[tuple[float, int]]:
    """Return one value of each start, and how often it came; every value of a start that nobody knows."""
    counts = Counter(start for start in starts if start is not None)
    found: list[tuple[float, int]] = []
    for value, start in zip(values, starts, strict=True):
        count = 1 if start is None else counts.pop(start, 0)
        if count:
            found.append((value, count))
    return found


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
