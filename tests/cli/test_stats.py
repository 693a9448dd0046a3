"""Stats: counted first, divided last, rounded nowhere."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from cli_toys import errored, row
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_cli.estimating import DEFAULT_ESTIMATOR
from rlmesh_cli.outcomes import SuccessRule
from rlmesh_cli.stats import spread, summarise


def summary(rows, planned=None, metrics=()):
    return summarise(rows, planned=planned or len(rows), rule=SuccessRule(), metrics=metrics)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(-(10**15), 10**15).map(lambda number: number / 1e6), min_size=2, max_size=20))
def test_spread_is_what_numpy_says(values):
    found = spread(values)
    assert found.n == len(values)
    assert found.mean == pytest.approx(float(sum(map(Fraction, values)) / len(values)), rel=1e-15, abs=1e-300)
    scale = max(map(abs, values))
    assert found.std == pytest.approx(np.std(values, ddof=1), rel=1e-9, abs=1e-12 * scale)
    assert found.median == np.median(values)
    assert (found.min, found.max) == (min(values), max(values))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_order_of_the_values_changes_nothing(values, random):
    other = list(values)
    random.shuffle(other)
    assert spread(other) == spread(values)


HUGE = 1e308


@pytest.mark.parametrize(
    ("values", "mean", "median", "least", "most"),
    [
        ([1.0, 2.0, math.inf], math.inf, 2.0, 1.0, math.inf),
        ([-HUGE, -HUGE, -math.inf], -math.inf, -HUGE, -math.inf, -HUGE),
        # Sums on the way have no float; one infinity decides all the same.
        ([HUGE, HUGE, HUGE, -math.inf], -math.inf, HUGE, -math.inf, HUGE),
        ([-HUGE, -HUGE, math.inf, -math.inf], math.nan, -HUGE, -math.inf, math.inf),
    ],
)
def test_infinities_are_decided_before_anything_is_summed(values, mean, median, least, most):
    for order in (values, values[::-1]):
        found = spread(order, estimator=DEFAULT_ESTIMATOR)
        assert found.mean == pytest.approx(mean, nan_ok=True)
        assert (found.median, found.min, found.max) == (median, least, most)
        assert math.isnan(found.std)
        assert found.interval is None


def test_of_values_that_hold_a_nan_nothing_is_known():
    for values in ([1.0, math.nan, 3.0], [math.nan, 1.0, 3.0]):
        found = spread(values)
        assert found.n == 3
        assert all(math.isnan(getattr(found, name)) for name in ("mean", "std", "median", "min", "max", "iqm"))


def test_one_value_has_no_deviation_and_no_value_no_spread():
    assert spread([2.5]).std is None
    assert spread([2.5]).mean == spread([2.5]).median == 2.5
    assert spread([]) is None


def test_mean_lies_within_the_extremes_also_of_huge_values():
    found = spread([1.7e308, 1.7e308, 1.6e308])
    assert 1.6e308 <= found.mean <= 1.7e308
    assert found.mean == pytest.approx(1.6666666666666667e308, rel=1e-12)


def test_equal_values_have_no_deviation():
    assert spread([0.1] * 10).std == 0.0
    assert spread([0.1] * 10).mean == 0.1


def test_errored_episodes_stay_out_of_returns_and_in_the_count():
    found = summary([row(0), errored(1, policy_calls=1), row(2)], planned=5)
    assert (found.episodes, found.planned, found.errors) == (3, 5, 1)
    assert (found.returns.n, found.returns.mean) == (2, (0.5 + 2.5) / 2)
    assert (found.lengths.n, found.lengths.mean) == (2, 3.0)
    assert found.ends == {"terminated": 2, "error": 1}
    assert found.policy_calls == 7


def test_ends_come_with_the_commonest_first():
    rows = [row(0, end="step_cap"), row(1, end="truncated"), row(2, end="truncated")]
    assert list(summary(rows).ends.items()) == [("truncated", 2), ("step_cap", 1)]


def test_nothing_finished_measures_nothing():
    for rows in ([], [errored(0)]):
        found = summary(rows, planned=1)
        assert (found.returns, found.lengths, found.success.rate, found.success.rate_completed) == (None,) * 4


@pytest.mark.parametrize(
    ("outcomes", "errors", "counts", "rate", "completed"),
    [
        ([True, False, None, True, False, None], 0, (2, 2, 2), 2 / 4, 2 / 4),
        ([True] * 6, 2, (6, 0, 0), 6 / 8, 1.0),
        ([True, None], 1, (1, 0, 1), 1 / 2, 1.0),
        ([None, None], 0, (0, 0, 2), None, None),
        ([None], 3, (0, 0, 1), None, None),
        ([], 2, (0, 0, 0), None, None),
        ([False], 0, (0, 1, 0), 0.0, 0.0),
        ([True, True, False], 0, (2, 1, 0), 2 / 3, 2 / 3),
    ],
)
def test_errored_episodes_are_failures_and_silent_ones_are_unknown(outcomes, errors, counts, rate, completed):
    rows = [row(index, success=outcome) for index, outcome in enumerate(outcomes)]
    rows += [errored(len(rows) + more) for more in range(errors)]
    success = summary(rows).success
    assert (success.successes, success.failures, success.unknown) == counts
    assert (success.errored, success.rate, success.rate_completed) == (errors, rate, completed)
    assert success.rule == "is_success or success, last value"


def test_end_flags_are_never_read_as_success():
    found = summary([row(0, terminated=True), row(1, terminated=False, truncated=True)])
    assert (found.success.successes, found.success.failures, found.success.rate) == (0, 0, None)


def test_success_on_the_way_and_at_the_reset_is_counted_apart():
    rows = [
        row(0, success=False, success_any=True, success_at_reset=True, success_source="won"),
        row(1, success=True, success_any=True, success_source="is_success"),
        row(2, success=None, success_at_reset=False),
        errored(3, success_at_reset=True),
    ]
    success = summary(rows).success
    assert (success.any, success.at_reset) == (2, 2)
    assert success.sources == ("is_success", "won")


def test_clipped_actions_are_counted_by_action_and_by_episode():
    found = summary([row(0, clipped_actions=3), row(1), row(2, clipped_actions=1)])
    assert (found.clipped_actions, found.clipped_episodes) == (4, 2)


def test_metric_is_spread_over_the_episodes_that_reported_it():
    rows = [
        row(0, metrics={"v": 1.0, "w": None}),
        row(1, metrics={"v": None, "w": None}),
        row(2, metrics={"v": 4.0}),
    ]
    rows.append(errored(3, metrics={"v": 100.0}))
    found = summary(rows, metrics=("v", "w")).metrics
    assert (found["v"].n, found["v"].mean, found["w"]) == (2, 2.5, None)
