"""From an env request to lanes, and what is refused on the way."""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from env_fakes import Tape
from env_plays import in_order, play_alone, play_lanes
from env_vectors import TapeVec
from gymnasium.vector import SyncVectorEnv

from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_envs.foreign import ForeignLanes
from rlmesh_envs.lanes import LaneVectorEnv
from rlmesh_envs.make import make_lanes
from rlmesh_envs.registry import find_environment
from rlmesh_envs.request import EnvRequest, WrapperRequest
from rlmesh_envs.single import make_one


def refused(id: str = "FakeTape-v0", **request: Any) -> EnvironmentBuildError:
    with pytest.raises(EnvironmentBuildError) as caught:
        make_lanes(EnvRequest(id=id, **request))
    assert caught.value.where
    assert caught.value.mend
    return caught.value


@pytest.mark.parametrize("id", ["FakeTape-v0", "env_fakes:FakeTape-v0", "env_fakes:Tape", "FakeTape"])
def test_every_way_to_name_an_environment_gives_the_same_episodes(id):
    lanes, info = make_lanes(EnvRequest(id=id, num_envs=2))
    assert isinstance(lanes, LaneVectorEnv)
    assert (lanes.num_envs, info.autoreset, info.is_seeded, info.max_episode_steps) == (2, "disabled", True, None)
    played = in_order(play_lanes(lanes, range(6)))
    assert [episode.row() for episode in played] == [play_alone(Tape, seed).row() for seed in range(6)]


def test_a_lane_is_one_environment_and_none_is_built_beside():
    built = []

    class Counted(Tape):
        def __init__(self):
            super().__init__()
            built.append(self)

    gym.register("FakeCounted-v0", Counted, disable_env_checker=True)
    try:
        lanes, _ = make_lanes(EnvRequest(id="FakeCounted-v0", num_envs=3))
    finally:
        del gym.registry["FakeCounted-v0"]
    assert [env.unwrapped for env in lanes.envs] == built


def test_kwargs_reach_the_constructor():
    lanes, _ = make_lanes(EnvRequest(id="FakeTape-v0", kwargs={"length": 6}))
    assert play_lanes(lanes, [1])[0][0].length == 6


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({"id": "CartPole-v1"}, ("CartPole-v1", 500, ("TimeLimit", "OrderEnforcing", "CartPoleEnv"))),
        ({"id": "CartPole"}, ("CartPole-v1", 500, ("TimeLimit", "OrderEnforcing", "CartPoleEnv"))),
        ({"id": "FakeTape-v0"}, ("FakeTape-v0", None, ("OrderEnforcing", "Tape"))),
        ({"id": "env_fakes:FakeLimited-v0"}, ("FakeLimited-v0", 4, ("TimeLimit", "OrderEnforcing", "Tape"))),
        (
            {"id": "FakeLimited-v0", "max_episode_steps": 9},
            ("FakeLimited-v0", 9, ("TimeLimit", "OrderEnforcing", "Tape")),
        ),
        ({"id": "env_fakes:Tape"}, ("Tape", None, ("Tape",))),
        ({"id": "env_fakes:Tape", "max_episode_steps": 3}, ("Tape", 3, ("TimeLimit", "Tape"))),
        (
            {"id": "FakeTape-v0", "wrappers": (WrapperRequest(name="env_fakes:SignReward"),)},
            ("FakeTape-v0", None, ("SignReward", "OrderEnforcing", "Tape")),
        ),
    ],
)
def test_what_was_built_is_told_by_id_limit_and_layers(request_, expected):
    _, info = make_lanes(EnvRequest(**request_))
    assert (info.id, info.max_episode_steps, info.layers) == expected


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_gymnasiums_own_vector_environments_tell_which_environment_they_hold(mode, vectorization):
    request = EnvRequest(
        id="FakeLimited-v0", num_envs=2, autoreset=mode, vectorization=vectorization, start_method=None
    )
    lanes, info = make_lanes(request)
    lanes.close()
    assert isinstance(lanes, ForeignLanes)
    assert (info.autoreset, info.is_seeded) == (mode, mode == "disabled")
    assert (info.id, info.max_episode_steps) == ("FakeLimited-v0", 4)
    assert "Tape" in info.layers


