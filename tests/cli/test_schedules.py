"""Schedule: which free lanes start now."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlmesh_cli.schedules import Schedule


class Left(dict[int, int]):
    """Lane -> planned actions that are left."""

    def left(self, lane: int) -> int:
        return self[lane]


def test_everybody_starts_where_nobody_runs():
    assert Schedule(Left(), 8).admit(range(3), {}, 0) == [0, 1, 2]


def test_without_chunks_nobody_waits():
    assert Schedule(Left({0: 0, 1: 0}), 1).admit([2], [0, 1], 5) == [2]


def test_free_lanes_wait_for_the_largest_company():
    schedule = Schedule(Left({0: 2, 1: 5, 2: 5}), 8)
    assert schedule.admit([3], [0, 1, 2], 10) == ()
    assert schedule.boundary == 15
    assert schedule.admit([0], [1, 2], 12) == ()
    assert schedule.admit((), [1, 2], 15) == [0, 3]
    assert schedule.boundary == float("inf")


def test_of_equal_companies_the_first_is_joined():
    schedule = Schedule(Left({0: 6, 1: 3}), 8)
    schedule.admit([2], [0, 1], 0)
    assert schedule.boundary == 3


def test_lanes_that_were_asked_in_this_step_are_joined_at_once():
    assert Schedule(Left({0: 8, 1: 8}), 8).admit([2], [0, 1], 40) == [2]


def test_nobody_waits_for_lanes_that_have_ended():
    schedule = Schedule(Left({0: 4}), 8)
    schedule.admit([1], [0], 10)
    assert schedule.admit([0], [], 12) == [0, 1]


@given(
    period=st.integers(1, 9),
    left=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    free=st.lists(st.integers(10, 20), unique=True, min_size=1),
    now=st.integers(0, 1000),
)
def test_no_wait_is_as_long_as_a_chunk(period: int, left: list[int], free: list[int], now: int):
    lanes = Left(dict(enumerate(min(one, period) for one in left)))
    schedule = Schedule(lanes, period)
    admitted = schedule.admit(free, lanes, now)
    assert sorted(admitted) == sorted(free) or now < schedule.boundary < now + period
