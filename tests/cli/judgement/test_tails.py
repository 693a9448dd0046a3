"""Tails of the binomial distribution."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlmesh_cli.judgement.normal import below, two_sided
from rlmesh_cli.judgement.tails import at_least, at_most, exactly


@settings(max_examples=200, deadline=None)
@given(k=st.integers(-2, 302), n=st.integers(0, 300), p=st.floats(0, 1))
def test_tails_are_those_of_scipy(k, n, p):
    assert at_least(k, n, p) == pytest.approx(stats.binom.sf(k - 1, n, p), rel=1e-9, abs=1e-14)
    assert at_most(k, n, p) == pytest.approx(stats.binom.cdf(k, n, p), rel=1e-9, abs=1e-14)


@settings(max_examples=200, deadline=None)
@given(
    numbers=st.tuples(st.integers(0, 300), st.integers(0, 300)).map(sorted),
    # Nearer to 0 SciPy overflows.
    p=st.sampled_from([0.0, 1.0]) | st.floats(1e-12, 1 - 1e-12),
)
def test_chance_of_a_number_is_that_of_scipy(numbers, p):
    k, n = numbers
    assert exactly(k, n, p) == pytest.approx(stats.binom.pmf(k, n, p), rel=1e-9, abs=1e-14)


def test_small_tails_keep_their_digits():
    assert at_least(60, 60, 0.5) == 0.5**60
    assert at_least(100_000, 100_000, 0.5) == 0.0
    assert below(-20.0) == pytest.approx(stats.norm.cdf(-20), rel=1e-12)


def test_fair_coins_are_counted_out():
    whole = sum(math.comb(25, j) for j in range(17, 26)) / 2**25
    assert at_least(17, 25, 0.5) == pytest.approx(whole, rel=1e-13)


def test_two_sided_quantile_is_the_known_one():
    assert two_sided(0.95) == pytest.approx(1.959963984540054, rel=1e-14)
