"""LaneVectorEnv as a gymnasium vector environment, and as lanes."""

from __future__ import annotations

import env_fakes
import gymnasium as gym
import numpy as np
import pytest
from env_fakes import Tape
from env_plays import in_order, play_alone, play_lanes
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_envs.lanes import LaneVectorEnv


def cartpoles(count: int) -> LaneVectorEnv:
    return LaneVectorEnv([lambda: gym.make("CartPole-v1")] * count)


def tapes(count: int) -> LaneVectorEnv:
    return LaneVectorEnv([Tape] * count)


def disabled(count: int) -> SyncVectorEnv:
    return SyncVectorEnv([Tape] * count, autoreset_mode=AutoresetMode.DISABLED)


def journal(lanes: LaneVectorEnv, lane: int) -> list:
    return lanes.envs[lane].unwrapped.journal


def test_it_is_a_vector_env_with_batched_spaces_and_no_autoreset():
    lanes = cartpoles(3)
    one = gym.make("CartPole-v1")
    assert isinstance(lanes, gym.vector.VectorEnv)
    assert lanes.num_envs == 3
    assert lanes.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert lanes.single_observation_space == one.observation_space
    assert lanes.single_action_space == one.action_space
    assert lanes.observation_space == gym.vector.utils.batch_space(one.observation_space, 3)
    assert lanes.action_space == gym.spaces.MultiDiscrete([2, 2, 2])


def test_the_metadata_of_the_environments_class_stays_as_it_was():
    tapes(2)
    assert "autoreset_mode" not in Tape.metadata


def test_a_lane_equals_a_single_environment_of_its_seed():
    lanes = cartpoles(3)
    observations, infos = lanes.reset(seed=[7, 0, 2**31])
    singles = [gym.make("CartPole-v1") for _ in range(3)]
    expected = [env.reset(seed=seed)[0] for env, seed in zip(singles, [7, 0, 2**31], strict=True)]
    np.testing.assert_array_equal(observations, expected)
    assert infos == {}
    for step in range(8):
        actions = np.array([step % 2, 1, 0])
        observations, rewards, terminated, truncated, infos = lanes.step(actions)
        answers = [env.step(action) for env, action in zip(singles, actions, strict=True)]
        np.testing.assert_array_equal(observations, [answer[0] for answer in answers])
        assert rewards.tolist() == [answer[1] for answer in answers]
        assert terminated.tolist() == [answer[2] for answer in answers]
        assert truncated.tolist() == [answer[3] for answer in answers]
        assert observations in lanes.observation_space
    assert (rewards.dtype, terminated.dtype, truncated.dtype) == (np.float64, np.bool_, np.bool_)


def test_one_seed_gives_lane_i_the_seed_plus_i():
    observations, _ = tapes(3).reset(seed=40)
    assert observations[:, 0].tolist() == [40, 41, 42]


def test_without_a_seed_every_lane_draws_its_own():
    lanes = tapes(2)
    lanes.reset()
    assert [entry[1] for lane in range(2) for entry in journal(lanes, lane)] == [None, None]


def test_a_list_of_seeds_needs_one_for_each_lane():
    with pytest.raises(ValueError, match=r"expected 3 seeds.*got 2"):
        tapes(3).reset(seed=[1, 2])


def test_reset_mask_resets_its_lanes_alone_and_shows_the_others_as_they_stand():
    lanes = tapes(3)
    lanes.reset(seed=1)
    lanes.step(np.array([1, 2, 3]))
    observations, _ = lanes.reset(seed=[5, 6, 7], options={"reset_mask": np.array([False, True, False])})
    np.testing.assert_array_equal(observations, [[1, 1, 1], [6, 0, 0], [3, 1, 3]])
    assert [len(journal(lanes, lane)) for lane in range(3)] == [2, 3, 2]
    assert journal(lanes, 1)[-1][1] == 6


