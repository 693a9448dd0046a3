"""Series: do repeated answers have an order in time? Chance has none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .answers import Answer

_LAGS = (1, 2, 3)
_MOST_ALIKE = 0.75
#: A dependence above it is memory. Chance goes beyond it, with the number of looks allowed for, less than once in
#: ten thousand times.
IS_MEMORY = 3.0


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
    columns = [ranks for column in table.T if (ranks := _ranks(column)) is not None]
    if not columns:
        return 0.0, "no variation"
    count = len(table)
    ranks = np.stack(columns, axis=1)
    power = (ranks**2).sum(axis=0)
    time = np.arange(count) - (count - 1) / 2
    found = {"a trend": time @ ranks / np.sqrt((time**2).sum() * power)}
    for lag in _LAGS:
        found[f"every {lag} calls" if lag > 1 else "one call to the next"] = (ranks[lag:] * ranks[:-lag]).sum(
            axis=0
        ) / power
    looks = np.sqrt(2 * np.log(len(found) * ranks.shape[1]))
    what, strongest = max(
        ((name, float(np.abs(values).max()) * np.sqrt(count)) for name, values in found.items()),
        key=lambda pair: pair[1],
    )
    return max(0.0, float(strongest - looks)), what


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
    """Return ranks around 0, None where one value prevails: of a few others, neighbours would look like a pattern.

    Equal values share the mean of their ranks, or their places in time would count.
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    if counts.max() > _MOST_ALIKE * len(values):
        return None
    ranks: npt.NDArray[np.float64] = np.cumsum(counts) - (counts + len(values)) / 2
    return ranks[places]
