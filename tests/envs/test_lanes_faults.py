"""What one lane's environment gets wrong stays with that lane."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from env_fakes import Answer, Tape
from env_plays import in_order, play_alone, play_lanes

from rlmesh_envs.lane_set import LaneSet
from rlmesh_envs.lanes import LaneVectorEnv

#: The tape whose second step goes wrong; its lane has neighbours with other numbers.
ODD = 7


class WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class NoArray:
    """Converts to an array as a tensor does that needs its gradient."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise RuntimeError("call detach first")


def raising(error: Exception) -> Callable[[Tape, Answer], Any]:
    def change(tape: Tape, answer: Answer) -> Any:
        raise error

    return change


def giving(**parts: Any) -> Callable[[Tape, Answer], Any]:
    """Return what puts other parts into a step's answer."""
    names = ("observation", "reward", "terminated", "truncated", "info")

    def change(tape: Tape, answer: Answer) -> Any:
        return tuple(parts.get(name, part) for name, part in zip(names, answer, strict=True))

    return change


def lanes_of(count: int, change: Callable[[Tape, Answer], Any], *, length: int = 3) -> LaneVectorEnv:
    """Return lanes of tapes; `change` gets the second step of tape ODD."""

    def twist(tape: Tape, answer: Answer) -> Any:
        return change(tape, answer) if (tape.number, tape.time) == (ODD, 2) else answer

    return LaneVectorEnv([lambda: Tape(length, twist=twist)] * count)


