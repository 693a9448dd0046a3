"""Time limits of lanes, whoever steps with whom; the expectation is one plain `gymnasium.make` a lane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from env_fakes import Tape
from env_plays import play_alone, play_lanes
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_envs.lanes import LaneVectorEnv
from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvRequest
from rlmesh_envs.rewards import RewardTap

NUM_LANES = 3
LIMIT = 4
#: Length of every tape, so that episodes end before, at and after the limit.
LENGTHS = (3, 4, 50)


class Pair:
    """Lanes, and beside each a plain environment; both are told the same and must answer the same."""

    def __init__(self, length: int, breaks_at: tuple[int, int] | None = None, *, is_tapped: bool = False) -> None:
        def twist(tape: Tape, answer: Any) -> Any:
            if (tape.number % 2, tape.time) == breaks_at:
                raise RuntimeError(f"tape {tape.number} broke")
            return answer

        def build() -> gym.Env[Any, Any]:
            if is_tapped:
                return gym.wrappers.TimeLimit(RewardTap(Tape(length, twist)), LIMIT)
            return gym.make("FakeLimited-v0", length=length, twist=twist, disable_env_checker=True)

        self._build = build
        self.lanes = LaneVectorEnv([build] * NUM_LANES)
        self._alone = [build() for _ in range(NUM_LANES)]
        self.running: set[int] = set()
        self._same: dict[tuple[int, ...], tuple[int, ...]] = {}

    def reset(self, lanes: Sequence[int], seeds: Sequence[int]) -> None:
        resets = self.lanes.reset_lanes(lanes, seeds)
        assert resets.failures == {}
        expected = [self._alone[lane].reset(seed=seed) for lane, seed in zip(lanes, seeds, strict=True)]
        np.testing.assert_array_equal(resets.observations, [answer[0] for answer in expected])
        assert list(resets.infos) == [answer[1] for answer in expected]
        self.running.update(lanes)

    def step(self, lanes: Sequence[int], *, as_list: bool) -> None:
        """Step some lanes; the same company is named by the same tuple, or by a new list."""
        named = self._same.setdefault(tuple(lanes), tuple(lanes))
        steps = self.lanes.step_lanes(np.array([lane + 1 for lane in lanes]), list(named) if as_list else named)
        ended = {row: (terminated, truncated) for row, terminated, truncated in steps.ended}
        assert list(ended) == sorted(ended)
        for row, lane in enumerate(lanes):
            answer = self._step_alone(lane)
            if isinstance(answer, str):
                assert steps.failures[row].message == answer
                assert row not in ended
                self.running.remove(lane)
                continue
            assert row not in steps.failures
            np.testing.assert_array_equal(steps.observations[row], answer[0])
            assert steps.rewards[row] == answer[1]
            assert ended.get(row, (False, False)) == (answer[2], answer[3])
            assert ({} if steps.infos is None else steps.infos[row]) == answer[4]
            if row in ended:
                self.running.remove(lane)

    def _step_alone(self, lane: int) -> Any:
        """Return the plain environment's answer; one that breaks is built anew, and its words are returned."""
        try:
            return self._alone[lane].step(lane + 1)
        except RuntimeError as error:
            self._alone[lane] = self._build()
            return f"RuntimeError: {error}"


_SUBSETS = st.permutations(range(NUM_LANES)).flatmap(
    lambda lanes: st.integers(1, NUM_LANES).map(lambda count: lanes[:count])
)
#: What is done next: some lanes, whether they are reset or stepped, how often, and a seed.
_ACTS = st.lists(
    st.tuples(_SUBSETS, st.booleans(), st.integers(1, 5), st.integers(0, 99), st.booleans()), max_size=25
)


def _perform(pair: Pair, acts: Sequence[Any]) -> None:
    for lanes, is_reset, times, seed, as_list in acts:
        if is_reset:
            pair.reset(lanes, [seed + lane for lane in lanes])
            continue
        for _ in range(times):
            able = [lane for lane in lanes if lane in pair.running]
            if able:
                pair.step(able, as_list=as_list)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(length=st.sampled_from(LENGTHS), is_tapped=st.booleans(), acts=_ACTS)
def test_any_interleaving_of_resets_and_partial_steps_equals_environments_stepped_alone(length, is_tapped, acts):
    _perform(Pair(length, is_tapped=is_tapped), acts)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(length=st.sampled_from(LENGTHS), breaks=st.tuples(st.just(1), st.integers(1, 3)), acts=_ACTS)
