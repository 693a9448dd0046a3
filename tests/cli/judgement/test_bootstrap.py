"""Bootstrap intervals: against SciPy, and what they are at the edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlmesh_cli.judgement import bootstrap
from rlmesh_cli.judgement.bootstrap import bca, interquartile_mean

THEIRS = {"mean": np.mean, "iqm": lambda values, axis: stats.trim_mean(values, 0.25, axis=axis)}
OURS = {"mean": np.mean, "iqm": interquartile_mean}
DATA = {
    "normal": np.random.default_rng(3).normal(5, 2, 40),
    "skewed": np.random.default_rng(4).exponential(1, 25),
    "rates": np.random.default_rng(5).integers(0, 2, 30).astype(float),
    "few": np.array([0.03, 1.1, 4.7, 9.4, 7.9, 2.2]),
}
every_statistic = pytest.mark.parametrize("statistic", THEIRS)
numbers = st.integers(-1_000_000, 1_000_000).map(lambda number: number / 1024)


@settings(max_examples=100, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=30))
def test_interquartile_mean_is_that_of_scipy(values):
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25), rel=1e-12, abs=1e-9)


def test_interquartile_mean_at_the_edges():
    assert interquartile_mean([-math.inf, 1.0, 3.0, math.inf]) == 2.0
    assert interquartile_mean([1.0, math.inf]) == math.inf
    assert math.isnan(interquartile_mean([-math.inf, math.inf]))
    assert math.isnan(interquartile_mean([1.0, math.nan, 2.0, 3.0, 4.0]))
    assert interquartile_mean([1.7e308] * 8) == 1.7e308
    with pytest.raises(ValueError, match=r"^an interquartile mean needs at least one value$"):
        interquartile_mean([])


@every_statistic
@pytest.mark.parametrize("values", DATA.values(), ids=DATA)
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_interval_is_that_of_scipy(statistic, values, confidence):
    theirs = stats.bootstrap(
        (values,),
        THEIRS[statistic],
        method="BCa",
        confidence_level=confidence,
        n_resamples=20_000,
        rng=np.random.default_rng(1),
        vectorized=True,
    )
    ours = bca(values.tolist(), statistic=statistic, confidence=confidence)
    # Two Monte Carlo runs differ by a share of the standard error.
    slack = 0.15 * theirs.standard_error
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval), abs=slack)
    assert ours.method == "bca"
    assert ours.confidence == confidence


@pytest.mark.parametrize("cut", [4, 2**62])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 8, 9, 21])
def test_acceleration_is_that_of_values_left_out_in_turn(cut, n):
    ordered = np.sort(np.random.default_rng(n).exponential(1, n))
    left = np.array([np.delete(ordered, place) for place in range(n)])
    means = bootstrap._trimmed_means(left, cut)
    influences = means.mean() - means
    by_hand = np.sum(influences**3) / (6 * np.sum(influences**2) ** 1.5)
    assert bootstrap._acceleration(ordered, cut) == pytest.approx(by_hand, rel=1e-9, abs=1e-12)


@every_statistic
@settings(max_examples=25, deadline=None)
@given(values=st.lists(numbers, min_size=2, max_size=15), random=st.randoms(use_true_random=False))
def test_order_changes_nothing_and_the_statistic_is_inside(statistic, values, random):
    other = list(values)
    random.shuffle(other)
    interval = bca(values, statistic=statistic, resamples=499)
    assert interval == bca(other, statistic=statistic, resamples=499)
    estimate = OURS[statistic](values)
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= interval.low <= estimate + slack
    assert estimate - slack <= interval.high <= max(values) + slack


@every_statistic
@settings(max_examples=25, deadline=None)
@given(values=st.lists(numbers, min_size=2, max_size=15))
def test_higher_confidence_has_the_wider_interval(statistic, values):
    inner, outer = (bca(values, statistic=statistic, confidence=level, resamples=499) for level in (0.8, 0.95))
    assert outer.low <= inner.low
    assert inner.high <= outer.high


@every_statistic
def test_scale_of_the_values_is_the_scale_of_the_interval(statistic):
    values = DATA["skewed"]
    small = bca(values.tolist(), statistic=statistic)
    large = bca(np.ldexp(values, 1000).tolist(), statistic=statistic)
    assert (large.low, large.high) == (math.ldexp(small.low, 1000), math.ldexp(small.high, 1000))


@every_statistic
def test_edges(statistic):
    assert bca([], statistic=statistic) is None
    assert bca([1.0], statistic=statistic) is None
    assert bca([1.0, math.nan], statistic=statistic) is None
    assert bca([1.0, 2.0, math.inf], statistic=statistic) is None
    same = bca([0.1, 0.1, 0.1], statistic=statistic)
    assert (same.low, same.high) == (0.1, 0.1)
    extremes = bca([-1.7e308, 1.7e308, 1.7e308], statistic=statistic)
    assert -1.7e308 <= extremes.low <= extremes.high <= 1.7e308
    lonely = bca([0.0] * 30 + [1.0], statistic=statistic)
    assert 0 <= lonely.low <= lonely.high


@pytest.mark.parametrize("resamples", [1, 2])
def test_resamples_on_one_side_of_the_statistic_have_an_interval(resamples):
    interval = bca([0.0, 1.0, 5.0, 100.0], resamples=resamples)
    assert interval.low <= 26.5 <= interval.high


def test_interval_of_many_values_is_that_of_the_normal_distribution():
    values = np.random.default_rng(8).normal(0, 1, 5_000)
    interval = bca(values.tolist())
    half = 1.96 * values.std() / math.sqrt(len(values))
    assert (interval.low, interval.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.1 * half
    )


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match=r"^`median` is not a statistic: mean, iqm$"):
        bca([1.0, 2.0], statistic="median")
    with pytest.raises(ValueError, match=r"^resamples must be at least 1, not 0$"):
        bca([1.0, 2.0], resamples=0)
    with pytest.raises(ValueError, match=r"^confidence must be above 0 and below 1, not 2$"):
        bca([1.0, 2.0], confidence=2)
