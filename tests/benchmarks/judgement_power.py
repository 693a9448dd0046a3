"""What the judgement is worth: coverage, false alarms, power and costs, as tables.

    python tests/benchmarks/judgement_power.py [--draws 1000]

What can be counted out is: rates and pairs of rates, over all outcomes. Means, sign flips and confidence sequences
are drawn, with a fixed seed; two standard errors are printed behind what was drawn. About a minute.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import timeit
from collections.abc import Callable

import numpy as np
from scipy import stats

from rlmesh_cli.judgement.binomial import blaker, exact, wilson
from rlmesh_cli.judgement.bootstrap import bca
from rlmesh_cli.judgement.paired import (
    mcnemar,
    p_not_worse_rate,
    p_worse_mean,
    p_worse_rate,
    permutation,
    rate_difference,
)
from rlmesh_cli.judgement.power import (
    detectable_mean_difference,
    detectable_rate_difference,
    pairs_needed_mean,
    pairs_needed_rate,
)
from rlmesh_cli.judgement.sequences import BettingSequence

ALPHA = 0.05
MODULES = ("intervals", "binomial", "bootstrap", "paired", "multiple", "power", "sequences")


def with_error(share: float, draws: int) -> str:
    return f"{share:.4f} ± {2 * math.sqrt(share * (1 - share) / draws):.4f}"


def rate_coverage() -> None:
    print("\nCoverage of 95 % intervals of a rate, counted out; in brackets the mean width")
    print(f"{'n':>4} {'rate':>5}" + "".join(f"{method.__name__:>18}" for method in (wilson, exact, blaker)))
    for n in (10, 20, 50):
        intervals = {method: [method(k, n) for k in range(n + 1)] for method in (wilson, exact, blaker)}
        for rate in (0.5, 0.7, 0.9, 0.98):
            chances = stats.binom.pmf(np.arange(n + 1), n, rate)
            line = f"{n:>4} {rate:>5}"
            for found in intervals.values():
                covered = chances @ [interval.low <= rate <= interval.high for interval in found]
                width = chances @ [interval.high - interval.low for interval in found]
                line += f"{covered:>10.4f} ({width:.3f})"
            print(line)


def pair_tables(n: int, gain: float, loss: float) -> list[tuple[int, int, float]]:
    """Return gained, lost and the chance of both, for all outcomes of n pairs."""
    tables = [(gained, lost) for gained in range(n + 1) for lost in range(n + 1 - gained)]
    counts = np.array([(gained, lost, n - gained - lost) for gained, lost in tables])
    chances = stats.multinomial.pmf(counts, n, [gain, loss, max(0.0, 1 - gain - loss)])
    return [(*table, chance) for table, chance in zip(tables, chances.tolist(), strict=True)]


def chance(tables: list[tuple[int, int, float]], holds: Callable[[int, int], bool]) -> float:
    return sum(probability for gained, lost, probability in tables if probability > 1e-12 and holds(gained, lost))


def pair_false_alarms() -> None:
    print("\nEqual policies, counted out: chance of p <= 0.05, and coverage of the 95 % interval (Tango)")
    print(f"{'n':>4} {'differ':>7} {'p_worse_rate':>13} {'mcnemar':>9} {'interval':>9}")
    for n in (10, 20, 50):
        for differ in (0.05, 0.2, 0.5):
            tables = pair_tables(n, differ / 2, differ / 2)
            worse = chance(tables, lambda gained, lost: p_worse_rate(gained, lost) <= ALPHA)
            either = chance(tables, lambda gained, lost: mcnemar(gained, lost) <= ALPHA)
            print(f"{n:>4} {differ:>7} {worse:>13.4f} {either:>9.4f} {tango_coverage(tables, n, 0.0):>9.4f}")
    print("\nWorse by exactly the margin, counted out: chance that `not worse` is shown at 0.05, and coverage")
    print(f"{'n':>4} {'margin':>7} {'differ':>7} {'p_not_worse':>12} {'interval':>9}")
    for n in (10, 20, 50):
        for margin, differ in ((0.05, 0.05), (0.05, 0.2), (0.1, 0.1), (0.1, 0.3)):
            tables = pair_tables(n, (differ - margin) / 2, (differ + margin) / 2)
            shown = chance(
                tables, lambda gained, lost, n=n, margin=margin: p_not_worse_rate(gained, lost, n, margin) <= ALPHA
            )
            print(f"{n:>4} {margin:>7} {differ:>7} {shown:>12.4f} {tango_coverage(tables, n, -margin):>9.4f}")


def tango_coverage(tables: list[tuple[int, int, float]], n: int, difference: float) -> float:
    def holds(gained: int, lost: int) -> bool:
        interval = rate_difference(gained, lost, n)
        return interval.low <= difference <= interval.high

    return chance(tables, holds)


def rate_power() -> None:
    print("\nPower of p_worse_rate at 0.05, counted out; 20 % of pairs differ, or as many as the drop")
    drops = (0.05, 0.1, 0.2, 0.3)
    print(f"{'n':>4}" + "".join(f"{f'drop {drop}':>11}" for drop in drops) + f"{'said for 0.8':>14} {'is':>7}")
    for n in (10, 20, 50, 100):
        said = detectable_rate_difference(n, 0.2)
        powers = []
        for drop in (*drops, said):
            differ = max(0.2, drop)
            tables = pair_tables(n, (differ - drop) / 2, (differ + drop) / 2)
            powers.append(chance(tables, lambda gained, lost: p_worse_rate(gained, lost) <= ALPHA))
        print(
            f"{n:>4}" + "".join(f"{power:>11.4f}" for power in powers[:-1]) + f"{said:>14.4f} {powers[-1]:>7.4f}"
        )
    print("\nPairs said to show `not worse by the margin` with power 0.8 (20 % differ), and the power they have")
    for margin in (0.1, 0.15, 0.2):
        n = pairs_needed_rate(margin, 0.2)
        tables = pair_tables(n, 0.1, 0.1)
        shown = chance(
            tables, lambda gained, lost, n=n, margin=margin: p_not_worse_rate(gained, lost, n, margin) <= ALPHA
        )
        print(f"margin {margin:>4}: {n:>4} pairs, power {shown:.4f}")


def mean_coverage(draws: int) -> None:
    print(f"\nCoverage of the 95 % BCa interval, {draws} draws")
    generator = np.random.default_rng(1)
    kinds = {"normal": stats.norm(), "exponential": stats.expon()}
    for name, kind in kinds.items():
        # The middle half of a distribution, by its quantiles.
        middle = float(kind.ppf(np.linspace(0.25, 0.75, 100_002)[1:-1]).mean())
        for n in (10, 20, 50):
            samples = kind.rvs((draws, n), random_state=generator).tolist()
            line = f"{name:>12} n = {n:<3}"
            for statistic, true in (("mean", float(kind.mean())), ("iqm", middle)):
                found = [bca(sample, statistic=statistic) for sample in samples]
                holds = np.mean([interval.low <= true <= interval.high for interval in found if interval])
                line += f"  {statistic} {with_error(float(holds), draws)}"
            print(line)


def mean_tests(draws: int) -> None:
    print(f"\nSign flips, {draws} draws of normal differences: chance of p <= 0.05")
    generator = np.random.default_rng(2)
    print(f"{'n':>4} {'drop / std':>11} {'p_worse_mean':>18} {'permutation':>18}")
    for n in (10, 20, 50):
        for drop in (0.0, 0.2, 0.5, detectable_mean_difference(1.0, n)):
            samples = (generator.normal(0, 1, (draws, n)) - drop).tolist()
            worse = float(np.mean([p_worse_mean(sample, resamples=1_999) <= ALPHA for sample in samples]))
            either = float(np.mean([permutation(sample, resamples=1_999) <= ALPHA for sample in samples]))
            print(f"{n:>4} {drop:>11.4f} {with_error(worse, draws):>18} {with_error(either, draws):>18}")
    print(f"pairs said to show `not worse by half a std`: {pairs_needed_mean(1.0, 0.5)}")


def sequence_coverage(draws: int) -> None:
    print(
        f"\nBetting, {draws} sequences of 300 values: share that ever excludes the rate at 95 %, and mean widths"
    )
    generator = np.random.default_rng(3)
    for rate in (0.5, 0.9, 0.98):
        excluded, widths = 0, np.zeros(3)
        for values in (generator.random((draws, 300)) < rate).astype(float).tolist():
            sequence = BettingSequence()
            for count, value in enumerate(values, start=1):
                sequence.add(value)
                if count in (20, 50, 300):
                    widths[(20, 50, 300).index(count)] += (sequence.high - sequence.low) / draws
            excluded += not sequence.low <= rate <= sequence.high
        shown = ", ".join(f"{width:.3f} at {count}" for width, count in zip(widths, (20, 50, 300), strict=True))
        print(f"rate {rate:<4}  {with_error(excluded / draws, draws)}  widths {shown}")


def costs() -> None:
    print("\nCosts, best of several")
    small = np.random.default_rng(4).normal(size=50).tolist()
    large = np.random.default_rng(4).normal(size=10_000).tolist()
    sequence = BettingSequence()
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "wilson(45, 50)": (lambda: wilson(45, 50), 1_000),
        "exact(45, 50)": (lambda: exact(45, 50), 20),
        "blaker(45, 50)": (lambda: blaker(45, 50), 20),
        "blaker(50000, 100000)": (lambda: blaker(50_000, 100_000), 1),
        "rate_difference(3, 5, 50)": (lambda: rate_difference(3, 5, 50), 20),
        "bca of 50": (lambda: bca(small), 5),
        "bca of 50, iqm": (lambda: bca(small, statistic="iqm"), 5),
        "bca of 10000": (lambda: bca(large), 1),
        "bca of 10000, iqm": (lambda: bca(large, statistic="iqm"), 1),
        "permutation of 50": (lambda: permutation(small), 5),
        "permutation of 10000": (lambda: permutation(large), 1),
        "BettingSequence.add": (lambda: (sequence.add(1.0), sequence.add(0.0)), 500),
    }
    for name, (call, number) in calls.items():
        seconds = min(timeit.repeat(call, number=number, repeat=5)) / number
        print(f"{name:>26} {seconds * 1e6 / (2 if 'add' in name else 1):>11.1f} us")
    for module in MODULES:
        print(f"{'import ' + module:>26} {import_milliseconds(module):>11.1f} ms beyond numpy and msgspec")


def import_milliseconds(module: str) -> float:
    code = (
        "import time, numpy, msgspec, rlmesh_cli; start = time.perf_counter(); "
        f"import rlmesh_cli.judgement.{module}; print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(5)]
    return min(map(float, runs)) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000)
    draws = parser.parse_args().draws
    rate_coverage()
    pair_false_alarms()
    rate_power()
    mean_coverage(draws)
    mean_tests(draws)
    sequence_coverage(draws)
    costs()


if __name__ == "__main__":
    main()
