"""Two runs over the same episodes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from rlmesh_cli.judgement.paired import (
    mcnemar,
    p_not_worse_rate,
    p_worse_mean,
    p_worse_rate,
    permutation,
    rate_difference,
)
from rlmesh_cli.judgement.tango import restricted_variance, score

pairs = st.tuples(*[st.integers(0, 30)] * 3).filter(any)
counts = st.integers(0, 400)


@given(counts, counts)
def test_mcnemar_is_the_binomial_test(gained, lost):
    assume(gained + lost)
    assert mcnemar(gained, lost) == pytest.approx(stats.binomtest(gained, gained + lost).pvalue, rel=1e-9)
    worse = stats.binomtest(lost, gained + lost, alternative="greater").pvalue
    assert p_worse_rate(gained, lost) == pytest.approx(worse, rel=1e-9)


def test_pairs_that_do_not_differ_show_nothing():
    assert mcnemar(0, 0) == p_worse_rate(0, 0) == permutation([0.0, 0.0]) == p_worse_mean([]) == 1.0
    assert p_worse_rate(0, 5) == pytest.approx(1 / 32)
    assert p_worse_rate(5, 0) == 1.0


def likeliest_variance(gained, lost, n, difference):
    """Return the variance of a pair's difference at the highest likelihood, searched for with SciPy."""

    def unlikelihood(share):
        chances = share + difference, share, 1 - 2 * share - difference
        observed = gained, lost, n - gained - lost
        return -sum(seen * math.log(max(chance, 1e-300)) for seen, chance in zip(observed, chances, strict=True))

    limits = max(0.0, -difference), (1 - difference) / 2
    share = optimize.minimize_scalar(unlikelihood, bounds=limits, method="bounded", options={"xatol": 1e-12}).x
    return 2 * share + difference - difference**2