def test_any_interleaving_with_environments_that_break_equals_environments_built_anew(length, breaks, acts):
    _perform(Pair(length, breaks), acts)


def test_a_rebuilt_lane_and_those_reset_with_it_have_their_whole_limit():
    pair = Pair(50, breaks_at=(1, 2))
    pair.reset([0, 1], [0, 1])
    pair.step([0, 1], as_list=False)
    pair.step([0, 1], as_list=False)
    assert pair.running == {0}
    pair.reset([1, 2, 0], [2, 2, 2])
    for _ in range(LIMIT):
        assert pair.running == {0, 1, 2}
        pair.step([0, 1, 2], as_list=False)
    assert pair.running == set()


@pytest.mark.parametrize("number", [1, 2])
def test_an_episode_that_ends_at_its_limit_is_both_and_counted_once(number):
    lanes = LaneVectorEnv([lambda: gym.make("FakeLimited-v0", length=4, disable_env_checker=True)] * number)
    lanes.reset_lanes(range(number), [1] * number)
    rows = tuple(range(number))
    for _ in range(3):
        assert lanes.step_lanes(np.zeros(number, np.int64), rows).ended == []
    assert lanes.step_lanes(np.zeros(number, np.int64), rows).ended == [(row, True, True) for row in rows]


def test_a_lane_stepped_past_its_limit_stays_truncated():
    pair = Pair(50)
    pair.reset([0, 1], [0, 1])
    for _ in range(LIMIT + 3):
        pair.step([0, 1], as_list=False)
        pair.running.update([0, 1])


@pytest.mark.parametrize("limits", [(3, 5), (5, 3), (3, None), (None, 3)])
def test_each_lane_keeps_the_limit_that_it_was_built_with(limits):
    def build(limit: int | None) -> gym.Env[Any, Any]:
        return gym.make("FakeTape-v0", length=7, max_episode_steps=limit, disable_env_checker=True)

    lanes = LaneVectorEnv([lambda limit=limit: build(limit) for limit in limits])
    played = play_lanes(lanes, [1, 1])
    assert [lane[0].length for lane in played] == [7 if limit is None else limit for limit in limits]


@pytest.mark.parametrize("number", [1, 3])
def test_max_episode_steps_replaces_a_shorter_registered_limit(number):
    lanes, info = make_lanes(EnvRequest(id="Pendulum-v1", num_envs=number, max_episode_steps=1000))
    rows = tuple(range(number))
    lanes.reset_lanes(rows, rows)
    ends = [lanes.step_lanes(np.zeros((number, 1), np.float32), rows).ended for _ in range(1000)]
    assert info.max_episode_steps == 1000
    assert ends == [[]] * 999 + [[(row, False, True) for row in rows]]


def test_a_registered_limit_is_kept_when_none_is_asked_for():
    lanes, info = make_lanes(EnvRequest(id="FakeLimited-v0", kwargs={"length": 50}))
    assert info.max_episode_steps == LIMIT
    assert [played.length for played in play_lanes(lanes, [1, 2])[0]] == [LIMIT, LIMIT]


@pytest.mark.parametrize(("asked", "length"), [(None, 4), (2, 2), (9, 9)])
def test_max_episode_steps_replaces_the_limit_inside_what_a_function_makes(asked, length):
    request = EnvRequest(id="env_fakes:make_limited", max_episode_steps=asked)
    lanes, info = make_lanes(request)
    assert play_lanes(lanes, [1])[0][0].length == length
    assert info.max_episode_steps == length


@pytest.mark.parametrize("inner", [3, 6])
def test_the_shorter_of_two_limits_ends_the_episode_as_it_does_alone(inner):
    def build() -> gym.Env[Any, Any]:
        return gym.wrappers.TimeLimit(gym.wrappers.TimeLimit(Tape(50), inner), 4)

    played = play_lanes(LaneVectorEnv([build]), [1])[0][0]
    assert played.row() == play_alone(build, 1).row()
    assert played.length == min(inner, 4)


def test_a_limit_underneath_another_wrapper_is_kept_by_that_wrapper():
    def build() -> gym.Env[Any, Any]:
        limited = gym.wrappers.TimeLimit(Tape(50), 4)
        return gym.wrappers.TimeLimit(gym.wrappers.TransformReward(limited, lambda reward: reward), 9)

    assert play_lanes(LaneVectorEnv([build] * 2), [1, 2])[1][0].length == 4
