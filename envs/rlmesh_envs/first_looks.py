"""First looks: do lanes show what they see in one and the same array, such as one that a class keeps?

All lanes are stepped before what they gave is put together, so the last one's would stand in every row.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from rlmesh_adapters.batches import leaves

Step = Callable[[Any], Any]


class FirstLooks:
    """Compares what the lanes gave in their first steps; those steps are kept apart already.

    num_lanes: N.
    """

    def __init__(self, num_lanes: int) -> None:
        self._missing = set(range(num_lanes))
        # What a lane gave, kept so that nothing else comes to lie at the same place meanwhile.
        self._given: dict[int, Any] = {}
        # Numbers of the leaves of an observation that lanes share.
        self._leaves: set[int] = set()

    @property
    def is_over(self) -> bool:
        """Whether every lane was looked at."""
        return not self._missing

    @property
    def finds_sharing(self) -> bool:
        """Whether some lanes were found to share something."""
        return bool(self._leaves)

    def awaits(self, lanes: Sequence[int]) -> bool:
        """Tell whether some of these lanes were not looked at."""
        return not self._missing.isdisjoint(lanes)

    def watched(self, lane: int, step: Step) -> Step:
        """Return a lane's step that is looked at, and whose observation is a copy, until it was."""
        if lane not in self._missing:
            return step

        def stepped(action: Any) -> Any:
            answer = step(action)
            if not _is_answer(answer):
                return answer
            self._given[lane] = answer[0]
            return (deepcopy(answer[0]), *answer[1:])

        return stepped

    def settle(self, lanes: Sequence[int]) -> None:
        """Compare what lanes gave in a step that all of them took, among them and with those before."""
        places: dict[int, tuple[int, int]] = {}
        for lane, observation in self._given.items():
            for number, leaf in enumerate(leaves(observation)):
                if isinstance(leaf, np.ndarray) and leaf.size:
                    place = leaf.__array_interface__["data"][0]
                    other, _ = places.setdefault(place, (lane, number))
                    if other != lane:
                        self._leaves.update((number, places[place][1]))
        self._missing.difference_update(lanes)

    def guarded(self, step: Step) -> Step:
        """Return a step that gives copies of what lanes share."""
        shared = frozenset(self._leaves)

        def stepped(action: Any) -> Any:
            answer = step(action)
            if not _is_answer(answer):
                return answer
            return (_copied(answer[0], shared, [0]), *answer[1:])

        return stepped


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, tuple) and len(answer) == 5


def _copied(observation: Any, shared: Container[int], count: list[int]) -> Any:
    """Return an observation with copies of some of its leaves; count: of the leaves that came before."""
    if isinstance(observation, dict):
        return {name: _copied(part, shared, count) for name, part in observation.items()}
    if isinstance(observation, tuple):
        return tuple(_copied(part, shared, count) for part in observation)
    count[0] += 1
    return deepcopy(observation) if count[0] - 1 in shared else observation