FAULTS = {
    "raises": (raising(ValueError("the solver diverged")), "ValueError: the solver diverged"),
    "raises-without-words": (raising(WordlessError()), "WordlessError"),
    "raises-empty": (raising(KeyError()), "KeyError"),
    "stop-iteration": (raising(StopIteration("no more frames")), "StopIteration: no more frames"),
    "not-a-tuple": (lambda tape, answer: None, "None"),
    "four-parts": (lambda tape, answer: answer[:4], "4"),
    "reward-nan": (giving(reward=float("nan")), "reward is nan"),
    "reward-inf": (giving(reward=np.float32(np.inf)), "reward is inf"),
    "reward-minus-inf": (giving(reward=np.array([-np.inf])), "reward is -inf"),
    "reward-two": (giving(reward=np.array([1.0, 2.0])), r"shape (2,)"),
    "reward-empty": (giving(reward=np.array([])), r"shape (0,)"),
    "reward-none": (giving(reward=None), ""),
    "reward-text": (giving(reward="1.5"), ""),
    "reward-dict": (giving(reward={"a": 1.0}), ""),
    "reward-complex": (giving(reward=1j), ""),
    "reward-no-array": (giving(reward=NoArray()), ""),
    "reward-huge": (giving(reward=10**400), ""),
    "flag-two": (giving(terminated=np.array([True, False])), "ambiguous"),
    "info-array": (giving(info=np.zeros(2)), ""),
    "observation-none": (giving(observation=None), ""),
    "observation-one": (giving(observation=np.zeros(1, np.float32)), "(1,)"),
    "observation-scalar": (giving(observation=np.float32(0)), "()"),
    "observation-row": (giving(observation=np.zeros((1, 3), np.float32)), "(1, 3)"),
    "observation-ragged": (giving(observation=[[1.0], [2.0, 3.0], []]), ""),
    "observation-dict": (giving(observation={"x": 1}), ""),
    "observation-text": (giving(observation="abc"), ""),
    "observation-no-array": (giving(observation=NoArray()), ""),
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_step_fails_its_own_lane_alone(fault, place):
    change, words = FAULTS[fault]
    lanes = lanes_of(3, change)
    seeds = [4, 5, 6]
    seeds[place] = ODD
    lanes.reset_lanes([0, 1, 2], seeds)
    lanes.step_lanes(np.array([1, 1, 1]), (0, 1, 2))
    steps = lanes.step_lanes(np.array([1, 1, 1]), (0, 1, 2))
    assert list(steps.failures) == [place]
    assert steps.failures[place].phase == "step"
    assert words in steps.failures[place].message
    for row in {0, 1, 2} - {place}:
        assert steps.observations[row].tolist() == [seeds[row], 2, 2]
        assert steps.rewards[row] == 10 * seeds[row] + 1 + 1 / 8


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_step_of_a_lane_alone_fails_it(fault):
    change, words = FAULTS[fault]
    lanes = lanes_of(1, change)
    lanes.reset_lanes([0], [ODD])
    lanes.step_lanes(np.array([1]), (0,))
    steps = lanes.step_lanes(np.array([1]), (0,))
    assert list(steps.failures) == [0]
    assert words in steps.failures[0].message
    assert steps.ended == []


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", [1, 2])
def test_after_a_faulty_step_every_other_episode_is_as_if_played_alone(fault, number):
    played = in_order(play_lanes(lanes_of(number, FAULTS[fault][0]), [6, ODD, 8, 9]))
    good = [episode.row() for episode in played if episode.number != ODD]
    assert good == [play_alone(lambda: Tape(3), seed).row() for seed in (6, 8, 9)]
    [odd] = [episode for episode in played if episode.number == ODD]
    assert (odd.length, bool(odd.end)) == (1, True)


def test_a_step_that_fails_at_its_end_has_not_ended():
    lanes = lanes_of(2, giving(reward=float("nan")), length=2)
    lanes.reset_lanes([0, 1], [ODD, 4])
    lanes.step_lanes(np.array([0, 0]), (0, 1))
    steps = lanes.step_lanes(np.array([0, 0]), (0, 1))
    assert [row for row, *_ in steps.ended] == [1]


def test_a_failure_names_the_line_it_came_from():
    lanes = lanes_of(2, raising(ValueError("here")))
    lanes.reset_lanes([0, 1], [4, ODD])
    lanes.step_lanes(np.array([0, 0]), (0, 1))
    failure = lanes.step_lanes(np.array([0, 0]), (0, 1)).failures[1]
    assert __file__ in failure.detail
    assert "in change" in failure.detail


def test_a_broken_environment_is_closed_and_built_anew_before_its_next_episode_only():
    built: list[Tape] = []

    def build() -> Tape:
        built.append(Tape(3, twist=raising(ValueError("broken")) if not built else None))
        return built[-1]

    lanes = LaneVectorEnv([build, Tape])
    lanes.reset_lanes([0, 1], [1, 2])
    assert list(lanes.step_lanes(np.array([0, 0]), (0, 1)).failures) == [0]
    assert (len(built), built[0].is_closed) == (1, False)
    assert lanes.reset_lanes([1], [3]).failures == {}
    assert len(built) == 1
    assert lanes.reset_lanes([0], [4]).failures == {}
    assert (len(built), built[0].is_closed, lanes.envs[0]) == (2, True, built[1])
    assert lanes.reset_lanes([0], [5]).failures == {}
    assert len(built) == 2


@pytest.mark.parametrize("reward", [float("nan"), float("inf"), "much"])
def test_an_environment_that_pays_what_is_no_reward_is_built_anew(reward):
    """A simulation that has blown up may go on paying NaN, in episodes that have not blown it up."""
    built: list[Tape] = []

    def build() -> Tape:
        built.append(Tape(3, twist=giving(reward=reward) if not built else None))
        return built[-1]

    lanes = LaneVectorEnv([build, Tape])
    lanes.reset_lanes([0, 1], [1, 2])
    assert list(lanes.step_lanes(np.array([0, 0]), (0, 1)).failures) == [0]
    assert lanes.reset_lanes([0], [4]).failures == {}
    assert (len(built), built[0].is_closed, lanes.envs[0]) == (2, True, built[1])
    assert lanes.step_lanes(np.array([0, 0]), (0, 1)).failures == {}


def test_a_reset_that_raises_fails_its_own_lane_and_leaves_no_trace_in_the_next():
    class Shy(Tape):
        def reset(self, *, seed=None, options=None):
            answer = super().reset(seed=seed, options=options)
            if seed == ODD:
                raise OSError("no such scene")
            return answer

    lanes = LaneVectorEnv([lambda: Shy(3)] * 3)
    resets = lanes.reset_lanes([2, 0, 1], [5, ODD, 6])
    assert {row: failure.phase for row, failure in resets.failures.items()} == {1: "reset"}
    assert resets.failures[1].message == "OSError: no such scene"
    assert resets.observations[[0, 2]].tolist() == [[5, 0, 0], [6, 0, 0]]
    assert resets.infos == [{"start": 5}, {}, {}]
    played = in_order(play_lanes(lanes, [8, ODD, 9]))
    assert [episode.row() for episode in played[1:]] == [play_alone(lambda: Tape(3), n).row() for n in (8, 9)]
    assert played[0].end == "OSError: no such scene"


@pytest.mark.parametrize("answer", [None, (np.zeros(3, np.float32),), (np.zeros(2, np.float32), {})])
def test_a_reset_with_a_wrong_answer_fails_its_lane(answer):
    class Odd(Tape):
        def reset(self, *, seed=None, options=None):
            return answer if seed == ODD else super().reset(seed=seed, options=options)

    resets = LaneVectorEnv([Odd, Odd]).reset_lanes([0, 1], [ODD, 2])
    assert list(resets.failures) == [0]
    assert resets.observations[1].tolist() == [2, 0, 0]


def test_a_reset_without_an_info_dict_reports_nothing():
    class Silent(Tape):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed, options=options)[0], None

    resets = LaneVectorEnv([Silent]).reset_lanes([0], [2])
    assert list(resets.infos) == [{}]


