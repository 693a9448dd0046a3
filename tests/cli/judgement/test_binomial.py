"""Intervals for a rate: against SciPy, against what was published, and their coverage counted out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rlmesh_cli.judgement.binomial import blaker, exact, wilson

METHODS = {"wilson": wilson, "exact": exact, "blaker": blaker}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)

counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
confidences = st.floats(0.01, 0.9999)


@pytest.mark.parametrize(
    ("method", "successes", "n", "low", "high"),
    [
        (wilson, 10, 10, 0.722, 1.0),
        (exact, 10, 10, 0.692, 1.0),
        (wilson, 9, 10, 0.596, 0.982),
        (wilson, 45, 50, 0.786, 0.957),
        (wilson, 0, 10, 0.0, 0.278),
    ],
)
def test_published_intervals_are_found(method, successes, n, low, high):
    interval = method(successes, n)
    assert (round(interval.low, 3), round(interval.high, 3)) == (low, high)
    assert interval.confidence == 0.95
    assert interval.method == method.__name__


def test_blaker_interval_is_that_of_the_package_of_klaschka():
    interval = blaker(3, 10)
    assert (interval.low, interval.high) == pytest.approx((0.08726443, 0.61941066), abs=5e-9)


@pytest.mark.parametrize(("method", "name"), [(wilson, "wilson"), (exact, "exact")])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(
    ("successes", "n"),
    [(0, 1), (1, 1), (3, 10), (45, 50), (0, 300), (1, 10_000), (7, 100_000), (50_000, 100_000), (99_999, 100_000)],
)
def test_bounds_are_those_of_scipy(method, name, confidence, successes, n):
    theirs = stats.binomtest(successes, n).proportion_ci(confidence, name)
    ours = method(successes, n, confidence)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-10)


@every_method
@settings(max_examples=40, deadline=None)
@given(count=counts, confidence=confidences)
def test_interval_holds_the_rate_and_lies_in_0_to_1(method, count, confidence):
    successes, n = count
    interval = method(successes, n, confidence)
    assert 0 <= interval.low <= successes / n + 1e-12
    assert successes / n - 1e-12 <= interval.high <= 1


@every_method
def test_bounds_are_0_and_1_for_nothing_and_all(method):
    assert method(0, 7).low == 0.0
    assert method(7, 7).high == 1.0


@every_method
@settings(max_examples=40, deadline=None)
@given(count=counts, confidence=confidences)
def test_failures_have_the_mirrored_interval(method, count, confidence):
    successes, n = count
    ours, other = method(successes, n, confidence), method(n - successes, n, confidence)
    assert (ours.low, ours.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-15)


@every_method
@settings(max_examples=40, deadline=None)
@given(count=counts, one=confidences, other=confidences)
def test_higher_confidence_has_the_wider_interval(method, count, one, other):
    inner, outer = (method(*count, confidence) for confidence in sorted((one, other)))
    assert outer.low <= inner.low + 1e-12
    assert inner.high <= outer.high + 1e-12


@settings(max_examples=40, deadline=None)
@given(count=counts, confidence=confidences)
def test_blaker_lies_within_exact(count, confidence):
    inner, outer = blaker(*count, confidence), exact(*count, confidence)
    assert outer.low <= inner.low + 1e-12
    assert inner.high <= outer.high + 1e-12


def blaker_p_values(successes, n, rates):
    """Return Blaker's p-value of each rate: the chance of outcomes whose smaller tail is not above ours."""
    outcomes = np.arange(n + 1)
    chances = stats.binom.pmf(outcomes, n, rates[:, None])
    tails = np.minimum(
        stats.binom.cdf(outcomes, n, rates[:, None]), stats.binom.sf(outcomes - 1, n, rates[:, None])
    )
    return np.sum(chances * (tails <= tails[:, [successes]] * (1 + 1e-9)), axis=1)


@pytest.mark.parametrize(("successes", "n"), [(1, 1), (3, 10), (9, 10), (5, 10), (11, 20), (45, 50), (1, 50)])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_blaker_is_the_range_of_the_rates_that_its_test_accepts(successes, n, confidence):
    rates = np.linspace(0, 1, 4_001)[1:-1]
    accepted = rates[blaker_p_values(successes, n, rates) >= 1 - confidence]
    interval = blaker(successes, n, confidence)
    assert interval.low == pytest.approx(accepted[0], abs=1 / 4_000)
    assert interval.high == pytest.approx(accepted[-1], abs=1 / 4_000)
    assert interval.low <= accepted[0]
    assert accepted[-1] <= interval.high


def coverage(intervals, rate):
    """Return the chance that the interval of n trials holds their rate, counted out."""
    n = len(intervals) - 1
    holds = [interval.low <= rate <= interval.high for interval in intervals]
    return float(stats.binom.pmf(np.arange(n + 1), n, rate) @ holds)


@pytest.mark.parametrize("n", [10, 20, 50])
@pytest.mark.parametrize("method", [exact, blaker])
def test_coverage_is_never_below_the_confidence(method, n):
    intervals = [method(successes, n) for successes in range(n + 1)]
    rates = [0.5, 0.7, 0.9, 0.98, *np.linspace(0.001, 0.999, 300)]
    assert min(coverage(intervals, rate) for rate in rates) >= 0.95 - 1e-9


@pytest.mark.parametrize(
    ("n", "rate", "expected"),
    [
        *((10, 0.5, 0.9785), (10, 0.7, 0.9244), (10, 0.9, 0.9298), (10, 0.98, 0.9838)),
        *((20, 0.5, 0.9586), (20, 0.7, 0.9752), (20, 0.9, 0.9568), (20, 0.98, 0.9401)),
        *((50, 0.5, 0.9351), (50, 0.7, 0.9567), (50, 0.9, 0.9703), (50, 0.98, 0.9216)),
    ],
)
def test_coverage_of_wilson_is_what_it_is(n, rate, expected):
    intervals = [wilson(successes, n) for successes in range(n + 1)]
    assert coverage(intervals, rate) == pytest.approx(expected, abs=5e-5)


@every_method
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 0), "a rate needs at least one episode, but n is 0"),
        ((-1, 5), "successes must be in 0..5, not -1"),
        ((6, 5), "successes must be in 0..5, not 6"),
        ((1, 5, 0.0), "confidence must be above 0 and below 1, not 0.0"),
        ((1, 5, 1.0), "confidence must be above 0 and below 1, not 1.0"),
        ((1, 5, float("nan")), "confidence must be above 0 and below 1, not nan"),
    ],
)
def test_what_is_wrong_is_said(method, arguments, words):
    with pytest.raises(ValueError, match=f"^{words}$"):
        method(*arguments)
