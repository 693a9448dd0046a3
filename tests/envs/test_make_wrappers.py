"""Wrappers that a route adds: found, put on in order, or refused with words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import env_fakes
import numpy as np
import pytest
from env_plays import play_lanes

from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvRequest, WrapperRequest


def layers(*wrappers: WrapperRequest) -> tuple[str, ...]:
    return make_lanes(EnvRequest(id="env_fakes:FakeTape-v0", wrappers=wrappers))[1].layers


def refused(name: str, **kwargs: Any) -> EnvironmentBuildError:
    with pytest.raises(EnvironmentBuildError) as caught:
        layers(WrapperRequest(name=name, kwargs=kwargs))
    assert caught.value.where == f"env.wrappers: {name}"
    assert caught.value.mend
    return caught.value


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Write an importable module."""
    monkeypatch.syspath_prepend(tmp_path)
    return lambda name, text: (tmp_path / f"{name}.py").write_text(text, encoding="utf-8") and None


def test_the_first_wrapper_is_the_innermost():
    sign = WrapperRequest(name="env_fakes:SignReward")
    repeat = WrapperRequest(name="env_fakes:Repeat", kwargs={"times": 2})
    assert layers(sign, repeat) == ("Repeat", "SignReward", "OrderEnforcing", "Tape")
    assert layers(repeat, sign) == ("SignReward", "Repeat", "OrderEnforcing", "Tape")


def test_files_are_those_of_all_layers_that_come_with_no_package(
    module: Callable[[str, str], None], tmp_path: Path
) -> None:
    module("wraps", "import gymnasium as gym\n\nclass Bare(gym.Wrapper):\n    pass\n")
    wrappers = (WrapperRequest(name="FlattenObservation"), WrapperRequest(name="wraps:Bare"))
    _, info = make_lanes(EnvRequest(id="env_fakes:FakeTape-v0", wrappers=wrappers))
    assert info.files == (str(tmp_path / "wraps.py"), env_fakes.__file__)
    assert make_lanes(EnvRequest(id="CartPole-v1", wrappers=wrappers[:1]))[1].files == ()


def test_a_bare_name_is_one_of_gymnasiums_own():
    flat = WrapperRequest(name="FlattenObservation")
    assert layers(flat) == ("FlattenObservation", "OrderEnforcing", "Tape")


def test_observations_and_actions_go_through_the_wrappers():
    request = EnvRequest(
        id="env_fakes:FakeTape-v0",
        num_envs=2,
        wrappers=(WrapperRequest(name="FrameStackObservation", kwargs={"stack_size": 2}),),
    )
    lanes, _ = make_lanes(request)
    assert lanes.single_observation_space.shape == (2, 3)
    lanes.reset_lanes([0, 1], [4, 5])
    steps = lanes.step_lanes(np.array([1, 2]), (0, 1))
    assert steps.observations.tolist() == [[[4, 0, 0], [4, 1, 1]], [[5, 0, 0], [5, 1, 2]]]


def test_a_time_limit_that_a_route_adds_ends_the_episode_and_is_told():
    request = EnvRequest(
        id="env_fakes:FakeTape-v0",
        kwargs={"length": 50},
        max_episode_steps=9,
        wrappers=(WrapperRequest(name="TimeLimit", kwargs={"max_episode_steps": 3}),),
    )
    lanes, info = make_lanes(request)
    assert [played.length for played in play_lanes(lanes, [1, 2])[0]] == [3, 3]
    assert info.max_episode_steps == 3


@pytest.mark.parametrize(
    ("name", "words", "near"),
    [
        ("FlatenObservation", "no wrapper `FlatenObservation` in gymnasium.wrappers", "FlattenObservation"),
        ("timelimit", "no wrapper `timelimit` in gymnasium.wrappers", "TimeLimit"),
        ("env_fakes:SignRewards", "no wrapper `SignRewards` in env_fakes", "SignReward"),
        ("env_fakes:Zzyzx", "no wrapper `Zzyzx` in env_fakes", "package.module:Class"),
        ("env_fakes.SignReward", "no wrapper `env_fakes.SignReward`", "package.module:Class"),
        ("env_fakes:np", "no wrapper `np` in env_fakes", ""),
        ("env_fakes:", "no wrapper `` in env_fakes", ""),
        ("", "no wrapper ``", ""),
        ("no_such_shop:Wrapper", "wrapper module `no_such_shop` cannot be imported", "package.module:Class"),
        (":Wrapper", "no wrapper `Wrapper`", ""),
    ],
)
def test_a_wrapper_that_does_not_exist_names_what_is_near(name, words, near):
    error = refused(name)
    assert words in error.cause
    assert near in error.mend


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def broken(:\n    pass", "SyntaxError"),
        ("import no_such_dependency", "no_such_dependency"),
        ("from env_fakes import Nothing", "Nothing"),
    ],
)
def test_a_wrappers_module_that_fails_to_import_says_why(module, text, words):
    module("broken_wrappers", text + "\n")
    error = refused("broken_wrappers:Wrapper")
    assert "broken_wrappers" in error.cause
    assert words in error.cause


@pytest.mark.parametrize(
    ("name", "kwargs", "words"),
    [
        ("env_fakes:Repeat", {}, "times"),
        ("env_fakes:Repeat", {"times": 1, "colour": 2}, "colour"),
        ("TimeLimit", {"max_episode_steps": "three"}, "TimeLimit"),
        ("FrameStackObservation", {"stack_size": 0}, "stack_size"),
        ("TransformReward", {"env": 3, "func": None}, "env"),
    ],
)
def test_a_wrapper_that_refuses_its_arguments_is_told_with_its_words(name, kwargs, words):
    error = refused(name, **kwargs)
    assert f"`{name}` cannot be put on" in error.cause
    assert words in error.cause


@pytest.mark.parametrize("name", ["env_fakes:lose", "env_fakes:forget"])
def test_what_is_no_environment_after_wrapping_is_refused(name):
    assert "gymnasium.Env" in str(refused(name))
