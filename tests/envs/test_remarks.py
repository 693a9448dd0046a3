"""Remarks: what is said of wrappers around an environment."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvInfo, EnvRequest, WrapperRequest

REPEAT = ("env_fakes:Repeat", {"times": 2})


def built(*wrappers: str | tuple[str, Mapping[str, Any]], **rest: Any) -> EnvInfo:
    named = [(wrapper, {}) if isinstance(wrapper, str) else wrapper for wrapper in wrappers]
    requests = tuple(WrapperRequest(name=name, kwargs=kwargs) for name, kwargs in named)
    lanes, info = make_lanes(EnvRequest(**{"id": "env_fakes:FakeTape-v0", "wrappers": requests, **rest}))
    with closing(lanes):
        return info


@pytest.mark.parametrize(
    ("wrappers", "words"),
    [
        (["env_fakes:SignReward"], "wrapper SignReward makes"),
        (["NormalizeReward", "FlattenObservation"], "wrapper NormalizeReward makes"),
        ([("ClipReward", {"min_reward": -1.0})], "wrapper ClipReward makes"),
        # Nobody knows what a step of one's own does, nor what stands for an environment without being a wrapper.
        ([REPEAT], "wrapper Repeat makes"),
        (["FlattenObservation", "env_fakes:Holder"], "wrapper Holder makes"),
        (
            ["NormalizeReward", REPEAT, "env_fakes:SignReward"],
            "wrappers SignReward, Repeat and NormalizeReward make",
        ),
    ],
)
def test_a_wrapper_whose_rewards_are_not_counted_is_named(wrappers, words):
    sentence = f"returns are the environment's own: what the route's {words} of rewards is not counted"
    assert built(*wrappers).notes == {"wrapper-rewards-unused": sentence}


@pytest.mark.parametrize(
    "wrappers",
    [
        [],
        ["FlattenObservation"],
        [("FrameStackObservation", {"stack_size": 2}), ("TimeLimit", {"max_episode_steps": 3})],
        [("StickyAction", {"repeat_action_probability": 0.5})],
    ],
)
def test_wrappers_that_leave_rewards_alone_are_not(wrappers):
    assert built(*wrappers).notes == {}


def test_rewards_of_wrappers_that_come_with_the_environment_count():
    assert built(id="env_fakes:make_signed", wrappers=()).notes == {}
    assert "SignReward" not in built(REPEAT, id="env_fakes:make_signed").notes["wrapper-rewards-unused"]


@pytest.mark.parametrize(
    ("wrappers", "words"),
    [
        (["NormalizeObservation"], "the wrapper NormalizeObservation goes on changing statistics"),
        (["NormalizeReward", "NormalizeObservation"], "the wrapper NormalizeObservation goes on"),
        (
            ["NormalizeObservation", "env_fakes:Running"],
            "the wrappers Running and NormalizeObservation go on changing statistics",
        ),
    ],
)
def test_a_wrapper_that_goes_on_changing_statistics_is_a_caution_that_says_what_to_do(wrappers, words):
    cautions = built(*wrappers).cautions
    assert list(cautions) == ["running-statistics"]
    assert cautions["running-statistics"].startswith(words)
    assert "rows depend on the order of episodes and on lanes" in cautions["running-statistics"]
    assert cautions["running-statistics"].endswith("a wrapper of your own with update_running_mean false")


@pytest.mark.parametrize(
    "wrappers",
    [
        ["FlattenObservation"],
        # Nobody sees the rewards that it makes.
        ["NormalizeReward"],
        [("env_fakes:Running", {"changes": False})],
        # It passes on what is not its own.
        [("env_fakes:Running", {"changes": False}), "env_fakes:Forwarding"],
    ],
)
def test_statistics_that_stay_or_reach_nothing_are_none(wrappers):
    assert built(*wrappers).cautions == {}


def test_a_wrapper_that_passes_on_what_is_not_its_own_is_not_named():
    cautions = built("env_fakes:Running", "env_fakes:Forwarding").cautions
    assert cautions["running-statistics"].startswith("the wrapper Running goes on")


def test_statistics_of_wrappers_that_come_with_the_environment_are_told_too():
    for kind in ({}, {"autoreset": "next_step"}):
        cautions = built(id="env_fakes:make_paid_by_statistics", num_envs=2, **kind).cautions
        assert cautions["running-statistics"].startswith("the wrapper NormalizeReward goes on")


def test_rows_under_running_statistics_depend_on_what_was_played_before():
    """That is what the caution says, of CartPole: the second of two episodes is not the first of its own."""
    request = EnvRequest(id="CartPole-v1", wrappers=(WrapperRequest(name="NormalizeObservation"),))
    starts = []
    for seeds in ([7], [3, 7]):
        lanes, _ = make_lanes(request)
        with closing(lanes):
            starts.append([lanes.reset_lanes([0], [seed]).observations.tolist() for seed in seeds][-1])
    assert starts[0] != starts[1]


@pytest.mark.parametrize(
    "kind",
    [
        {"vectorization": "async"},
        {"autoreset": "next_step"},
        {"autoreset": "same_step"},
        {"vectorization": "async", "autoreset": "same_step"},
    ],
    ids=str,
)
def test_lanes_of_every_kind_say_so(kind):
    info = built("env_fakes:SignReward", "NormalizeObservation", num_envs=2, **kind)
    assert "wrapper SignReward makes of rewards" in info.notes["wrapper-rewards-unused"]
    assert "wrapper NormalizeObservation goes on" in info.cautions["running-statistics"]
