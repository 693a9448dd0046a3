"""WorkerLanes: the same records as lanes of this process, from environments in worker processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from env_fakes import Answer, Sampled, Tape, Unreadable
from env_plays import in_order, play_alone, play_lanes, same
from gymnasium import spaces

from rlmesh_adapters.batches import row_of
from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_envs.lanes import LaneVectorEnv
from rlmesh_envs.make import make_lanes, serve_request
from rlmesh_envs.processes import WorkerLanes
from rlmesh_envs.request import EnvRequest


@contextmanager
def workers(count: int, **request: Any) -> Iterator[WorkerLanes]:
    """Yield lanes over `count` workers, and close them."""
    wanted: dict[str, Any] = {
        "id": "env_fakes:Tape",
        "start_method": "fork",
        "vectorization": "async",
        "workers": count,
    }
    wanted |= request
    lanes = WorkerLanes(EnvRequest(**wanted), serve_request)
    try:
        yield lanes
    finally:
        lanes.close()


def break_some(tape: Tape, answer: Answer) -> Any:
    """Raise at the second step of every seventh tape, and give it an odd reward type before."""
    if tape.number % 7 == 6 and tape.time == 2:
        raise ValueError(f"tape {tape.number} broke")
    return answer[0], np.float32(answer[1]), *answer[2:]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_calls_give_the_records_of_lanes_in_this_process(count):
    here = LaneVectorEnv([lambda: gym.wrappers.TimeLimit(Tape(twist=break_some), 4)] * 4)
    rng = np.random.default_rng(5)
    running: set[int] = set()
    wanted = {"kwargs": {"twist": break_some}, "max_episode_steps": 4, "num_envs": 4}
    with workers(count, **wanted) as there:
        for call in range(120):
            lanes = [int(lane) for lane in rng.permutation(4)[: rng.integers(1, 5)]]
            if call % 3 == 0:
                seeds = [int(seed) for seed in rng.integers(0, 60, len(lanes))]
                _compare(here.reset_lanes(lanes, seeds), there.reset_lanes(lanes, seeds))
                running.update(lanes)
            lanes = [lane for lane in lanes if lane in running]
            actions = rng.integers(0, 8, len(lanes))
            ours, theirs = here.step_lanes(actions, tuple(lanes)), there.step_lanes(actions, tuple(lanes))
            _compare(ours, theirs)
            assert theirs.ended == ours.ended
            assert list(theirs.rewards) == list(ours.rewards)
            running -= {lanes[row] for row, *_ in ours.ended} | {lanes[row] for row in ours.failures}


def _compare(ours: Any, theirs: Any) -> None:
    assert theirs.failures == ours.failures
    assert (None if theirs.infos is None else list(theirs.infos)) == (
        None if ours.infos is None else list(ours.infos)
    )
    good = [row for row in range(len(ours.observations)) if row not in ours.failures]
    assert theirs.observations.dtype == ours.observations.dtype
    np.testing.assert_array_equal(theirs.observations[good], ours.observations[good])


@pytest.mark.parametrize(("lanes", "count"), [(1, 2), (2, 2), (5, 2), (5, 3), (3, 8)])
def test_number_of_workers_changes_no_episode(lanes, count):
    with workers(count, num_envs=lanes) as there:
        played = in_order(play_lanes(there, range(9)))
    assert [episode.row() for episode in played] == [play_alone(Tape, seed).row() for seed in range(9)]


@pytest.mark.parametrize("start_method", ["forkserver", "spawn"])
def test_a_worker_that_inherits_nothing_plays_the_same_episodes(start_method):
    wanted = {"id": "FakeLimited-v0", "imports": ("env_fakes",), "num_envs": 2, "kwargs": {"twist": break_some}}
    with workers(1, start_method=start_method, **wanted) as there:
        played = in_order(play_lanes(there, [2, 3, 6, 7]))
    kept = [episode.row() for episode in played if episode.number != 6]
    make = LaneVectorEnv([lambda: gym.make("FakeLimited-v0", twist=break_some, disable_env_checker=True)])
    assert kept == [play_lanes(make, [seed])[0][0].row() for seed in (2, 3, 7)]
    assert [episode.end for episode in played if episode.number == 6] == ["ValueError: tape 6 broke"]


def test_make_lanes_gives_workers_and_what_their_environment_is():
    lanes, info = make_lanes(EnvRequest(id="CartPole-v1", vectorization="async", num_envs=2, start_method="fork"))
    try:
        assert isinstance(lanes, WorkerLanes)
        assert (info.id, info.max_episode_steps, info.autoreset, info.is_seeded) == (
            "CartPole-v1",
            500,
            "disabled",
            True,
        )
        assert info.layers == ("TimeLimit", "OrderEnforcing", "CartPoleEnv")
        assert lanes.single_observation_space == gym.make("CartPole-v1").observation_space
        first = lanes.reset_lanes([1, 0], [5, 6]).observations
    finally:
        lanes.close()
    np.testing.assert_array_equal(first, [gym.make("CartPole-v1").reset(seed=seed)[0] for seed in (5, 6)])


@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict(graph=spaces.Graph(spaces.Box(-1, 1, (2,)), None), half=spaces.Box(-1, 1, (2,), np.float16)),
        spaces.Tuple((spaces.Text(4), spaces.Sequence(spaces.Discrete(3)), spaces.MultiBinary(2))),
    ],
)
def test_structured_observations_cross_the_border_whole(space):
    with workers(2, id="env_fakes:Sampled", kwargs={"space": space}, num_envs=3) as there:
        resets = there.reset_lanes([2, 0, 1], [7, 8, 9])
        steps = there.step_lanes(np.zeros(2, np.int64), (1, 2))
    for row, seed in enumerate((7, 8, 9)):
        assert same(row_of(resets.observations, row), Sampled(space).reset(seed=seed)[0])
    for row, seed in enumerate((9, 7)):
        alone = Sampled(space)
        alone.reset(seed=seed)
        assert same(row_of(steps.observations, row), alone.step(0)[0])


def test_messages_larger_than_any_pipe_holds_do_not_block():
    shape = (1024, 1024)
    with workers(2, id="env_fakes:Reusing", kwargs={"kind": "large"}, num_envs=2) as there:
        assert there.single_action_space.shape == shape
        there.reset_lanes([0, 1], [1, 2])
        actions = np.ones((2, *shape), np.float32)
        steps = there.step_lanes(actions, (0, 1))
    assert list(steps.rewards) == [2.0 * 1024 * 1024] * 2
    assert (steps.observations == 1).all()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"id": "env_fakes:refuse"}, ["env_fakes:refuse", "FileNotFoundError: no scene file at /nowhere"]),
        ({"id": "FakeTyp-v0"}, ["no environment has the id `FakeTyp-v0`", "FakeTape-v0"]),
        ({"id": "FakeTape-v0", "imports": ("no_such_module",)}, ["module `no_such_module` is not installed"]),
        ({"id": "FakeTape-v0", "kwargs": {"colour": 1}}, ["colour"]),
    ],
)
def test_a_build_error_in_a_worker_arrives_with_its_words(request_, words):
    with pytest.raises(EnvironmentBuildError) as caught, workers(2, num_envs=2, **request_):
        pass
    for word in words:
        assert word in str(caught.value)


def test_an_exception_of_prepare_arrives_with_its_words():
    def prepare() -> None:
        raise LookupError("no policy file to load")

    with pytest.raises(EnvironmentBuildError) as caught, workers(1, prepare=prepare):
        pass
    assert "LookupError: no policy file to load" in caught.value.cause


def test_prepare_runs_in_the_worker_before_the_environment_is_looked_up():
    def prepare() -> None:
        gym.register("FakeLater-v0", "env_fakes:Tape", disable_env_checker=True)

    with workers(2, id="FakeLater-v0", num_envs=2, prepare=prepare) as there:
        played = in_order(play_lanes(there, [1, 2]))
    assert [episode.row() for episode in played] == [play_alone(Tape, seed).row() for seed in (1, 2)]
    assert "FakeLater-v0" not in gym.registry


def test_workers_whose_spaces_differ_are_refused_as_lanes_are():
    with (
        pytest.raises(EnvironmentBuildError, match="observation_space of lane 1"),
        workers(2, id="env_fakes:Unlike", num_envs=2),
    ):
        pass


def test_an_unknown_start_method_is_refused_with_the_known_ones():
    with pytest.raises(EnvironmentBuildError) as caught, workers(1, start_method="thread"):
        pass
    assert caught.value.cause == "start method `thread` does not exist here"
    assert "fork, spawn, forkserver" in caught.value.mend


def test_a_request_that_cannot_be_sent_is_refused_with_a_way_out():
    with (
        pytest.raises(EnvironmentBuildError) as caught,
        workers(1, start_method="spawn", kwargs={"twist": lambda tape, answer: answer}),
    ):
        pass
    assert "cannot be sent to a worker process" in caught.value.cause
    assert "spawn" in caught.value.where
    assert "--start-method fork" in caught.value.mend


def test_a_request_that_a_worker_cannot_read_is_refused_with_the_workers_words(capfd):
    wanted = {"kwargs": {"twist": Unreadable()}, "start_method": "spawn"}
    with pytest.raises(EnvironmentBuildError) as caught, workers(1, **wanted):
        pass
    assert "this object cannot be read again" in str(caught.value)