def test_an_environment_that_cannot_be_built_anew_fails_its_episodes_until_it_can():
    twists = [raising(ValueError("broken")), None]
    attempts = []

    def build() -> Tape:
        attempts.append(len(attempts))
        if len(attempts) == 2:
            raise MemoryError("no GPU left")
        return Tape(3, twist=twists.pop(0))

    played = play_lanes(LaneVectorEnv([build]), [1, 2, 3])[0]
    assert [episode.end for episode in played[:2]] == ["ValueError: broken", "MemoryError: no GPU left"]
    assert played[2].row() == play_alone(lambda: Tape(3), 3).row()


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("reward", "number"),
    [
        (2, 2.0),
        (True, 1.0),
        (np.bool_(True), 1.0),
        (np.float16(0.5), 0.5),
        (np.float32(0.1), 0.10000000149011612),
        (np.int64(-3), -3.0),
        (np.array(1.5), 1.5),
        (np.array([2.5], np.float32), 2.5),
        (np.array([[4]]), 4.0),
        ([3.0], 3.0),
        (Decimal("0.25"), 0.25),
        (1e308, 1e308),
    ],
)
def test_a_reward_that_is_one_number_counts_as_that_number(reward, number, count):
    lanes = LaneVectorEnv([lambda: Tape(3, twist=giving(reward=reward))] * count)
    lanes.reset_lanes(range(count), range(count))
    steps = lanes.step_lanes(np.zeros(count, np.int64), tuple(range(count)))
    assert steps.failures == {}
    assert np.asarray(steps.rewards, np.float64).tolist() == [number] * count


@pytest.mark.parametrize("mixed", [[1.5, np.float32(0.1)], [np.float32(0.1), 1.5], [2, np.array([0.25])]])
def test_neighbours_rewards_of_other_types_keep_their_precision(mixed):
    lanes = LaneVectorEnv([lambda one=one: Tape(3, twist=giving(reward=one)) for one in mixed])
    lanes.reset_lanes([0, 1], [1, 2])
    rewards = lanes.step_lanes(np.zeros(2, np.int64), (0, 1)).rewards
    assert list(rewards) == [float(np.asarray(one).reshape(())) for one in mixed]
    assert {type(reward) for reward in rewards} == {float}


@pytest.mark.parametrize("count", [1, 2])
def test_a_return_does_not_stop_at_the_last_whole_number_of_float32(count):
    def twist(tape: Tape, answer: Answer) -> Any:
        return giving(reward=np.float32(16777216.0 if tape.time == 1 else 1.0))(tape, answer)

    played = play_lanes(LaneVectorEnv([lambda: Tape(3, twist=twist)] * count), [1, 2])
    assert played[0][0].total == 16777218.0


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("yes", [True, np.bool_(True), 1, np.array(True), np.array([True])])
@pytest.mark.parametrize("no", [False, np.bool_(False), 0, np.array([False])])
def test_flags_of_any_truth_type_end_the_episode_as_plain_bools(yes, no, count):
    lanes = LaneVectorEnv([lambda: Tape(9, twist=giving(terminated=no, truncated=yes))] * count)
    lanes.reset_lanes(range(count), range(count))
    ended = lanes.step_lanes(np.zeros(count, np.int64), tuple(range(count))).ended
    assert ended == [(row, False, True) for row in range(count)]
    assert {type(flag) for _, *flags in ended for flag in flags} == {bool}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda full: full[:4], "step did not return (observation, reward, terminated, truncated, info): "),
        (lambda full: (*full, 1), "step did not return (observation, reward, terminated, truncated, info): "),
        (lambda full: None, "step did not return (observation, reward, terminated, truncated, info): "),
        (lambda full: int("x"), "ValueError: invalid literal"),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_step_that_returns_another_number_of_values_is_told_what_is_expected(answer, words, number):
    lanes = LaneSet([lambda: Tape(twist=lambda tape, full: answer(full))] * number)
    lanes.reset_lanes(range(number), range(number))
    steps = lanes.step_lanes(np.ones(number, np.int64), tuple(range(number)))
    assert [failure.message.startswith(words) for failure in steps.failures.values()] == [True] * number


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros(2), "reset returned ndarray, expected (observation, info)"),
        ((np.zeros(3),), "reset returned 1 values"),
        ((np.zeros(3), {}, 1), "reset returned 3 values"),
        (None, "reset returned NoneType"),
    ],
)
def test_a_reset_of_the_old_kind_is_told_what_is_expected(given, words):
    class Old(Tape):
        def reset(self, **options):
            return given

    assert words in LaneSet([Old]).reset_lanes([0], [0]).failures[0].message
