"""Sign flips: what the sum of differences would be if the sign of each were a coin's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

#: Up to so many differences that are not 0 every pattern of signs is looked at.
_ENUMERATED = 13
_SEED = 20_240_229
#: Signs that are drawn in all, unless the fewest flips need more, and at a time.
_DRAWS, _BLOCK = 40_000_000, 1_000_000
_FEWEST = 999
#: Sums of the same numbers in another order differ by less than this share.
_ROUNDING = 1e-12

_Floats = npt.NDArray[np.float64]


def p_value(differences: Sequence[float], resamples: int, *, two_sided: bool) -> float:
    """Return the share of sign patterns whose sum is as extreme as the sum of the differences.

    Extreme: as far from 0 on either side if two_sided, else as far down. (b + 1) / (m + 1) for random patterns.
    Raises ValueError for a difference that is not finite, resamples below 1.
    """
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    sizes = _sizes(differences)
    if not len(sizes):
        return 1.0
    scaled, exponent = _scaled(sizes)
    observed = math.fsum(math.ldexp(value, -exponent) for value in differences)
    slack = _ROUNDING * float(scaled.sum())
    extreme = total = 0
    for sums in _sums(scaled, resamples):
        extreme += int(
            np.count_nonzero(np.abs(sums) >= abs(observed) - slack if two_sided else sums <= observed + slack)
        )
        total += len(sums)
    is_enumerated = len(scaled) <= _ENUMERATED
    return extreme / total if is_enumerated else (extreme + 1) / (total + 1)


def _sizes(differences: Sequence[float]) -> list[float]:
    for value in differences:
        if not math.isfinite(value):
            raise ValueError(f"differences must be finite, not {value}")
    return sorted(abs(value) for value in differences if value)


def _scaled(sizes: Sequence[float]) -> tuple[_Floats, int]:
    # By a power of two, which is exact, so that no sum overflows.
    exponent = math.frexp(sizes[-1])[1]
    return np.ldexp(np.array(sizes), -exponent), exponent


def _sums(sizes: _Floats, resamples: int) -> Iterator[_Floats]:
    n = len(sizes)
    if n <= _ENUMERATED:
        patterns = np.arange(2**n)[:, None] >> np.arange(n) & 1
        yield _signed(patterns, sizes)
        return
    generator = np.random.default_rng(_SEED)
    left = min(resamples, max(_DRAWS // n, _FEWEST))
    rows = max(1, _BLOCK // n)
    while left > 0:
        bits = np.unpackbits(generator.integers(0, 256, (min(rows, left), -(-n // 8)), np.uint8), axis=1, count=n)
        yield _signed(bits, sizes)
        left -= rows


def _signed(patterns: npt.NDArray[np.integer], sizes: _Floats) -> _Floats:
    return (2.0 * patterns - 1.0) @ sizes
