"""Ledgers: what rows say of starts, of the meanings of success, and of chunks, counted by hand."""

from __future__ import annotations

import math

import pytest
from cli_toys import IS_SUCCESS, errored, row
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from rlmesh_cli.estimating import Estimator
from rlmesh_cli.judgement.bootstrap import bca
from rlmesh_cli.ledgers import chunk_ledger, effective, meanings, start_ledger
from rlmesh_cli.outcomes import SuccessRule
from rlmesh_cli.stats import summarise


def repeated(distinct: int, times: int, **changes):
    return [
        row(index, start_hash=f"{index % distinct:016x}", trace_hash=f"{index % distinct:016x}", **changes)
        for index in range(distinct * times)
    ]


def test_ten_starts_that_are_played_five_times_are_ten():
    rows = repeated(10, 5, success=True)
    starts = start_ledger(rows)
    assert (starts.known, starts.distinct, starts.are_repeats) == (50, 10, True)
    assert (starts.effective, effective(rows[:20], starts)) == (10, 10)
    summary = summarise(rows, planned=50, rule=IS_SUCCESS, metrics=())
    ten = binomtest(10, 10).proportion_ci(method="exact")
    assert summary.success.interval.low == pytest.approx(ten.low, abs=1e-9)
    assert (summary.success.successes, summary.success.rate) == (50, 1.0)


def test_starts_that_come_unequally_often_weigh_as_they_came_and_the_interval_is_about_the_rate():
    """Of 100 episodes 80 begin in one state, and succeed; ten others begin twice each, and fail."""
    hashes = ["often"] * 80 + [str(number) for number in range(10)] * 2
    rows = [
        row(index, start_hash=start, trace_hash=start, success=start == "often", return_=float(start == "often"))
        for index, start in enumerate(hashes)
    ]
    summary = summarise(rows, planned=100, rule=IS_SUCCESS, metrics=())
    # 100^2 / (80^2 + 10 * 2^2) = 1.55
    assert (summary.starts.distinct, summary.starts.effective) == (11, 1)
    assert summary.success.rate == 0.8
    assert (summary.success.interval.low, summary.success.interval.high) == (0.0, 1.0)
    # Of one value each, 1/11 of which succeeded, about the mean of all, and sqrt(11 / 1.55) times as long.
    eleven = bca([1.0] + [0.0] * 10)
    factor = math.sqrt(11 * (80**2 + 10 * 2**2)) / 100
    assert summary.returns.mean == 0.8
    assert summary.returns.interval.low == pytest.approx(0.8 - (1 / 11 - eleven.low) * factor)
    assert summary.returns.interval.high == pytest.approx(0.8 + (eleven.high - 1 / 11) * factor)


def test_every_third_start_coming_twice_counts_as_kish_says():
    counts = [2, 1, 1] * 20
    rows = [
        row(index, start_hash=str(start), trace_hash=str(start), success=start % 2 == 0, return_=float(start))
        for index, start in enumerate(start for start, count in enumerate(counts) for _ in range(count))
    ]
    summary = summarise(rows, planned=80, rule=IS_SUCCESS, metrics=())
    assert summary.starts.effective == int(80**2 / (20 * 4 + 40))  # 53.3
    won = sum(count for start, count in enumerate(counts) if start % 2 == 0)
    low = binomtest(int(won * 53 / 80), 53).proportion_ci(method="exact").low
    high = binomtest(math.ceil(won * 53 / 80), 53).proportion_ci(method="exact").high
    assert summary.success.interval.low == pytest.approx(low, abs=1e-9)
    assert summary.success.interval.high == pytest.approx(high, abs=1e-9)


def test_a_rare_start_with_an_extreme_return_is_in_the_interval():
    """Six starts come twenty times and pay 100, six come once, of which one pays -600."""
    starts = [start for start in range(12) for _ in range(20 if start < 6 else 1)]
    rows = [
        row(at, start_hash=str(start), trace_hash=str(start), return_=-600.0 if start == 11 else 100.0)
        for at, start in enumerate(starts)
    ]
    found = summarise(rows, planned=126, rule=IS_SUCCESS, metrics=()).returns
    assert found.mean == pytest.approx(100 - 700 / 126)
    assert found.interval.low < -100 < found.mean <= found.interval.high


@given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    outcomes=st.lists(st.booleans(), min_size=8, max_size=8),
    method=st.sampled_from(["exact", "wilson", "blaker"]),
)
@settings(max_examples=60, deadline=None)
def test_every_interval_holds_the_number_that_it_is_of(counts, outcomes, method):
    starts = [start for start, count in enumerate(counts) for _ in range(count)]
    rows = [
        row(index, start_hash=str(start), trace_hash=str(start), success=outcomes[start], return_=float(start**2))
        for index, start in enumerate(starts)
    ]
    estimator = Estimator(method=method, wants_iqm=True)
    summary = summarise(rows, planned=len(rows), rule=IS_SUCCESS, metrics=(), estimator=estimator)
    found = summary.success
    assert found.interval.low <= found.rate <= found.interval.high
    for meaning in summary.meanings:
        assert meaning.interval.low <= meaning.successes / meaning.known <= meaning.interval.high
    returns = summary.returns
    if returns.interval is not None:
        assert returns.interval.low <= returns.mean <= returns.interval.high
        assert returns.iqm_interval.low <= returns.iqm <= returns.iqm_interval.high
    assert summary.starts.effective <= summary.starts.distinct or not summary.starts.are_repeats


