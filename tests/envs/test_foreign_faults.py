"""Foreign vector environments that say too little, lie, raise, or return what does not fit."""

from __future__ import annotations

import multiprocessing
import warnings
from typing import Any

import numpy as np
import pytest
from env_fakes import Tape
from env_plays import play_alone, play_lanes
from env_vectors import TapeVec
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_envs.foreign import ForeignLanes

NEXT, SAME, NONE = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
MODES = [NEXT, SAME, NONE]


def step_all(lanes: ForeignLanes) -> Any:
    return lanes.step_lanes(np.ones(lanes.num_envs, np.int64), tuple(range(lanes.num_envs)))


def begin(lanes: ForeignLanes) -> Any:
    return lanes.reset_lanes(range(lanes.num_envs), [None] * lanes.num_envs)


@pytest.mark.parametrize("mode", [None, "sometimes", 3, True])
def test_without_a_known_autoreset_mode_it_is_refused_by_name(mode):
    env = TapeVec(2)
    env.metadata = {} if mode is None else {"autoreset_mode": mode}
    with pytest.raises(EnvironmentBuildError) as caught:
        ForeignLanes(env, TapeVec)
    assert "TapeVec does not say how it resets" in caught.value.cause
    assert repr(mode) in caught.value.cause
    assert "AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED" in caught.value.mend


def test_metadata_that_is_no_dict_is_refused_too():
    env = TapeVec(2)
    env.metadata = None
    with pytest.raises(EnvironmentBuildError, match="does not say how it resets"):
        ForeignLanes(env, TapeVec)


def test_one_that_says_next_step_and_resets_in_the_same_step_is_caught():
    lanes = ForeignLanes(TapeVec(2, NEXT, behaves=SAME), TapeVec)
    with pytest.raises(EnvironmentBuildError) as caught:
        play_lanes(lanes, [None] * 6, shares=True)
    # Tapes 0 and 100 end with their second step; the third is the first of tapes 1 and 101 and pays 10 and 1010.
    assert "lane 0 paid 10.0 (terminated False, truncated False)" in caught.value.cause
    assert caught.value.where == "vector environment, autoreset mode NEXT_STEP"
    assert "metadata['autoreset_mode']" in caught.value.mend


