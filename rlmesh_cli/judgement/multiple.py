"""Several tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values, in the given order, that may each be held against one bar for all of them.

    If those at most a bar count as found, then the chance of one false finding or more is at most that bar,
    however the tests depend on one another.
    Source: Holm 1979; adjusted as in Wright 1992.
    Raises ValueError for a p-value outside [0, 1].
    """
    for p_value in p_values:
        if not 0 <= p_value <= 1:
            raise ValueError(f"a p-value must be in [0, 1], not {p_value}")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
