"""Confidence sequences: intervals that may be looked at after every value, and acted on."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .intervals import Interval, check_confidence

#: Share of its capital that a bet may lose at most.
_LARGEST_LOSS = 0.75

_Floats = npt.NDArray[np.float64]


class BettingSequence:
    """Bounds of the mean of values in [0, 1], after each value.

    The chance that the true mean is ever out of bounds is at most 1 - confidence, however long one looks and
    whenever one stops, if the mean of the next value, given those before, stays the same.
    Every mean on a grid is tested by a gambler who bets on values above it, and one who bets on values below. A
    mean is out for good when its gambler has made 1 of (1 - confidence) / 2. Means below one that is too low are
    too low themselves, and each bound is a mean that is out: what lies between the points of the grid is covered.
    The grid makes the interval wider by less than two of its cells.
    Source: Waudby-Smith and Ramdas 2024, theorem 3 (hedged capital), with predictable plug-in bets.
    """

    def __init__(self, confidence: float = 0.95, *, resolution: int = 1_000) -> None:
        """Begin without a value.

        resolution: cells of the grid, at least 1.
        Raises ValueError for a confidence outside (0, 1), a resolution below 1.
        """
        check_confidence(confidence)
        if resolution < 1:
            raise ValueError(f"resolution must be at least 1, not {resolution}")
        self._confidence = confidence
        self._enough = 2 / (1 - confidence)
        self._grid = np.arange(resolution + 1) / resolution
        self._above = _Gamblers(self._grid)
        self._below = _Gamblers(self._grid)
        self._low, self._high = 0.0, 1.0
        self._n = 0
        self._sum = 0.0
        self._squares = 0.0

    @property
    def n(self) -> int:
        """How many values were taken."""
        return self._n

    @property
    def low(self) -> float:
        """The lower bound; 0 before any value."""
        return self._low

    @property
    def high(self) -> float:
        """The upper bound; 1 before any value."""
        return self._high

    @property
    def interval(self) -> Interval:
        """Both bounds. They stay as they are where the next value would leave no mean between them."""
        return Interval(low=self._low, high=self._high, confidence=self._confidence, method="betting")

    def add(self, value: float) -> None:
        """Take the next value.

        Raises ValueError for a value outside [0, 1].
        """
        if not 0 <= value <= 1:
            raise ValueError(f"values must be in [0, 1], not {value}")
        bet = self._next_bet()
        too_low = self._above.play(value, bet, self._enough)
        # Low values are high ones seen from 1, and so are means; what is taken from 1 is no number of the grid.
        too_high = self._below.play(1.0 - value, bet, self._enough)
        low, high = float(self._grid[max(too_low - 1, 0)]), float(self._grid[-max(too_high, 1)])
        if low <= high:
            self._low, self._high = low, high
        self._n += 1
        self._sum += value
        self._squares += (value - self._mean()) ** 2

    def _next_bet(self) -> float:
        # From the values before, and so fair.
        t = self._n + 1
        variance = (0.25 + self._squares) / t
        return math.sqrt(2 * math.log(self._enough) / (variance * t * math.log(t + 1)))

    def _mean(self) -> float:
        return (0.5 + self._sum) / (self._n + 1)


class _Gamblers:
    """Those who bet on values above their mean, in the order of their means, without those who made enough.

    Each has bet less than the one before, or on less, and so has less. Capital is multiplied, not its logarithm
    added up: it stays below what is enough, and a gambler who is down to 0 rejects nothing.
    """

    def __init__(self, means: _Floats) -> None:
        self._means = means
        self._capital = np.ones_like(means)
        self._largest_bets = np.full_like(means, math.inf)
        np.divide(_LARGEST_LOSS, means, out=self._largest_bets, where=means > 0)
        self._out = 0

    def play(self, value: float, bet: float, enough: float) -> int:
        """Bet on one value and return how many means are rejected: the lowest ones."""
        gains = np.minimum(self._largest_bets, bet)
        gains *= value - self._means
        gains += 1.0
        self._capital *= gains
        if self._capital[0] >= enough:
            self._retire(int(np.count_nonzero(self._capital >= enough)))
        return self._out

    def _retire(self, count: int) -> None:
        self._out += count
        self._means, self._capital = self._means[count:], self._capital[count:]
        self._largest_bets = self._largest_bets[count:]
