"""Repeats: episodes that only do again, step by step, what another one did from the same start.

Each start then tells one thing, however often it came. What a run says is still a mean over its episodes, so a
start weighs the more the more often it came, and the interval is that of fewer episodes.
"""

from __future__ import annotations

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
    counts = Counter(start for start in starts if start is not None)
    squares = sum(count * count for count in counts.values()) + sum(start is None for start in starts)
    return len(starts) ** 2 // squares if squares else 0


def scaled(part: int, whole: int, count: int) -> tuple[int, int]:
    """Return how many `part` of `whole` are of `count`, rounded down and up."""
    return part * count // whole, -(-part * count // whole)


def thinned(values: Sequence[float], count: int) -> list[float]:
    """Return `count` of the values, from equally distant places of their order.

    Of values that came equally often, one each.
    """
    ordered = sorted(values)
    return [ordered[(2 * place + 1) * len(ordered) // (2 * count)] for place in range(count)]


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