@pytest.mark.parametrize(("gained", "lost", "n"), [(3, 5, 50), (0, 4, 20), (4, 0, 20), (7, 7, 14), (1, 0, 44)])
@pytest.mark.parametrize("difference", [-0.6, -0.1, -1e-3, 1e-3, 0.05, 0.3])
def test_variance_is_that_of_the_highest_likelihood(gained, lost, n, difference):
    found = restricted_variance(gained, lost, n, difference)
    assert found == pytest.approx(likeliest_variance(gained, lost, n, difference), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize(("gained", "lost", "n"), [(3, 5, 50), (0, 4, 20), (4, 0, 20), (7, 7, 14), (1, 0, 44)])
def test_bounds_are_where_the_score_is_the_quantile(gained, lost, n):
    interval = rate_difference(gained, lost, n, 0.9)
    for bound, z in ((interval.low, 1.6448536269514722), (interval.high, -1.6448536269514722)):
        deviation = math.sqrt(n * likeliest_variance(gained, lost, n, bound))
        assert (gained - lost - n * bound) / deviation == pytest.approx(z, rel=1e-4)
    assert (interval.method, interval.confidence) == ("tango", 0.9)


@pytest.mark.parametrize("n", [1, 10, 200])
def test_pairs_that_all_agree_or_all_differ_have_bounds_in_closed_form(n):
    z = stats.norm.ppf(0.975)
    same, lost = rate_difference(0, 0, n), rate_difference(0, n, n)
    assert (same.low, same.high) == pytest.approx((-(z**2) / (n + z**2), z**2 / (n + z**2)))
    assert lost.low == -1.0
    assert -1 < lost.high < 1


@settings(max_examples=60, deadline=None)
@given(pairs, st.floats(0.01, 0.999), st.floats(0.01, 0.999))
def test_intervals_hold_the_difference_nest_and_are_mirrored(counted, one, other):
    gained, lost, same = counted
    n = gained + lost + same
    inner, outer = (rate_difference(gained, lost, n, level) for level in sorted((one, other)))
    assert -1 <= outer.low <= inner.low <= (gained - lost) / n <= inner.high <= outer.high <= 1
    mirrored = rate_difference(lost, gained, n, inner.confidence)
    assert (mirrored.low, mirrored.high) == (-inner.high, -inner.low)


@settings(max_examples=60, deadline=None)
@given(pairs, st.floats(0.001, 0.9))
def test_not_worse_is_shown_where_the_interval_is_above_the_margin(counted, margin):
    gained, lost, same = counted
    n = gained + lost + same
    p_value = p_not_worse_rate(gained, lost, n, margin)
    low = rate_difference(gained, lost, n, 0.9).low
    assume(abs(low + margin) > 1e-9)
    assert (p_value < 0.05) == (low > -margin)


def test_no_margin_is_mcnemars_score():
    assert p_not_worse_rate(10, 4, 50, 0.0) == pytest.approx(stats.norm.sf(6 / math.sqrt(14)))
    assert p_not_worse_rate(0, 0, 50, 0.0) == 0.5
    assert p_not_worse_rate(0, 50, 50, 0.2) == pytest.approx(1.0)


def test_score_at_the_ends_is_infinite_unless_it_was_seen():
    assert score(3, 5, 10, -1.0) == math.inf
    assert score(3, 5, 10, 1.0) == -math.inf
    assert score(0, 10, 10, -1.0) == 0.0


differences = st.lists(st.integers(-20, 20).map(lambda number: number / 8), min_size=2, max_size=11)


@settings(max_examples=40, deadline=None)
@given(differences)
def test_sign_flips_of_few_pairs_are_all_looked_at(values):
    sums = [sum(np.copysign(values, signs)) for signs in itertools.product((-1, 1), repeat=len(values))]
    assert permutation(values) == np.mean(np.abs(sums) >= abs(sum(values)))
    assert p_worse_mean(values) == np.mean(np.array(sums) <= sum(values))


@pytest.mark.parametrize("alternative", ["two-sided", "less"])
def test_sign_flips_of_many_pairs_are_those_of_scipy(alternative):
    values = np.random.default_rng(2).normal(-0.25, 1, 40)
    theirs = stats.permutation_test(
        (values,),
        np.mean,
        permutation_type="samples",
        alternative=alternative,
        rng=np.random.default_rng(1),
        vectorized=True,
    ).pvalue
    ours = permutation(values.tolist()) if alternative == "two-sided" else p_worse_mean(values.tolist())
    assert ours == pytest.approx(theirs, abs=5 * math.sqrt(theirs / 9_999))


def test_least_p_value_of_random_flips_is_one_in_all():
    assert permutation([1.0] * 60) == p_worse_mean([-1.0] * 60, resamples=9_999) == 1 / 10_000
    assert p_worse_mean([-1.0] * 60, resamples=99) == 1 / 100


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_order_and_sign_of_the_differences_change_nothing(values, random):
    other = list(values)
    random.shuffle(other)
    assert permutation(values) == permutation(other) == permutation([-value for value in values])
    assert p_worse_mean(values) == p_worse_mean(other)
    assert p_worse_mean(values) + p_worse_mean([-value for value in values]) >= 0.97


def test_rounding_and_size_of_the_differences_change_nothing():
    assert permutation([0.1, 0.2, 0.3, -0.6]) == permutation([1.0, 2.0, 3.0, -6.0]) == 1.0
    assert permutation([1.7e308] * 8) == permutation([5e-324] * 8) == 2 / 256


def test_many_differences_have_fewer_flips():
    assert p_worse_mean([-1.0] * 20_000) == 1 / 2_001


@pytest.mark.parametrize("test", [permutation, p_worse_mean])
def test_differences_that_are_not_finite_are_refused(test):
    with pytest.raises(ValueError, match=r"^differences must be finite, not inf$"):
        test([1.0, math.inf])
    with pytest.raises(ValueError, match=r"^resamples must be at least 1, not 0$"):
        test([1.0], resamples=0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mcnemar(-1, 2), "counts of pairs must not be below 0: gained -1, lost 2"),
        (lambda: p_worse_rate(1, -2), "counts of pairs must not be below 0: gained 1, lost -2"),
        (lambda: rate_difference(0, 0, 0), "a difference needs at least one pair, but n is 0"),
        (lambda: rate_difference(3, 4, 6), "gained 3 and lost 4 are more than all pairs, 6"),
        (lambda: rate_difference(3, 4, 9, 1.5), "confidence must be above 0 and below 1, not 1.5"),
        (lambda: p_not_worse_rate(3, 4, 9, -0.1), r"margin must be in \[0, 1\), not -0.1"),
        (lambda: p_not_worse_rate(3, 4, 9, 1.0), r"margin must be in \[0, 1\), not 1.0"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises(ValueError, match=f"^{words}$"):
        call()


def chances_of_pairs(n, gain, loss):
    """Yield gained, lost and the chance of both in n pairs."""
    for gained in range(n + 1):
        for lost in range(n + 1 - gained):
            yield (
                gained,
                lost,
                stats.multinomial.pmf([gained, lost, n - gained - lost], n, [gain, loss, 1 - gain - loss]),
            )


@pytest.mark.parametrize("discordance", [0.05, 0.2, 0.5])
def test_equal_policies_are_seldom_called_worse(discordance):
    """False alarms of the exact test, counted out, are at most what is asked for."""
    half = discordance / 2
    alarm = sum(p for gained, lost, p in chances_of_pairs(25, half, half) if p_worse_rate(gained, lost) <= 0.05)
    assert alarm <= 0.05


@pytest.mark.parametrize("discordance", [0.1, 0.2, 0.35, 0.5])
@pytest.mark.parametrize("drop", [0.0, 0.05, 0.1])
def test_interval_of_a_difference_covers_it(drop, discordance):
    """Counted out: not below the confidence less one point."""
    n, covered = 20, 0.0
    for gained, lost, p in chances_of_pairs(n, (discordance - drop) / 2, (discordance + drop) / 2):
        interval = rate_difference(gained, lost, n)
        covered += p * (interval.low <= -drop <= interval.high)
    assert covered >= 0.94


def test_sign_flips_of_equal_policies_alarm_as_often_as_asked_for():
    generator = np.random.default_rng(7)
    alarms = sum(p_worse_mean(generator.normal(0, 1, 12).tolist()) <= 0.05 for _ in range(1_000))
    assert abs(alarms - 50) <= 4 * math.sqrt(50)