@pytest.mark.parametrize("autoreset", [None, "next_step"])
def test_prepare_runs_in_every_worker_process(autoreset, tmp_path):
    def prepare() -> None:
        (tmp_path / str(os.getpid())).touch()

    request = EnvRequest(
        id="FakeTape-v0",
        num_envs=2,
        vectorization="async",
        autoreset=autoreset,
        start_method="fork",
        prepare=prepare,
    )
    lanes, _ = make_lanes(request)
    lanes.close()
    workers = {path.name for path in tmp_path.iterdir()} - {str(os.getpid())}
    assert len(workers) == min(2, os.cpu_count() or 1)


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_max_episode_steps_holds_under_gymnasiums_autoreset(mode):
    lanes, _ = make_lanes(
        EnvRequest(id="FakeLimited-v0", kwargs={"length": 50}, max_episode_steps=7, autoreset=mode)
    )
    assert [played.length for played in play_lanes(lanes, [1, 2, 3])[0]] == [7, 7, 7]


def test_a_native_vector_environment_is_built_by_its_own_entry_point_and_counted():
    lanes, info = make_lanes(EnvRequest(id="CartPole-v1", num_envs=4, vectorization="native"))
    assert isinstance(lanes, ForeignLanes)
    assert (info.id, info.autoreset, info.is_seeded) == ("CartPole-v1", "next_step", False)
    assert info.layers == ("CartPoleVectorEnv",)
    lanes.reset_lanes(range(4), [3, None, None, None])
    steps = lanes.step_lanes(np.zeros(4, np.int64), (0, 1, 2, 3))
    assert (list(steps.rewards), steps.failures) == ([1.0] * 4, {})


def test_max_episode_steps_replaces_the_limit_of_a_native_environment_and_is_told():
    lanes, info = make_lanes(EnvRequest(id="FakeVec-v0", num_envs=2, vectorization="native", max_episode_steps=3))
    lengths = [played.length for lane in play_lanes(lanes, [None] * 8, shares=True) for played in lane]
    # Tape n takes 2 + n % 4 steps if nothing ends it before; the lanes play tapes 0 to 3 and 100 to 103.
    assert lengths == [2, 3, 3, 3] * 2
    assert info.max_episode_steps == 3


def test_a_native_environment_keeps_its_registered_limit_when_none_is_asked_for():
    _, info = make_lanes(EnvRequest(id="FakeVec-v0", num_envs=2, vectorization="native"))
    assert info.max_episode_steps == 500


@pytest.mark.parametrize("id", ["FakeTape-v0", "Pendulum-v1", "env_fakes:Tape"])
def test_native_is_refused_without_a_vector_entry_point(id):
    error = refused(id, vectorization="native")
    assert error.cause == f"`{id}` has no vector entry point of its own"
    assert "sync or async" in error.mend


def test_native_refuses_wrappers_of_single_environments():
    error = refused("CartPole-v1", vectorization="native", wrappers=(WrapperRequest(name="NormalizeReward"),))
    assert error.where == "env.wrappers"


def test_native_refuses_arguments_that_its_entry_point_does_not_take():
    assert "colour" in refused("CartPole-v1", vectorization="native", kwargs={"colour": 1}).cause


def test_an_id_with_nothing_but_a_vector_entry_point_is_refused_as_single_environments():
    assert "FakeVec-v0" in refused("FakeVec-v0").cause


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize("name", ["TapeVec", "make_vector"])
def test_a_module_may_name_a_vector_environment_of_its_own(name, num_envs):
    lanes, info = make_lanes(EnvRequest(id=f"env_vectors:{name}", num_envs=num_envs))
    assert isinstance(lanes, ForeignLanes)
    assert (lanes.num_envs, info.autoreset, info.layers) == (num_envs, "next_step", ("TapeVec",))
    done = play_lanes(lanes, [None] * num_envs * 3, shares=True)
    for lane, episodes in enumerate(done):
        assert [played.number for played in episodes] == [100 * lane + number for number in range(3)]
        assert [played.total for played in episodes] == [
            play_alone(Tape, played.number).total for played in episodes
        ]


