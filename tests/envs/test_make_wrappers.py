"""Wrappers that a route adds: found, put on in order, or refused with words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import env_fakes
import numpy as np
import pytest
from env_plays import play_lanes
from gymnasium import spaces

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


WANTING = """
import gymnasium as gym, numpy as np
from gymnasium import spaces

class Space(gym.Env):
    # Its spaces have one shape and two dtypes.
    observation_space = spaces.Box(0, 255, (2,), np.uint8)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

def told(value):
    if isinstance(value, dict):
        return {key: told(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.tolist()}"
    return value

def wants(kind):
    def put_on(env, **kwargs):
        env.kwargs = told(kwargs)
        value = kwargs["value"]["inner"] if isinstance(kwargs["value"], dict) else kwargs["value"]
        if not isinstance(value, kind):
            value.clear() if isinstance(value, list) else None
            raise TypeError(f"no {kind.__name__} but {type(value).__name__}")
        return env
    return put_on

lists, tuples, arrays, sets = map(wants, (list, tuple, np.ndarray, set))
"""


@pytest.fixture
def given(module: Callable[[str, str], None]) -> Callable[..., Any]:
    """Return what a wrapper that wants lists, tuples, arrays or sets was given at last."""
    module("wanting", WANTING)

    def play(wants: str, **kwargs: Any) -> Any:
        wrapper = WrapperRequest(name=f"wanting:{wants}", kwargs=kwargs)
        lanes, _ = make_lanes(EnvRequest(id="wanting:Space", wrappers=(wrapper,)))
        layer = lanes.envs[0]
        while "kwargs" not in vars(layer):
            layer = layer.env
        return layer.kwargs

    return play


def test_lists_are_given_as_they_are_where_a_wrapper_takes_them(given):
    assert given("lists", value=[1, [2, 3]], other=(4,)) == {"value": [1, [2, 3]], "other": (4,)}


def test_a_wrapper_that_refuses_lists_is_given_tuples(given):
    assert given("tuples", value=[1, [2, 3]], deep={"a": [4]}, word="x") == {
        "value": (1, (2, 3)),
        "deep": {"a": (4,)},
        "word": "x",
    }
    assert given("tuples", value={"inner": [5]}) == {"value": {"inner": (5,)}}


@pytest.mark.parametrize(
    ("name", "values", "array"),
    [
        ("min_action", [0.5, 1], "float32[0.5, 1.0]"),
        ("min_action", [0, 1], "float32[0.0, 1.0]"),
        ("low", [0, 255], "uint8[0, 255]"),
        # No whole number of 8 bits, but of the action's dtype.
        ("low", [0.5, 255], "float32[0.5, 255.0]"),
        ("low", [0, 256], "float32[0.0, 256.0]"),
        ("low", [0.5, 1, 2], "float64[0.5, 1.0, 2.0]"),
        ("names", ["a", "b"], ["a", "b"]),
        ("ragged", [[1], [1, 2]], [[1], [1, 2]]),
        ("deep", {"low": [1, 2], "n": 3}, {"low": "uint8[1, 2]", "n": 3}),
    ],
)
def test_then_arrays_in_the_dtype_of_the_space_that_has_their_shape(given, name, values, array):
    assert given("arrays", value=[7, 7], **{name: values}) == {"value": "uint8[7, 7]", name: array}


def test_where_no_form_is_taken_each_says_why(module):
    module("wanting", WANTING)
    error = refused("wanting:sets", value=[1])
    assert error.cause == "wrapper `wanting:sets` cannot be put on: TypeError: no set but list"
    assert error.mend == (
        "check its kwargs in the route; its lists as tuples give TypeError: no set but tuple"
        "; its lists as arrays give TypeError: no set but ndarray"
    )
    assert refused("wanting:sets", value=1).mend == "check its kwargs in the route"


def test_gymnasiums_own_wrappers_take_lists_of_a_route():
    def boxes(name: str, **kwargs: Any) -> Any:
        request = EnvRequest(id="Pendulum-v1", wrappers=(WrapperRequest(name=name, kwargs=kwargs),))
        lanes, _ = make_lanes(request)
        assert not lanes.reset_lanes([0], [1]).failures
        return lanes.single_observation_space, lanes.single_action_space

    assert boxes("ReshapeObservation", shape=[3, 1])[0].shape == (3, 1)
    assert boxes("RescaleAction", min_action=[-4], max_action=[3])[1] == spaces.Box(-4, 3, (1,), np.float32)
    low, high = [-2, -1, -0.5], [1, 0, 1]
    box = spaces.Box(np.float32(low), np.float32(high))
    assert boxes("RescaleObservation", min_obs=low, max_obs=high)[0] == box


@pytest.mark.parametrize("name", ["env_fakes:lose", "env_fakes:forget"])
def test_what_is_no_environment_after_wrapping_is_refused(name):
    assert "gymnasium.Env" in str(refused(name))
