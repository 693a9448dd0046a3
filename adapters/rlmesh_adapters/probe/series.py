"""Series: do repeated answers have an order in time? Chance has none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .answers import Answer

_LAGS = (1, 2, 3)


def dependence(answers: Sequence[Answer]) -> tuple[float, str]:
    """Return how many standard deviations the order of answers is from chance, and in what it shows.

    Of n answers that come in no order, a correlation with time or with the answers before is normal with mean 0
    and deviation 1 / sqrt(n); the largest over all numbers of an answer is returned, less what looking at many of
    them is expected to give.
    """
    usable = [answer.numbers for answer in answers if not answer.failure]
    if len(usable) < 8 or len({numbers.shape for numbers in usable}) > 1:
        return 0.0, "too few answers"
    table = np.stack(usable)
    table = table[:, table.std(axis=0) > 0]
    if not table.shape[1]:
        return 0.0, "no variation"
    count = len(table)
    ranks = table.argsort(axis=0).argsort(axis=0).astype(np.float64)
    ranks -= ranks.mean(axis=0)
    power = (ranks**2).sum(axis=0)
    time = np.arange(count) - (count - 1) / 2
    found = {"a trend": time @ ranks / np.sqrt((time**2).sum() * power)}
    for lag in _LAGS:
        found[f"every {lag} calls" if lag > 1 else "one call to the next"] = (ranks[lag:] * ranks[:-lag]).sum(
            axis=0
        ) / power
    looks = np.sqrt(2 * np.log(len(found) * table.shape[1]))
    what, strongest = max(
        ((name, float(np.abs(values).max()) * np.sqrt(count)) for name, values in found.items()),
        key=lambda pair: pair[1],
    )
    return max(0.0, strongest - looks), what