def test_one_that_says_next_step_and_ends_in_the_reset_step_is_caught():
    class Ending(TapeVec):
        def _begin(self, lane):
            info = super()._begin(lane)
            self._flags[0, lane] = self.begun[lane] > 1
            return info

    with pytest.raises(EnvironmentBuildError, match=r"lane 0 paid 0\.0 \(terminated True"):
        play_lanes(ForeignLanes(Ending(2, NEXT), TapeVec), [None] * 4, shares=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_step_that_raises_fails_every_lane_and_the_next_episodes_are_whole(mode):
    built = []

    def build() -> TapeVec:
        def change(lane: int, tape: Tape, parts: Any) -> Any:
            if built[0] is env and (lane, tape.time) == (1, 2):
                raise ValueError("the simulator fell over")
            return parts

        env = TapeVec(2, mode, change=change)
        built.append(env)
        return env

    done = play_lanes(ForeignLanes(build(), build), [None] * 6, shares=True)
    assert len(built) == 2
    for lane, episodes in enumerate(done):
        assert episodes[0].end == "ValueError: the simulator fell over"
        for number, played in enumerate(episodes[1:]):
            alone = play_alone(Tape, 100 * lane + number)
            assert (played.length, played.total, played.end) == (alone.length, alone.total, alone.end)


@pytest.mark.parametrize("mode", [NEXT, SAME])
def test_a_lane_that_waits_for_its_start_fails_with_the_step_that_raises(mode):
    def change(lane: int, tape: Tape, parts: Any) -> Any:
        if tape.number == 100 and tape.time == 2:
            raise ValueError("fell over")
        return parts

    lanes = ForeignLanes(TapeVec(2, mode, change=change), lambda: TapeVec(2, mode))
    begin(lanes)
    step_all(lanes)
    assert list(lanes.reset_lanes([0], [None]).lanes) == []
    steps = lanes.step_lanes(np.array([1]), (1,))
    assert [failure.message for failure in steps.failures.values()] == ["ValueError: fell over"]
    assert list(steps.started.lanes) == [0]
    assert steps.started.failures[0].message == "ValueError: fell over"
    assert begin(lanes).observations.tolist() == [[0, 0, 0], [100, 0, 0]]


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_that_raises_fails_the_lanes_that_asked_for_it(mode):
    class Stuck(TapeVec):
        def reset(self, *, seed=None, options=None):
            raise OSError("no display")

    lanes = ForeignLanes(Stuck(2, mode), lambda: TapeVec(2, mode))
    resets = begin(lanes)
    assert {row: (failure.phase, failure.message) for row, failure in resets.failures.items()} == dict.fromkeys(
        (0, 1), ("reset", "OSError: no display")
    )
    assert begin(lanes).failures == {}


@pytest.mark.parametrize("mode", MODES)
def test_one_that_cannot_be_built_anew_fails_episodes_and_not_the_run(mode):
    def change(lane: int, tape: Tape, parts: Any) -> Any:
        raise ValueError("fell over")

    def rebuild() -> TapeVec:
        raise MemoryError("no GPU left")

    lanes = ForeignLanes(TapeVec(2, mode, change=change), rebuild)
    begin(lanes)
    assert {failure.message for failure in step_all(lanes).failures.values()} == {"ValueError: fell over"}
    assert {failure.message for failure in begin(lanes).failures.values()} == {"MemoryError: no GPU left"}


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("mode", MODES)
def test_a_reward_that_is_not_finite_fails_its_lane_alone(mode, reward):
    def change(lane: int, tape: Tape, parts: Any) -> Any:
        return (parts[0], reward, parts[2]) if lane == 1 else parts

    lanes = ForeignLanes(TapeVec(3, mode, change=change), TapeVec)
    begin(lanes)
    steps = lanes.step_lanes(np.array([1, 1]), (1, 2))
    assert {row: failure.message for row, failure in steps.failures.items()} == {
        0: f"the environment's reward is {reward}"
    }
    assert steps.rewards[1] == 2000 + 1 / 8
    assert lanes.step_lanes(np.array([1, 1]), (0, 2)).failures == {}


def test_rewards_whose_sum_overflows_are_no_fault():
    lanes = ForeignLanes(TapeVec(2, change=lambda lane, tape, parts: (parts[0], 1e308, parts[2])), TapeVec)
    begin(lanes)
    steps = step_all(lanes)
    assert (steps.failures, list(steps.rewards)) == ({}, [1e308, 1e308])


class Showing(TapeVec):
    """Shows other observations than the tapes': those that a function makes of theirs."""

    def __init__(self, show: Any, space: Any = None) -> None:
        super().__init__(2)
        self._show = show
        self.single_observation_space = space or self.single_observation_space

    def reset(self, *, seed=None, options=None):
        rows, infos = super().reset(seed=seed, options=options)
        return self._show(rows.copy()), infos


NESTED = spaces.Dict(a=spaces.Box(-1e6, 1e6, (3,)), b=spaces.Tuple((spaces.Box(-1e6, 1e6, (3,)),)))


@pytest.mark.parametrize(
    ("show", "space", "words"),
    [
        (lambda rows: rows[:, :1], None, "(2, 1)"),
        (lambda rows: rows[:, None], None, "(2, 1, 3)"),
        (lambda rows: rows[0], None, "(3,)"),
        (lambda rows: rows[:1], None, "(1, 3)"),
        (lambda rows: np.float32(0), None, "()"),
        (lambda rows: {"a": rows, "b": (rows[:, :1],)}, NESTED, "(2, 1)"),
        (lambda rows: {"b": (rows,)}, NESTED, "a"),
        (lambda rows: {"a": rows, "b": ()}, NESTED, "`b`"),
        (lambda rows: None, NESTED, "`a`"),
    ],
)
def test_observations_that_do_not_fit_the_space_fail_the_lanes_and_say_how(show, space, words):
    resets = begin(ForeignLanes(Showing(show, space), lambda: Showing(show, space)))
    assert sorted(resets.failures) == [0, 1]
    assert words in resets.failures[0].message


def test_what_loses_precision_is_said_once():
    lanes = ForeignLanes(Showing(lambda rows: rows.astype(np.float64)), TapeVec)
    assert begin(lanes).casts == "float64 is stored as float32"
    assert lanes.reset_lanes([0], [None]).casts == ""


def test_two_lanes_of_a_disabled_environment_that_start_one_after_the_other_are_reset_once_each():
    env = TapeVec(2, NONE)
    lanes = ForeignLanes(env, TapeVec)
    begin(lanes)
    step_all(lanes)
    assert len(step_all(lanes).ended) == 2
    assert lanes.reset_lanes([0], [None]).observations.tolist() == [[1, 0, 0]]
    assert lanes.reset_lanes([1], [None]).observations.tolist() == [[101, 0, 0]]
    assert env.begun == [2, 2]


def test_a_worker_of_gymnasium_that_raises_leaves_no_process_behind():
    def twist(tape: Tape, answer: Any) -> Any:
        if tape.time == 2:
            raise ValueError("one of many")
        return answer

    def build() -> AsyncVectorEnv:
        return AsyncVectorEnv([lambda: Tape(twist=twist), Tape], shared_memory=False, context="fork")

    before = set(multiprocessing.active_children())
    lanes = ForeignLanes(build(), build)
    begin(lanes)
    assert step_all(lanes).failures == {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gymnasium tells the same story on stderr
        steps = step_all(lanes)
    assert sorted(steps.failures) == [0, 1]
    assert "one of many" in steps.failures[0].message
    assert begin(lanes).failures == {}
    assert len(set(multiprocessing.active_children()) - before) == 2
    lanes.close()
    assert set(multiprocessing.active_children()) == before


def test_an_action_space_without_a_zero_is_refused_with_its_name():
    class Talking(Tape):
        action_space = spaces.Text(5)

    env = SyncVectorEnv([Talking, Talking])
    with pytest.raises(EnvironmentBuildError, match="Text"):
        ForeignLanes(env, lambda: env)


def test_closing_closes_the_environment_and_may_be_done_twice():
    env = SyncVectorEnv([Tape, Tape])
    lanes = ForeignLanes(env, lambda: env)
    lanes.close()
    lanes.close()
    assert [tape.is_closed for tape in env.envs] == [True, True]


class Beside(spaces.Space):
    """A space of somebody's own, whose batches are lists."""

    def sample(self, mask=None, probability=None):
        return np.zeros(1)

    def contains(self, x):
        return True


def test_an_array_of_float64_is_no_batch_of_a_space_that_does_not_stack():
    lanes = ForeignLanes(Showing(lambda rows: rows[:, 0].astype(np.float64), Beside()), TapeVec)
    assert begin(lanes).observations == [0.0, 100.0]
    assert isinstance(step_all(lanes).observations, list)


@pytest.mark.parametrize("space", [spaces.Tuple((spaces.Discrete(5),)), spaces.Dict(a=spaces.Discrete(5))])
def test_an_array_of_float64_is_no_batch_of_a_structured_space(space):
    lanes = ForeignLanes(Showing(lambda rows: rows[:, 0].astype(np.float64), space), TapeVec)
    assert (
        "of the observations" in begin(lanes).failures[0].message or "missing" in begin(lanes).failures[0].message
    )


@pytest.mark.parametrize("mode", [NEXT, NONE])
def test_flags_of_any_type_end_episodes(mode):
    class Objects(TapeVec):
        def step(self, actions):
            observations, rewards, terminated, truncated, infos = super().step(actions)
            return observations, rewards, terminated.astype(object), truncated.tolist(), infos

    played = play_lanes(ForeignLanes(Objects(2, mode), Objects), [None] * 6, shares=True)
    assert [episode.row() for lane in played for episode in lane] == [
        play_alone(Tape, 100 * lane + count).row() for lane in range(2) for count in range(3)
    ]


def test_a_lane_that_waits_for_its_beginning_is_told_when_the_step_that_brings_it_fails():
    class Longer(TapeVec):
        is_longer = False

        def step(self, actions):
            observations, rewards, *rest = super().step(actions)
            return observations, np.zeros(3) if self.is_longer else rewards, *rest

    env = Longer(2, NEXT)
    lanes = ForeignLanes(env, TapeVec)
    begin(lanes)
    step_all(lanes)
    assert step_all(lanes).ended[0][0] == 0
    assert lanes.reset_lanes((0,), (None,)).lanes == []
    env.is_longer = True
    steps = lanes.step_lanes(np.array([1]), (1,))
    assert list(steps.failures) == [0]
    assert list(steps.started.lanes) == [0]
    assert "the rewards have shape (3,)" in steps.started.failures[0].message
