"""RewardTap: wrappers that a route adds never change the score."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from env_fakes import SignReward, Tape
from env_plays import act, in_order, play_alone, play_lanes

from rlmesh_envs.lanes import LaneVectorEnv
from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvRequest, WrapperRequest
from rlmesh_envs.rewards import RawReward, RewardTap


def lanes_under(*wrappers: WrapperRequest, num_envs: int = 2, **rest: Any) -> LaneVectorEnv:
    lanes, _ = make_lanes(EnvRequest(id="FakeTape-v0", wrappers=wrappers, num_envs=num_envs, **rest))
    return lanes


def sign() -> WrapperRequest:
    return WrapperRequest(name="env_fakes:SignReward")


def test_a_tap_hands_over_the_sum_since_it_was_last_asked():
    tap = RewardTap(Tape(9))
    tap.reset(seed=1)
    tap.step(0)
    tap.step(8)
    assert tap.take() == 10 + (11 + 1)
    assert tap.take() == 0.0
    tap.step(0)
    assert tap.take() == 12.0


def test_what_is_paid_inside_a_reset_is_not_the_policys():
    class EagerReset(gym.Wrapper):
        def reset(self, **options):
            answer = self.env.reset(**options)
            self.env.step(0)
            return answer

    tap = RewardTap(Tape(9))
    env = RawReward(EagerReset(tap), tap)
    env.reset(seed=1)
    assert env.step(0)[1] == 11.0


def test_a_tap_passes_everything_on_as_it_is():
    tap, bare = RewardTap(Tape()), Tape()
    tapped, plain = tap.reset(seed=3, options={"a": 1}), bare.reset(seed=3, options={"a": 1})
    np.testing.assert_array_equal(tapped[0], plain[0])
    assert tapped[1] == plain[1]
    assert tap.unwrapped.journal == bare.journal
    tapped, plain = tap.step(5), bare.step(5)
    np.testing.assert_array_equal(tapped[0], plain[0])
    assert tapped[1:] == plain[1:]


def test_float32_rewards_are_summed_in_float64():
    paid = iter([np.array([16777216.0], np.float32), np.float32(1)])
    tap = RewardTap(Tape(9, twist=lambda tape, answer: (answer[0], next(paid), *answer[2:])))
    tap.reset(seed=1)
    tap.step(0)
    tap.step(0)
    assert tap.take() == 16777217.0


@pytest.mark.parametrize("number", [1, 3])
def test_a_wrapper_that_clips_rewards_does_not_change_the_score(number):
    played = in_order(play_lanes(lanes_under(sign(), num_envs=number), range(6)))
    assert [episode.row() for episode in played] == [play_alone(Tape, seed).row() for seed in range(6)]


@pytest.mark.parametrize("number", [1, 2])
def test_a_wrapper_that_repeats_actions_pays_the_sum_of_its_inner_steps(number):
    repeat = WrapperRequest(name="env_fakes:Repeat", kwargs={"times": 3})
    played = in_order(play_lanes(lanes_under(repeat, sign(), num_envs=number, kwargs={"length": 7}), [4, 5]))
    for episode, seed in zip(played, (4, 5), strict=True):
        actions = [int(act(observation)) for observation in episode.observations[:3]]
        inner = np.repeat(actions, 3)[:7] / 8 + 10 * seed + np.arange(7)
        assert episode.rewards == [inner[:3].sum(), inner[3:6].sum(), inner[6:].sum()]


def test_a_wrapper_that_is_no_gymnasium_wrapper_does_not_change_the_score():
    holder = WrapperRequest(name="env_fakes:Holder")
    played = play_lanes(lanes_under(holder, num_envs=1), [2])[0][0]
    assert played.rewards == play_alone(Tape, 2).rewards


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_under_gymnasiums_autoreset_a_wrapper_does_not_change_the_score_either(mode):
    lanes = lanes_under(sign(), autoreset=mode)
    for episode in in_order(play_lanes(lanes, [1, 2, 3, 4], shares=True)):
        assert episode.total == play_alone(Tape, episode.number).total


def test_a_wrapper_inside_the_environments_own_definition_keeps_its_rewards():
    played = play_lanes(LaneVectorEnv([lambda: SignReward(Tape())] * 2), [1, 2])
    assert [lane[0].rewards for lane in played] == [[1.0] * 3, [1.0] * 4]


@pytest.mark.parametrize("number", [1, 2])
def test_a_reward_that_is_no_number_fails_its_lane_under_a_wrapper_too(number):
    def twist(tape: Tape, answer: Any) -> Any:
        return (answer[0], [1.0, 2.0], *answer[2:]) if tape.number == 0 else answer

    lanes = lanes_under(sign(), num_envs=number, kwargs={"twist": twist})
    lanes.reset_lanes(range(number), range(number))
    steps = lanes.step_lanes(np.zeros(number, np.int64), tuple(range(number)))
    assert [failure.message for failure in steps.failures.values()] == [
        "ValueError: the reward has shape (2,), expected one number"
    ]
    assert list(steps.failures) == [0]


@pytest.mark.parametrize("number", [1, 2])
def test_an_inner_reward_that_is_nan_fails_its_lane_whatever_the_wrapper_shows(number):
    def twist(tape: Tape, answer: Any) -> Any:
        return (answer[0], float("nan") if tape.number == 0 else 1.0, *answer[2:])

    calm = WrapperRequest(name="TransformReward", kwargs={"func": lambda reward: 0.0})
    lanes = lanes_under(calm, num_envs=number, kwargs={"twist": twist})
    lanes.reset_lanes(range(number), range(number))
    steps = lanes.step_lanes(np.zeros(number, np.int64), tuple(range(number)))
    assert {row: failure.message for row, failure in steps.failures.items()} == {
        0: "the environment's reward is nan"
    }