def test_equal_first_observations_with_other_courses_are_no_repeats():
    rows = [row(index, start_hash="0" * 16, trace_hash=f"{index % 3:016x}") for index in range(9)]
    starts = start_ledger(rows)
    assert (starts.distinct, starts.are_repeats) == (1, False)
    assert (starts.effective, effective(rows, starts)) == (9, 9)


def test_same_actions_for_a_shorter_time_are_another_course():
    rows = [row(0, start_hash="a"), row(1, start_hash="a", length=4)]
    assert not start_ledger(rows).are_repeats


def test_errors_repeat_one_another_where_the_same_steps_end_in_the_same_fault():
    same = [
        errored(index, f"RuntimeError: <Arm at 0x7f00{index:08x}> broke", start_hash="a") for index in range(4)
    ]
    assert start_ledger(same).are_repeats
    other = [*same[:3], errored(3, "KeyError: 'arm'", start_hash="a")]
    assert not start_ledger(other).are_repeats


@pytest.mark.parametrize(
    "told",
    [
        {"success": True},
        {"success_final": True},
        {"success_any": True},
        {"success_held": 3},
        {"metrics": {"distance": 0.5}},
    ],
)
def test_episodes_that_end_alike_and_are_told_apart_by_what_was_reported_are_no_repeats(told):
    """A coin that the observation does not show decides: forty of them are forty."""
    rows = [row(index, start_hash="a", **(told if index % 2 else {})) for index in range(40)]
    starts = start_ledger(rows)
    assert (starts.distinct, starts.are_repeats) == (1, False)
    assert (starts.effective, effective(rows, starts)) == (40, 40)


def test_success_that_few_episodes_report_is_counted_among_those():
    rows = [row(index, start_hash="a", success=(index > 4) if index % 2 else None) for index in range(10)]
    summary = summarise(rows, planned=10, rule=IS_SUCCESS, metrics=())
    three = binomtest(3, 5).proportion_ci(method="exact")
    assert summary.success.interval.low == pytest.approx(three.low, abs=1e-9)
    assert summary.success.interval.high == pytest.approx(three.high, abs=1e-9)


def test_failed_reset_has_no_start():
    assert start_ledger([row(0), errored(1, start_hash=None)]).known == 1


@pytest.mark.parametrize(
    ("rule", "declared"),
    [
        (SuccessRule(), "final"),
        (SuccessRule(when="any"), "any"),
        (SuccessRule(when="held", steps=3), "held 3"),
        (SuccessRule(return_at_least=1.0), "return"),
    ],
)
def test_meanings_stand_side_by_side_and_the_declared_one_is_marked(rule, declared):
    rows = [
        row(0, success=True, success_final=True, success_any=True, success_held=3, success_at_reset=False),
        row(1, success=False, success_final=False, success_any=True, success_held=2),
        row(2),
    ]
    found = {
        one.name: one
        for one in meanings(rows, rule, interval=lambda won, among: Estimator().rate(won, len(among)))
    }
    assert [name for name, one in found.items() if one.is_declared] == [declared]
    counts = {name: (one.successes, one.known, one.unmeasured) for name, one in found.items()}
    held = "held 3" if rule.when == "held" else "held 10"
    assert counts["final"] == (1, 2, 1)
    assert counts["any"] == (2, 2, 1)
    assert counts[held] == ((1, 2, 1) if rule.when == "held" else (0, 2, 1))
    assert counts["at_reset"] == (0, 1, 2)


def test_nothing_measured_is_no_meaning():
    assert meanings([row(0)], SuccessRule(), interval=lambda won, among: Estimator().rate(won, len(among))) == ()


def test_chunks_add_up():
    """Two calls of 8 at horizon 5, ended at step 7; and one call of 8 whose second step broke."""
    rows = [
        row(0, length=7, planned_actions=16, dropped_actions=3),
        errored(1, planned_actions=8, dropped_actions=3),
    ]
    chunks = chunk_ledger(rows)
    assert (chunks.predicted, chunks.executed, chunks.dropped_at_end) == (24, 8, 6)
    # 24 planned: 8 were executed, 1 broke, 6 were left, and 3 of each call are beyond the horizon.
    assert chunks.dropped_by_replanning == 9


def test_old_rows_say_nothing_of_plans():
    assert chunk_ledger([row(0)]).predicted is None


def test_bounds_hold_whatever_the_missing_ones_were():
    rows = [row(0, success=True), row(1, success=False), row(2), errored(3)]
    success = summarise(rows, planned=4, rule=IS_SUCCESS, metrics=()).success
    assert (success.rate, success.worst, success.best) == (1 / 3, 1 / 4, 3 / 4)
