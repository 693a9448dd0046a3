"""Glances: how a run stands while it goes on, held against what is known of its rows."""

from __future__ import annotations

import math
import statistics

import pytest
from cli_toys import errored, row

from rlmesh_cli.glances import Glance, Standings
from rlmesh_cli.plays import Company
from rlmesh_cli.schema import EnvRoute, Route

#: Student's t at 97.5 %, by degrees of freedom; from printed tables.
STUDENT = {4: 2.776, 9: 2.262, 30: 2.042, 120: 1.980}


def glance(rows, **route) -> Glance:
    return Standings(Route(env=EnvRoute(id="Env-v0"), **route), "policy").glance(rows, Company())


def test_nothing_is_known_before_the_first_episode():
    found = glance([])
    assert (found.title, found.returns, found.success) == ("policy on Env-v0", None, None)
    assert (found.judged, found.errored, found.unknown) == (0, 0, 0)


@pytest.mark.parametrize("freedom", STUDENT)
def test_interval_of_the_mean_is_that_of_students_t(freedom):
    values = [1e6 + math.sin(7 * index) for index in range(freedom + 1)]
    found = glance([row(index, return_=value) for index, value in enumerate(values)]).returns
    assert found is not None
    assert found.value == pytest.approx(statistics.fmean(values))
    half = STUDENT[freedom] * statistics.stdev(values) / math.sqrt(len(values))
    assert found.high is not None
    assert found.high - found.value == pytest.approx(half, rel=0.01)
    assert found.is_rough


def test_few_episodes_and_returns_that_are_not_finite_have_a_mean_and_no_interval():
    few = glance([row(index) for index in range(4)]).returns
    assert few is not None
    assert (few.value, few.low) == (2.0, None)
    infinite = glance([row(index, return_=math.inf if index == 3 else 1.0) for index in range(9)])
    assert infinite.returns is not None
    assert (infinite.returns.value, infinite.returns.low, infinite.most) == (math.inf, None, math.inf)


def test_success_is_counted_as_in_the_summary():
    """8 of 10, an errored episode being a failure; the exact interval is from tables."""
    rows = [row(index, success=index < 8) for index in range(9)]
    rows += [errored(9), row(10, success=None), row(11, success=None)]
    found = glance(rows)
    assert (found.successes, found.judged, found.errored, found.unknown) == (8, 10, 1, 2)
    assert found.success is not None
    assert found.success.value == 0.8
    assert (found.success.low, found.success.high) == (
        pytest.approx(0.4439, abs=1e-4),
        pytest.approx(0.9748, abs=1e-4),
    )
    assert not found.success.is_rough


def test_success_that_is_not_reported_has_no_rate():
    found = glance([row(0, success=None), errored(1)])
    assert (found.success, found.unknown, found.errored) == (None, 1, 1)


def test_interval_of_many_episodes_is_a_quick_one_and_says_so():
    """Wilson's, from its closed form for half of n: 1/2 -+ z / (2 sqrt(n + z^2))."""
    found = glance([row(index, success=index % 2 == 0) for index in range(1000)]).success
    assert found is not None
    assert found.is_rough
    assert found.high == pytest.approx(0.5 + 1.95996 / 2 / math.sqrt(1000 + 1.95996**2), abs=1e-6)


def test_rows_are_added_once_however_often_one_looks():
    standings = Standings(Route(env=EnvRoute(id="Env-v0")), "policy")
    rows = []
    for index in range(20):
        rows.append(row(index, success=index % 4 == 0))
        for _ in range(2):
            found = standings.glance(rows, Company())
    assert (found.successes, found.judged, found.least, found.most) == (5, 20, 0.5, 19.5)
    assert found.returns is not None
    assert found.returns.value == 10.0


@pytest.mark.parametrize(
    ("gate", "on", "is_met"),
    [
        ("success_rate >= 0.8", "value", True),
        ("success_rate >= 0.8", "lower", False),
        ("success_rate >= 0.4", "lower", True),
        ("success_rate <= 0.9", "lower", False),
        ("mean_return > 4", "value", True),
        ("mean_return > 4", "lower", False),
        ("errors == 0", "value", True),
        ("iqm_return > 1", "value", None),
        ("speed > 1", "value", None),
    ],
)
def test_gates_that_can_be_seen_so_far(gate, on, is_met):
    rows = [row(index, success=index < 8) for index in range(10)]
    assert [met for _, met in glance(rows, gates=(gate,), gate_on=on).gates] == [is_met]


def test_rule_that_may_stop_early_makes_the_interval_rough():
    found = glance([row(index, success=True) for index in range(10)], until="width<0.1")
    assert found.until == "width<0.1"
    assert found.success is not None
    assert found.success.is_rough
