"""Ledgers: what rows say of starts, of the meanings of success, and of chunks, counted by hand."""

from __future__ import annotations

import pytest
from cli_toys import IS_SUCCESS, errored, row
from scipy.stats import binomtest

from rlmesh_cli.estimating import Estimator
from rlmesh_cli.ledgers import chunk_ledger, independent, meanings, start_ledger
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
    assert [one.index for one in independent(rows, starts)] == list(range(10))
    summary = summarise(rows, planned=50, rule=IS_SUCCESS, metrics=())
    ten = binomtest(10, 10).proportion_ci(method="exact")
    assert summary.success.interval.low == pytest.approx(ten.low, abs=1e-9)
    assert (summary.success.successes, summary.success.rate) == (50, 1.0)


def test_equal_first_observations_with_other_courses_are_no_repeats():
    rows = [row(index, start_hash="0" * 16, trace_hash=f"{index % 3:016x}") for index in range(9)]
    starts = start_ledger(rows)
    assert (starts.distinct, starts.are_repeats) == (1, False)
    assert len(independent(rows, starts)) == 9


def test_same_actions_for_a_shorter_time_are_another_course():
    rows = [row(0, start_hash="a"), row(1, start_hash="a", length=4)]
    assert not start_ledger(rows).are_repeats


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
    assert len(independent(rows, starts)) == 40


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
    found = {one.name: one for one in meanings(rows, rule, interval=Estimator().rate)}
    assert [name for name, one in found.items() if one.is_declared] == [declared]
    counts = {name: (one.successes, one.known, one.unmeasured) for name, one in found.items()}
    held = "held 3" if rule.when == "held" else "held 10"
    assert counts["final"] == (1, 2, 1)
    assert counts["any"] == (2, 2, 1)
    assert counts[held] == ((1, 2, 1) if rule.when == "held" else (0, 2, 1))
    assert counts["at_reset"] == (0, 1, 2)


def test_nothing_measured_is_no_meaning():
    assert meanings([row(0)], SuccessRule(), interval=Estimator().rate) == ()


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