@pytest.mark.parametrize(
    "request_",
    [
        {"vectorization": "async", "start_method": "fork"},
        {"autoreset": "next_step"},
        {"wrappers": (WrapperRequest(name="env_fakes:SignReward"),)},
    ],
)
def test_what_cannot_be_done_to_a_vector_environment_is_refused(request_):
    assert "vector environment" in str(refused("env_vectors:TapeVec", num_envs=2, **request_))


def test_a_limit_for_a_modules_own_vector_environment_is_kept_or_refused_but_not_dropped():
    assert _lengths(EnvRequest(id="env_vectors:TapeVec", num_envs=2, max_episode_steps=2)) in ([2] * 4, "refused")


def _lengths(request: EnvRequest) -> list[int] | str:
    try:
        lanes, _ = make_lanes(request)
    except EnvironmentBuildError:
        return "refused"
    return [played.length for lane in play_lanes(lanes, [None] * 4, shares=True) for played in lane]


@pytest.mark.parametrize(
    ("id", "kwargs", "words"),
    [
        ("FakeTape-v0", {"colour": "red"}, ["colour='red'", "unexpected keyword argument"]),
        ("env_fakes:Tape", {"colour": "red"}, ["colour='red'", "unexpected keyword argument"]),
        ("env_fakes:refuse", {}, ["FileNotFoundError: no scene file at /nowhere"]),
        ("env_fakes:name_only", {}, ["made a str, not a gymnasium environment"]),
        ("CartPole-v1", {"max_episode_steps": 3}, ["max_episode_steps"]),
        ("CartPole-v1", {"render_mode": "hologram"}, ["hologram"]),
    ],
)
@pytest.mark.parametrize("autoreset", [None, "same_step"])
def test_a_constructor_that_refuses_is_told_with_its_arguments_and_words(id, kwargs, words, autoreset):
    error = refused(id, kwargs=kwargs, autoreset=autoreset)
    assert id in error.cause
    for word in words:
        assert word in error.cause


def test_a_refusal_names_the_line_of_the_constructor():
    assert "env_fakes.py" in refused("env_fakes:refuse").where


def test_an_unknown_vectorization_is_refused():
    assert "threads" in refused(vectorization="threads").cause


def test_an_unknown_autoreset_is_refused():
    assert "never" in refused(autoreset="never").cause


@pytest.mark.parametrize("autoreset", [None, "next_step"])
def test_an_unknown_start_method_is_refused(autoreset):
    error = refused(vectorization="async", autoreset=autoreset, start_method="thread")
    assert error.cause == "start method `thread` does not exist here"


def test_native_with_an_autoreset_of_gymnasium_is_refused():
    refused("CartPole-v1", vectorization="native", autoreset="same_step")


def test_no_lanes_are_refused():
    assert "num_envs" in str(refused(num_envs=0))


@pytest.mark.parametrize("autoreset", [None, "next_step", "disabled"])
def test_lanes_with_differing_spaces_are_refused(autoreset):
    error = refused("env_fakes:Unlike", num_envs=2, autoreset=autoreset)
    assert "observation" in error.cause


def test_make_one_builds_for_itself_what_a_lane_is_built_of():
    request = EnvRequest(
        id="FakeLimited-v0", max_episode_steps=2, wrappers=(WrapperRequest(name="env_fakes:SignReward"),)
    )
    env = make_one(request, find_environment(request))
    env.reset(seed=1)
    assert [env.step(0)[1] for _ in range(2)] == [10.0, 11.0]
    assert env.spec.max_episode_steps == 2
    assert gym.registry["FakeLimited-v0"].max_episode_steps == 4


def test_the_vector_toy_itself_is_what_gymnasium_makes_of_tapes():
    """The toy counts like SyncVectorEnv, so that what is tested with it means something."""
    toy, own = TapeVec(1), SyncVectorEnv([Tape])
    toy.reset()
    own.reset(seed=0)
    for _ in range(2):
        answers = [env.step(np.array([3])) for env in (toy, own)]
        for left, right in zip(answers[0][:4], answers[1][:4], strict=True):
            np.testing.assert_array_equal(left, right)
