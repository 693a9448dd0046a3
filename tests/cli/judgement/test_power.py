"""Power: plans that hold when the tests are counted out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlmesh_cli.judgement.paired import p_not_worse_rate, p_worse_rate
from rlmesh_cli.judgement.power import (
    detectable_mean_difference,
    detectable_rate_difference,
    pairs_needed_mean,
    pairs_needed_rate,
)

shares = st.floats(0, 1)


def power_of_exact_test(n, discordance, drop):
    """Return the chance that p_worse_rate is at most 0.05, counted out."""
    lost_share = (discordance + drop) / (2 * discordance)
    power = 0.0
    for differing in range(n + 1):
        found = [lost for lost in range(differing + 1) if p_worse_rate(differing - lost, lost) <= 0.05]
        if found:
            seen = stats.binom.sf(found[0] - 1, differing, lost_share)
            power += stats.binom.pmf(differing, n, discordance) * seen
    return power


@pytest.mark.parametrize(
    ("n", "discordance"), [(5, 0.0), (10, 1.0), (20, 0.5), (20, 1.0), (50, 0.2), (50, 0.5), (100, 0.1), (100, 0.3)]
)
def test_detectable_drop_of_a_rate_is_found_as_often_as_said(n, discordance):
    drop = detectable_rate_difference(n, discordance)
    assert power_of_exact_test(n, max(discordance, drop), drop) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("n", [8, 10, 20, 50, 1_000])
def test_where_all_differing_pairs_are_lost_five_of_them_have_to_be(n):
    """0.5 ** 5 is the first that is not above 0.05."""
    drop = detectable_rate_difference(n, 0.0)
    assert stats.binom.sf(4, n, drop) == pytest.approx(0.8, abs=1e-9)


def test_detectable_drop_of_many_pairs_is_the_root_of_connors_equation():
    drop, n, discordance = detectable_rate_difference(2_000, 0.3), 2_000, 0.3
    z_alpha, z_power = stats.norm.ppf([0.95, 0.8])
    needed = (z_alpha * math.sqrt(discordance) + z_power * math.sqrt(discordance - drop**2)) ** 2
    assert (n * drop - 1) ** 2 / n == pytest.approx(needed, rel=1e-9)


def test_counting_out_goes_over_into_connors_equation():
    assert detectable_rate_difference(1_000, 0.3) == pytest.approx(
        detectable_rate_difference(1_001, 0.3), rel=0.01
    )


@given(st.integers(1_001, 5_000), shares, shares)
def test_more_pairs_and_less_discordance_show_smaller_drops(n, one, other):
    less, more = sorted((one, other))
    drop = detectable_rate_difference(n, less)
    assert 0 < drop <= detectable_rate_difference(n, more) + 1e-12
    assert detectable_rate_difference(n + 1, less) <= drop <= 1


@pytest.mark.parametrize(
    ("alpha", "fewest"), [(0.5, 1), (0.05, 5), (0.5**5, 5), (0.03, 6), (0.5**6, 6), (0.01, 7)]
)
def test_too_few_pairs_find_no_drop_however_large(alpha, fewest):
    for n in range(1, fewest):
        assert detectable_rate_difference(n, 0.2, alpha=alpha) is None
        assert detectable_mean_difference(1.0, n, alpha=alpha) is None
    assert p_worse_rate(0, fewest) <= alpha
    assert detectable_rate_difference(fewest, 0.2, alpha=alpha) is not None
    assert detectable_mean_difference(1.0, fewest, alpha=alpha) is not None
    assert pairs_needed_mean(1e-9, 1.0, alpha=alpha) == fewest


@pytest.mark.parametrize(("margin", "discordance"), [(0.1, 0.1), (0.1, 0.2), (0.2, 0.3)])
def test_pairs_needed_show_what_they_are_for(margin, discordance):
    n = pairs_needed_rate(margin, discordance)
    generator = np.random.default_rng(1)
    half = discordance / 2
    drawn = generator.multinomial(n, [half, half, 1 - discordance], size=2_000)
    shown = np.mean([p_not_worse_rate(gained, lost, n, margin) <= 0.05 for gained, lost, _ in drawn.tolist()])
    assert shown == pytest.approx(0.8, abs=0.05)


def test_pairs_that_all_agree_are_needed_too():
    n = pairs_needed_rate(0.05, 0.0)
    assert p_not_worse_rate(0, 0, n, 0.05) <= 0.05 < p_not_worse_rate(0, 0, n - 1, 0.05)


@pytest.mark.parametrize("n", [10, 20, 50, 200])
def test_detectable_drop_of_a_mean_is_found_as_often_as_said(n):
    drop = detectable_mean_difference(2.0, n)
    t_power = stats.nct.sf(stats.t.ppf(0.95, n - 1), n - 1, drop / 2 * math.sqrt(n))
    assert t_power == pytest.approx(0.8, abs=0.015)


@settings(max_examples=50, deadline=None)
@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_pairs_needed_are_the_fewest_that_are_enough(std, margin):
    n = pairs_needed_mean(std, margin)
    assert detectable_mean_difference(std, n) <= margin
    assert n == 5 or detectable_mean_difference(std, n - 1) > margin


def test_differences_that_do_not_vary_need_as_many_pairs_as_find_anything():
    assert pairs_needed_mean(0.0, 0.1) == 5
    assert detectable_mean_difference(0.0, 5) == 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: detectable_rate_difference(0, 0.1), "a test needs at least one pair, but n is 0"),
        (lambda: detectable_rate_difference(9, 1.1), r"discordance must be in \[0, 1\], not 1.1"),
        (lambda: detectable_rate_difference(9, 0.1, alpha=0.0), "alpha must be above 0 and at most 0.5, not 0.0"),
        (lambda: detectable_rate_difference(9, 0.1, power=1.0), "power must be at least 0.5 and below 1, not 1.0"),
        (lambda: pairs_needed_rate(0.0, 0.1), "margin must be above 0 and below 1, not 0.0"),
        (lambda: pairs_needed_rate(0.1, -0.1), r"discordance must be in \[0, 1\], not -0.1"),
        (lambda: detectable_mean_difference(-1.0, 9), "std must be finite and not below 0, but is -1.0"),
        (lambda: detectable_mean_difference(1.0, 0), "a test needs at least one pair, but n is 0"),
        (lambda: pairs_needed_mean(1.0, 0.0), "margin must be finite and above 0, not 0.0"),
        (lambda: pairs_needed_mean(math.nan, 1.0), "std must be finite and not below 0, but is nan"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises(ValueError, match=f"^{words}$"):
        call()
