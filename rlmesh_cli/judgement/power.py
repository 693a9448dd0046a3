"""Power: what a number of pairs can show, and how many pairs it takes.

alpha: chance of a false finding, one-sided, in (0, 0.5]. power: chance to find what is there, in [0.5, 1).
Most by normal approximation: plans, not promises. n pairs find nothing where even n losses are no finding: the
p-value of exact tests is then 0.5 ** n, which is above alpha.
"""

from __future__ import annotations

import math

from .bisection import begins
from .normal import quantile
from .tails import at_least, exactly
from .tango import restricted_variance

_MOST_PAIRS = 10**12
#: Up to so many pairs the power is counted out, which takes a fifth of a second for the most.
_COUNTED = 1_000
#: Numbers of differing pairs that are less likely add nothing to a power that anybody reads.
_NEGLIGIBLE = 1e-12


def detectable_rate_difference(
    n: int, discordance: float, *, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Return the smallest true drop of a rate that the exact one-sided paired test of n pairs finds, in (0, 1].

    None where n pairs find no drop. discordance: share of pairs expected to differ, in [0, 1]. A drop is never
    larger; for larger drops all pairs that differ are taken to be lost.
    Source: the test's own power up to 1,000 pairs, which comes in steps, so that a pair more may find less; above
    that Connor 1987, solved for the difference, less one pair for continuity: a fifth too large where few differ.
    Raises ValueError for n below 1, or discordance, alpha or power out of range.
    """
    _check_pairs(n)
    _check_discordance(discordance)
    z_alpha, z_power = _quantiles(alpha, power)
    if not _can_find(n, alpha):
        return None
    fewest = _fewest_lost(n, alpha) if n <= _COUNTED else []

    def is_found(drop: float) -> bool:
        differing = max(discordance, drop)
        if fewest:
            return _power(n, differing, (differing + drop) / (2 * differing), fewest) >= power
        deviation = z_alpha * math.sqrt(differing) + z_power * math.sqrt(differing - drop * drop)
        return n * drop - 1 >= math.sqrt(n) * deviation

    return begins(is_found, 0.0, 1.0)[1]


def _fewest_lost(n: int, alpha: float) -> list[int]:
    """Return how many of 0, 1, ... n differing pairs have to be lost for a finding; more than all if none is."""
    found, lost = [], 0
    for differing in range(n + 1):
        while at_least(lost, differing, 0.5) > alpha:
            lost += 1
        found.append(lost)
    return found


def _power(n: int, discordance: float, lost_share: float, fewest: list[int]) -> float:
    """Return the chance of a finding; lost_share: of the pairs that differ. fewest: as `_fewest_lost` has it."""
    return sum(
        chance * at_least(fewest[differing], differing, lost_share)
        for differing in range(n + 1)
        if (chance := exactly(differing, n, discordance)) > _NEGLIGIBLE
    )


def pairs_needed_rate(margin: float, discordance: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return how many pairs show that a rate is not worse by the margin, if there is no true difference.

    margin: in (0, 1), as a rate. discordance: share of pairs expected to differ, in [0, 1].
    Source: Liu et al. 2002, for Tango's score test: its deviation is the one under a difference of -margin.
    Raises ValueError for a margin of 0 or below, or margin, discordance, alpha or power out of range;
    OverflowError where nobody could play so many.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin must be above 0 and below 1, not {margin}")
    _check_discordance(discordance)
    z_alpha, z_power = _quantiles(alpha, power)
    at_margin = math.sqrt(restricted_variance(discordance / 2, discordance / 2, 1.0, -margin))
    return math.ceil(((z_alpha * at_margin + z_power * math.sqrt(discordance)) / margin) ** 2)


def detectable_mean_difference(std: float, n: int, *, alpha: float = 0.05, power: float = 0.8) -> float | None:
    """Return the smallest true drop of a mean that a one-sided paired test of n pairs finds; None if none.

    std: of the paired differences, at least 0.
    Source: Guenther 1981, to the first order in 1 / n: a deviation that is itself estimated costs a pair or two.
    Raises ValueError for n below 1, std below 0 or not finite, or alpha or power out of range.
    """
    _check_pairs(n)
    _check_std(std)
    z_alpha, z_power = _quantiles(alpha, power)
    return _mean_drop(std, n, z_alpha, z_power) if _can_find(n, alpha) else None


def _mean_drop(std: float, n: int, z_alpha: float, z_power: float) -> float:
    return (z_alpha + z_power) * std / math.sqrt(n) * (1 + z_alpha**2 / (4 * n))


def pairs_needed_mean(std: float, margin: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return how many pairs show that a mean is not worse by the margin, if there is no true difference.

    std: of the paired differences, at least 0. margin: above 0, in the unit of the std.
    The fewest whose `detectable_mean_difference` is there and not above the margin.
    Raises ValueError for a margin of 0 or below, std below 0, either not finite, or alpha or power out of range;
    OverflowError where nobody could play so many.
    """
    _check_std(std)
    if not 0 < margin < math.inf:
        raise ValueError(f"margin must be finite and above 0, not {margin}")
    z_alpha, z_power = _quantiles(alpha, power)
    pairs = max(math.ceil(-math.log2(alpha)), math.ceil(((z_alpha + z_power) * std / margin) ** 2))
    if pairs > _MOST_PAIRS:
        raise OverflowError(f"more than {_MOST_PAIRS:,} pairs would be needed")
    while _mean_drop(std, pairs, z_alpha, z_power) > margin:
        pairs += 1
    return pairs


def _can_find(n: int, alpha: float) -> bool:
    return math.ldexp(1.0, -n) <= alpha


def _quantiles(alpha: float, power: float) -> tuple[float, float]:
    if not 0 < alpha <= 0.5:
        raise ValueError(f"alpha must be above 0 and at most 0.5, not {alpha}")
    if not 0.5 <= power < 1:
        raise ValueError(f"power must be at least 0.5 and below 1, not {power}")
    return -quantile(alpha), quantile(power)


def _check_pairs(n: int) -> None:
    if n < 1:
        raise ValueError(f"a test needs at least one pair, but n is {n}")


def _check_discordance(discordance: float) -> None:
    if not 0 <= discordance <= 1:
        raise ValueError(f"discordance must be in [0, 1], not {discordance}")


def _check_std(std: float) -> None:
    if not 0 <= std < math.inf:
        raise ValueError(f"std must be finite and not below 0, but is {std}")
