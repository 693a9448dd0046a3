"""ForeignLanes: every episode of a vector environment with its own autoreset, counted as if played alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from env_fakes import Sampled, Tape
from env_plays import Played, play_alone, play_lanes, same
from env_vectors import TapeVec
from gymnasium import spaces
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

from rlmesh_adapters.batches import row_of
from rlmesh_envs.foreign import ForeignLanes
from rlmesh_envs.infos import read_flag

NEXT, SAME, NONE = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
MODES = [NEXT, SAME, NONE]
Build = Callable[[AutoresetMode], VectorEnv[Any, Any, Any]]


def sync(mode: AutoresetMode, number: int = 3) -> SyncVectorEnv:
    return SyncVectorEnv([Tape] * number, autoreset_mode=mode)


def third_party(mode: AutoresetMode, number: int = 3) -> TapeVec:
    return TapeVec(number, mode)


def foreign(build: Callable[[], VectorEnv[Any, Any, Any]]) -> ForeignLanes:
    return ForeignLanes(build(), build)


def check_alone(played: Played) -> None:
    alone = play_alone(Tape, played.number)
    assert (played.length, played.total, played.end) == (alone.length, alone.total, alone.end)
    np.testing.assert_array_equal(played.observations[0], alone.observations[0])
    assert read_flag(played.infos[-1], "is_success") is read_flag(alone.infos[-1], "is_success")


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [sync, third_party])
def test_length_and_return_of_every_episode_are_those_of_a_single_environment(build, mode, number):
    lanes = foreign(lambda: build(mode, number))
    done = play_lanes(lanes, [5] * 15 if not lanes.is_seeded else range(15), shares=True)
    assert [len(lane) for lane in done] == [15 // number] * number
    for played in [played for lane in done for played in lane]:
        check_alone(played)


@pytest.mark.parametrize("mode", MODES)
def test_no_start_is_skipped_and_none_is_played_twice(mode):
    done = play_lanes(foreign(lambda: third_party(mode)), [None] * 12, shares=True)
    assert [[played.number for played in lane] for lane in done] == [
        [100 * lane + episode for episode in range(4)] for lane in range(3)
    ]


@pytest.mark.parametrize("mode", [NEXT, SAME])
@pytest.mark.parametrize("build", [sync, third_party])
def test_an_episode_given_up_is_followed_by_the_next_whole_one(build, mode):
    done = play_lanes(foreign(lambda: build(mode)), [None] * 15, shares=True, give_up=[0, 3, 4, 9])
    for lane in done:
        assert len(lane) == 5
        for played in lane:
            if played.end != "given up":
                check_alone(played)
    if build is third_party:
        assert [[played.number % 100 for played in lane] for lane in done] == [list(range(5))] * 3


def test_the_ignored_reset_step_gives_nothing_to_anybody():
    lanes = foreign(lambda: TapeVec(2, NEXT))
    lanes.reset_lanes([0, 1], [None, None])
    lanes.step_lanes(np.array([1, 1]), (0, 1))
    steps = lanes.step_lanes(np.array([1, 1]), (0, 1))
    assert steps.ended == [(0, False, True), (1, True, False)]
    assert lanes.reset_lanes([1], [None]).lanes == []
    steps = lanes.step_lanes(None, ())
    assert (list(steps.rewards), steps.ended) == ([], [])
    assert list(steps.started.lanes) == [1]
    assert steps.started.observations.tolist() == [[101, 0, 0]]
    assert list(steps.started.infos) == [{"start": 101}]


def test_lanes_are_looked_at_in_the_order_in_which_they_are_named():
    lanes = foreign(lambda: TapeVec(3, NONE))
    lanes.reset_lanes([0, 1, 2], [None] * 3)
    for order in [(2, 0), (2, 1, 0)]:
        steps = lanes.step_lanes(np.array(order) + 1, order)
        assert steps.observations[:, 0].tolist() == [100 * lane for lane in order]
        assert [reward * 8 % 8 for reward in steps.rewards] == [lane + 1 for lane in order]


def test_a_lane_that_nobody_looks_at_gets_a_member_of_the_action_space():
    class Stern(Tape):
        action_space = spaces.Discrete(3, start=5)

        def step(self, action):
            assert self.action_space.contains(action), f"{action} is no action"
            return super().step(action)

    lanes = foreign(lambda: SyncVectorEnv([Stern] * 2))
    lanes.reset_lanes([0, 1], [None, None])
    assert lanes.step_lanes(np.array([6]), (1,)).failures == {}
    assert lanes.step_lanes(None, ()).failures == {}


@pytest.mark.parametrize("mode", MODES)
def test_rows_stay_as_they_were_when_the_environment_reuses_its_arrays(mode):
    lanes = foreign(lambda: TapeVec(2, mode))
    kept: list[Any] = [lanes.reset_lanes([0, 1], [None, None])]
    kept += [lanes.step_lanes(np.array([1, 2]), (0, 1)) for _ in range(2)]
    for _ in range(3):
        lanes.step_lanes(None, ())
    assert kept[0].observations.tolist() == [[0, 0, 0], [100, 0, 0]]
    assert kept[1].observations.tolist() == [[0, 1, 1], [100, 1, 2]]
    assert list(kept[1].rewards) == [1 / 8, 1000 + 2 / 8]
    assert list(kept[2].rewards) == [1 + 1 / 8, 1001 + 2 / 8]


@pytest.mark.parametrize("mode", MODES)
def test_graphs_and_other_objects_arrive_one_to_a_lane(mode):
    half = spaces.Box(-1, 1, (2,), np.float16)
    space = spaces.Dict(graph=spaces.Graph(half, None), half=half)
    lanes = foreign(lambda: SyncVectorEnv([lambda: Sampled(space)] * 2, autoreset_mode=mode))
    resets = lanes.reset_lanes([0, 1], [3, 4])
    steps = lanes.step_lanes(np.array([0, 0]), (0, 1))
    for lane in (0, 1):
        alone = Sampled(space)
        first, _ = alone.reset(seed=3 + lane)
        assert steps.failures == {}
        assert same(row_of(resets.observations, lane), first)
        assert same(row_of(steps.observations, lane), alone.step(0)[0])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("spelling", [lambda mode: mode, lambda mode: mode.name, lambda mode: mode.value])
def test_the_mode_is_read_from_the_metadata_in_every_spelling(mode, spelling):
    env = TapeVec(2, mode)
    env.metadata = {"autoreset_mode": spelling(mode)}
    assert foreign(lambda: env).autoreset == mode.name.lower()


@pytest.mark.parametrize(
    ("build", "is_seeded"),
    [
        (lambda: sync(NONE), True),
        (lambda: RecordEpisodeStatistics(sync(NONE)), True),
        (lambda: sync(NEXT), False),
        (lambda: sync(SAME), False),
        (lambda: third_party(NONE), False),
    ],
)
def test_only_gymnasiums_own_disabled_environments_seed_single_episodes(build, is_seeded):
    assert foreign(build).is_seeded is is_seeded


@pytest.mark.parametrize("mode", [NEXT, SAME])
def test_a_seed_for_the_very_first_reset_makes_the_whole_run_repeatable(mode):
    runs = [play_lanes(foreign(lambda: sync(mode)), [7] * 9, shares=True) for _ in range(2)]
    rows = [[[played.number for played in lane] for lane in run] for run in runs]
    assert rows[0] == rows[1]
    assert [lane[0] for lane in rows[0]] == [7, 8, 9]


def test_a_disabled_environment_starts_each_episode_from_its_own_seed():
    lanes = foreign(lambda: sync(NONE))
    numbers = sorted(played.number for lane in play_lanes(lanes, range(20, 31)) for played in lane)
    assert numbers == list(range(20, 31))


def test_gymnasiums_worker_processes_are_read_as_its_single_process():
    def build() -> AsyncVectorEnv:
        return AsyncVectorEnv([Tape] * 2, shared_memory=False, autoreset_mode=NEXT)

    lanes = foreign(build)
    done = play_lanes(lanes, [None] * 6, shares=True)
    lanes.close()
    for played in [played for lane in done for played in lane]:
        check_alone(played)


def test_a_success_of_the_next_reset_is_not_the_success_of_the_episode_before():
    class Ready(Tape):
        def reset(self, *, seed=None, options=None):
            return super().reset(seed=seed, options=options)[0], {"is_success": True}

        def step(self, action):
            return *super().step(action)[:4], {}

    for mode in (SAME, NEXT):
        lanes = foreign(lambda mode=mode: SyncVectorEnv([lambda: Ready(2)] * 2, autoreset_mode=mode))
        done = play_lanes(lanes, [None] * 4, shares=True)
        ends = [read_flag(played.infos[-1], "is_success") for lane in done for played in lane]
        starts = [read_flag(played.infos[0], "is_success") for lane in done for played in lane]
        assert (ends, starts) == ([None] * 4, [True] * 4), mode


def test_the_older_layout_of_final_infos_is_read_under_same_step():
    class Older(TapeVec):
        def step(self, actions):
            *answer, infos = super().step(actions)
            if "final_info" in infos:
                mask = infos["_final_info"]
                last = [info if is_last else None for info, is_last in zip(self.last, mask, strict=True)]
                infos |= {"final_info": np.array(last, object), "final_observation": infos.pop("final_obs")}
            return *answer, infos

        def _play(self, lane, action):
            self.last = getattr(self, "last", [{}] * self.num_envs)
            self.last[lane] = super()._play(lane, action)
            return self.last[lane]

    done = play_lanes(foreign(lambda: Older(2, SAME)), [None] * 12, shares=True)
    for played in [played for lane in done for played in lane]:
        check_alone(played)


def test_a_start_is_told_when_it_is_asked_for_however_late_that_is():
    """Lane 0 has begun anew by itself; lane 1 is given up and reset alone before anybody asks for lane 0."""

    class Greeting(Tape):
        def reset(self, *, seed=None, options=None):
            observation, _ = super().reset(seed=seed)
            return observation, {"hello": self.length}

    lanes = foreign(lambda: SyncVectorEnv([lambda: Greeting(2), lambda: Greeting(50)], autoreset_mode=SAME))
    lanes.reset_lanes([0, 1], [None, None])
    steps = [lanes.step_lanes(np.zeros(2, np.int64), (0, 1)) for _ in range(2)]
    assert steps[1].ended != []
    other = lanes.reset_lanes([1], [None])
    first = lanes.reset_lanes([0], [None])
    assert [list(other.infos), list(first.infos)] == [[{"hello": 50}], [{"hello": 2}]]
    lanes.close()