@pytest.mark.parametrize("mask", [np.array([True, False]), np.ones(4, np.bool_)])
def test_a_reset_mask_of_another_length_is_refused_and_resets_nobody(mask):
    lanes = tapes(3)
    lanes.reset(seed=1)
    with pytest.raises(ValueError, match="3"):
        lanes.reset(seed=1, options={"reset_mask": mask})
    assert [len(journal(lanes, lane)) for lane in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("mask", [None, np.array([True, False])])
def test_reset_options_reach_the_environments_without_the_mask(mask):
    options = {"height": 3} | ({} if mask is None else {"reset_mask": mask})
    lanes = tapes(2)
    lanes.reset(seed=1)
    lanes.reset(seed=1, options=dict(options))
    assert journal(lanes, 0)[-1] == ("reset", 1, {"height": 3})


def test_infos_are_merged_as_gymnasium_merges_them():
    ours, theirs = tapes(3), disabled(3)
    _compare_infos(ours.reset(seed=10)[1], theirs.reset(seed=10)[1])
    for _ in range(2):
        actions = np.array([1, 2, 3])
        _compare_infos(ours.step(actions)[4], theirs.step(actions)[4])
    mask = np.array([True, False, True])
    _compare_infos(
        ours.reset(seed=11, options={"reset_mask": mask})[1],
        theirs.reset(seed=11, options={"reset_mask": mask})[1],
    )


def _compare_infos(ours: dict, theirs: dict) -> None:
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        np.testing.assert_array_equal(ours[key], value)


def test_gymnasiums_own_statistics_wrapper_counts_on_lanes_what_single_episodes_pay():
    env = RecordEpisodeStatistics(tapes(2))
    observations, _ = env.reset(seed=[4, 5])
    counted = {}
    is_over = np.zeros(2, np.bool_)
    while len(counted) < 2:
        actions = np.array([int(row[0] + 3 * row[1]) % 8 for row in observations])
        observations, _, terminated, truncated, infos = env.step(actions)
        is_over = terminated | truncated
        for lane in np.flatnonzero(is_over):
            counted[int(lane)] = (infos["episode"]["r"][lane], infos["episode"]["l"][lane])
        if is_over.any():
            observations, _ = env.reset(seed=[4, 5], options={"reset_mask": is_over})
    alone = [play_alone(Tape, seed) for seed in (4, 5)]
    assert counted == {lane: (played.total, played.length) for lane, played in enumerate(alone)}


def test_step_lanes_touches_only_the_lanes_named_in_their_order():
    lanes = tapes(4)
    lanes.reset_lanes([3, 0], [30, 31])
    lanes.reset_lanes([1], [32])
    steps = lanes.step_lanes(np.array([5, 6]), (3, 1))
    assert steps.observations[:, 0].tolist() == [30, 32]
    assert steps.rewards == [300 + 5 / 8, 320 + 6 / 8]
    assert journal(lanes, 0) == [("reset", 31, None)]
    assert journal(lanes, 1) == [("reset", 32, None), ("step", 6)]
    assert journal(lanes, 2) == []
    assert journal(lanes, 3) == [("reset", 30, None), ("step", 5)]


@pytest.mark.parametrize("number", [1, 3, 4, 12])
def test_number_of_lanes_changes_no_episode(number):
    played = in_order(play_lanes(tapes(number), range(12)))
    assert [episode.row() for episode in played] == [play_alone(Tape, seed).row() for seed in range(12)]


def test_each_lanes_info_holds_what_its_environment_gave_whatever_the_next_one_writes_into_it():
    values, tag = np.zeros(2), object()

    def twist(tape, answer):
        values[:] = tape.number
        return (*answer[:4], {"values": values, "tag": tag})

    lanes = LaneVectorEnv([lambda: Tape(twist=twist)] * 2)
    lanes.reset_lanes([0, 1], [1, 2])
    infos = lanes.step_lanes(np.array([0, 0]), (0, 1)).infos
    numbers = [env.unwrapped.number for env in lanes.envs]
    assert len(set(numbers)) == 2
    assert [info["values"].tolist() for info in infos] == [[number, number] for number in numbers]
    assert [info["tag"] is tag for info in infos] == [True, True]


def test_infos_are_none_when_no_lane_reports():
    lanes = tapes(2)
    assert lanes.reset_lanes([0, 1], [2, 3]).infos == [{}, {"start": 3}]
    assert lanes.step_lanes(np.array([0, 0]), (0, 1)).infos is None


def test_lanes_of_differing_spaces_are_refused_with_both_spaces():
    spaces = [gym.spaces.Box(0, high, (2,)) for high in (1, 2)]
    with pytest.raises(EnvironmentBuildError) as caught:
        LaneVectorEnv([lambda space=space: env_fakes.Sampled(space) for space in spaces])
    assert "observation_space of lane 1" in caught.value.cause
    assert str(spaces[0]) in caught.value.cause
    assert str(spaces[1]) in caught.value.cause


@pytest.mark.parametrize("fault", ["raises", "differs"])
def test_lanes_that_cannot_be_built_leave_no_environment_open(fault):
    class Other(Tape):
        action_space = gym.spaces.Discrete(2)

    def last() -> Tape:
        if fault == "raises":
            raise MemoryError("no GPU left")
        return Other()

    built = [Tape(), Tape()]
    with pytest.raises((MemoryError, EnvironmentBuildError), match=r"no GPU left|action_space of lane 2"):
        LaneVectorEnv([*(lambda env=env: env for env in built), last])
    assert [env.is_closed for env in built] == [True, True]


def test_methods_and_attributes_of_every_lane_can_be_reached():
    lanes = tapes(2)
    lanes.set_attr("length", [3, 9])
    assert lanes.get_attr("length") == (3, 9)
    lanes.set_attr("length", 4)
    assert lanes.call("length") == (4, 4)
    lanes.reset(seed=1)
    assert [row.tolist() for row in lanes.call("_observe")] == [[1, 0, 0], [2, 0, 0]]


def test_closing_closes_every_lane_even_after_one_that_cannot_be_closed():
    class Stuck(Tape):
        def close(self):
            raise OSError("the window is stuck")

    built = [Stuck(), Tape()]
    lanes = LaneVectorEnv([lambda env=env: env for env in built])
    lanes.close()
    lanes.close()
    assert built[1].is_closed


@pytest.mark.parametrize("actions", [np.array([1]), np.array([1, 2, 3, 4])])
def test_a_batch_of_too_few_or_too_many_actions_is_refused_and_steps_nobody(actions):
    lanes = tapes(3)
    lanes.reset(seed=0)
    with pytest.raises(ValueError, match="3"):
        lanes.step(actions)
    assert [len(journal(lanes, lane)) for lane in range(3)] == [1, 1, 1]


def test_what_an_environment_raises_comes_out_of_step_and_reset_as_it_is():
    def twist(tape, answer):
        raise ZeroDivisionError(f"tape {tape.number} divided by zero")

    lanes = LaneVectorEnv([lambda: Tape(twist=twist)] * 2)
    lanes.reset(seed=5)
    with pytest.raises(ZeroDivisionError, match="tape 5 divided by zero"):
        lanes.step(np.array([0, 0]))


def paying(paid):
    """Return lanes that stand at their first observation, each of which pays its own reward, and their numbers."""

    def pay(tape, answer):
        return (answer[0], paid[tape.number], *answer[2:])

    lanes = LaneVectorEnv([lambda: Tape(9, twist=pay)] * len(paid))
    everyone = tuple(range(len(paid)))
    lanes.reset_lanes(everyone, everyone)
    return lanes, everyone


@pytest.mark.parametrize("paid", [(10**400, -(10**400), 1.0), (1.0, 10**400, -(10**400)), (10**400,)])
def test_a_whole_number_that_no_float_holds_fails_its_lane_alone(paid):
    lanes, everyone = paying(paid)
    steps = lanes.step_lanes(np.zeros(len(paid), np.int64), everyone)
    assert list(steps.failures) == [row for row, reward in enumerate(paid) if abs(reward) > 1]
    assert "401 digits" in next(iter(steps.failures.values())).message


@pytest.mark.parametrize(
    "paid",
    [
        (1.5,),
        (np.float64(1.5),),
        (np.float64(1.5), np.float64(-2.0)),
        (np.float64(1.5), np.float32(0.1)),
        (np.float32(0.1), np.float64(1.5)),
        (np.float64(1.5), 2, True),
        (np.float64(1.5), np.int64(3), np.bool_(True)),
        (np.float64(1.5), np.array([2.5]), np.array(0.5)),
        (np.float64(2.0**53), 1.0, 2**53 + 1),
    ],
)
def test_rewards_of_any_type_are_the_float64_that_they_hold(paid):
    lanes, everyone = paying(paid)
    for _ in range(2):
        steps = lanes.step_lanes(np.zeros(len(paid), np.int64), everyone)
        assert not steps.failures
        assert [type(reward) for reward in steps.rewards] == [float] * len(paid)
        assert list(steps.rewards) == [float(np.asarray(reward).reshape(())) for reward in paid]


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("others", [(), (1.0,), (np.float64(1.0), 2)])
def test_a_reward_inside_an_array_of_objects_counts_alone_and_in_company(shape, others):
    boxed = np.full(shape, 1.5, object)
    lanes, everyone = paying((boxed, *others))
    steps = lanes.step_lanes(np.zeros(len(everyone), np.int64), everyone)
    assert not steps.failures
    assert [float(reward) for reward in steps.rewards] == [1.5, *others]


@pytest.mark.parametrize("inside", ["1.5", None, [1.5, 2.5]])
def test_what_is_no_number_inside_an_array_of_objects_fails_its_lane(inside):
    boxed = np.empty((), object)
    boxed[()] = inside
    lanes, everyone = paying((boxed, 1.0))
    steps = lanes.step_lanes(np.zeros(2, np.int64), everyone)
    assert list(steps.failures) == [0]
    assert "the reward" in steps.failures[0].message
