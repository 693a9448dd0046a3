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
    notes = built("env_fakes:SignReward", num_envs=2, **kind).notes
    assert "wrapper SignReward makes of rewards" in notes["wrapper-rewards-unused"]
