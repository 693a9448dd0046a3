"""Power: what a number of pairs can show, and how many pairs it takes.

alpha: chance of a false finding, one-sided, in (0, 0.5]. power: chance to find what is there, in [0.5, 1).
All by normal approximation: plans, not promises.
"""

from __future__ import annotations

import math

from .bisection import begins
from .normal import quantile
from .tango import restricted_variance

_MOST_PAIRS = 10**12


def detectable_rate_difference(n: int, discordance: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest true drop of a rate that the exact one-sided paired test of n pairs finds, in (0, 1].

    discordance: share of pairs expected to differ, in [0, 1]. A drop is never larger; for larger drops all pairs
    that differ are taken to be lost. 1 also where n pairs are too few to find any drop.
    Source: Connor 1987, solved for the difference, less one pair for continuity, as the exact test is discrete.
    Raises ValueError for n below 1, or discordance, alpha or power out of range.
    """
    _check_pairs(n)
    _check_discordance(discordance)
    z_alpha, z_power = _quantiles(alpha, power)

    def is_found(drop: float) -> bool:
        differing = max(discordance, drop)
        deviation = z_alpha * math.sqrt(differing) + z_power * math.sqrt(differing - drop * drop)
        return n * drop - 1 >= math.sqrt(n) * deviation

    return begins(is_found, 0.0, 1.0)[1]


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


def detectable_mean_difference(std: float, n: int, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest true drop of a mean that a one-sided paired test of n pairs finds.

    std: of the paired differences, at least 0.
    Source: Guenther 1981, to the first order in 1 / n: a deviation that is itself estimated costs a pair or two.
    Raises ValueError for n below 1, std below 0 or not finite, or alpha or power out of range.
    """
    _check_pairs(n)
    _check_std(std)
    z_alpha, z_power = _quantiles(alpha, power)
    return (z_alpha + z_power) * std / math.sqrt(n) * (1 + z_alpha**2 / (4 * n))


def pairs_needed_mean(std: float, margin: float, *, alpha: float = 0.05, power: float = 0.8) -> int:
    """Return how many pairs show that a mean is not worse by the margin, if there is no true difference.

    std: of the paired differences, at least 0. margin: above 0, in the unit of the std.
    The fewest whose `detectable_mean_difference` is not above the margin.
    Raises ValueError for a margin of 0 or below, std below 0, either not finite, or alpha or power out of range;
    OverflowError where nobody could play so many.
    """
    _check_std(std)
    if not 0 < margin < math.inf:
        raise ValueError(f"margin must be finite and above 0, not {margin}")
    z_alpha, z_power = _quantiles(alpha, power)
    pairs = max(1, math.ceil(((z_alpha + z_power) * std / margin) ** 2))
    if pairs > _MOST_PAIRS:
        raise OverflowError(f"more than {_MOST_PAIRS:,} pairs would be needed")
    while detectable_mean_difference(std, pairs, alpha=alpha, power=power) > margin:
        pairs += 1
    return pairs


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
