"""What a failed reset of one lane of a foreign vector environment takes with it: said, never played on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from env_fakes import Tape
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rlmesh_envs.foreign import ForeignLanes

ONE = np.ones(2, np.int64)


class Refusing(Tape):
    """A Tape that cannot be reset with seed 13."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed == 13:
            raise RuntimeError("seed 13 is refused")
        return super().reset(seed=seed, options=options)


def build(number: int = 2) -> SyncVectorEnv:
    return SyncVectorEnv([Refusing] * number, autoreset_mode=AutoresetMode.DISABLED)


def begun(seeds: Sequence[int]) -> ForeignLanes:
    lanes = ForeignLanes(build(len(seeds)), lambda: build(len(seeds)))
    assert not lanes.reset_lanes(range(len(seeds)), seeds).failures
    return lanes


def test_the_other_lanes_episode_ends_where_it_is_instead_of_going_on_in_a_new_world() -> None:
    lanes = begun([0, 3])  # of 2 and 5 steps
    for _ in range(2):
        lanes.step_lanes(ONE, (0, 1))
    assert list(lanes.reset_lanes([0], [13]).failures) == [0]
    # The next reset builds the environment anew: episode 3 on lane 1 is gone.
    again = lanes.reset_lanes([0], [4])
    assert (list(again.lanes), again.failures) == ([0], {})
    steps = lanes.step_lanes(ONE, (0, 1))
    assert list(steps.failures) == [1]
    assert "seed 13 is refused" in steps.failures[1].message
    assert steps.failures[1].phase == "reset"
    np.testing.assert_array_equal(steps.observations[0], [4, 1, 1])
    assert steps.rewards[0] == 40 + 1 / 8
    # Lane 0 ends with its second step; lane 1 starts again and is whole.
    assert not lanes.reset_lanes([1], [6]).failures
    steps = lanes.step_lanes(ONE, (0, 1))
    assert not steps.failures
    assert [row for row, _, _ in steps.ended] == [0]
    np.testing.assert_array_equal(steps.observations, [[4, 2, 2], [6, 1, 1]])


def test_where_nothing_else_begins_the_lost_are_told_without_a_step() -> None:
    lanes = begun([3, 7])
    assert list(lanes.reset_lanes([0], [13]).failures) == [0]
    steps = lanes.step_lanes(ONE[:1], (1,))
    assert list(steps.failures) == [0]
    assert (steps.observations, steps.ended, steps.started) == (None, [], None)


@pytest.mark.parametrize("number", [2, 3, 5])
def test_lanes_that_ask_together_lose_nothing_to_one_another_twice(number: int) -> None:
    lanes = begun(range(number))
    assert len(lanes.reset_lanes(range(number), [13] * number).failures) == number
    assert not lanes.reset_lanes(range(number), range(number)).failures
    assert not lanes.step_lanes(np.ones(number, np.int64), tuple(range(number))).failures


@pytest.mark.parametrize(("shown", "is_fitting"), [(2.0, True), (2.7, False), (300.0, False), (-1.0, False)])
def test_whole_numbers_of_a_vector_are_never_cut_off(shown: float, is_fitting: bool) -> None:
    class Floats(Tape):
        observation_space = spaces.Box(0, 255, (3,), np.uint8)

        def _observe(self) -> Any:
            return np.uint8([self.number, self.time, self.acted])

    class FloatVec(SyncVectorEnv):
        def step(self, actions: Any) -> Any:
            observations, *rest = super().step(actions)
            return (np.full(observations.shape, shown, np.float32), *rest)

    vector = FloatVec([Floats] * 2, autoreset_mode=AutoresetMode.DISABLED)
    lanes = ForeignLanes(vector, lambda: vector)
    lanes.reset_lanes([0, 1], [0, 1])
    steps = lanes.step_lanes(ONE, (0, 1))
    assert bool(steps.failures) is not is_fitting
    if not is_fitting:
        assert "float32 numbers do not fit into uint8" in steps.failures[0].message


@pytest.mark.parametrize(
    ("space", "shown", "is_fitting"),
    [
        (spaces.Box(0, 255, (3,), np.uint8), np.int64([1, 2, 255]), True),
        (spaces.Box(0, 255, (3,), np.uint8), np.int64([1, 2, 300]), False),
        (spaces.Box(-100, 100, (3,), np.int8), np.uint8([1, 2, 200]), False),
        (spaces.MultiBinary(3), np.int64([0, 1, 300]), False),
        (spaces.Box(0, 1, (3,), np.bool_), np.int64([0, 1, 2]), False),
        (spaces.Box(0, 1, (3,), np.bool_), np.int64([0, 1, 1]), True),
    ],
)
def test_whole_numbers_of_another_width_are_never_wrapped(space: Any, shown: Any, is_fitting: bool) -> None:
    class Wide(SyncVectorEnv):
        def reset(self, **options: Any) -> Any:
            observations, infos = super().reset(**options)
            return np.stack([shown] * len(observations)), infos

    vector = Wide([Tape] * 2, autoreset_mode=AutoresetMode.DISABLED)
    vector.single_observation_space = space
    resets = ForeignLanes(vector, lambda: vector).reset_lanes([0, 1], [0, 1])
    assert bool(resets.failures) is not is_fitting
    if is_fitting:
        assert resets.observations.tolist() == [shown.tolist()] * 2
    else:
        assert f"{shown.dtype} numbers do not fit into {space.dtype}" in resets.failures[0].message
