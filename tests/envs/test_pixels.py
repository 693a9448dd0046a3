"""Pixels: who offers to leave frames out, and what the wrapper for rendered frames shows."""

from __future__ import annotations

import chunk_toys
import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from rlmesh_envs.lane_set import LaneSet
from rlmesh_envs.pixels import PixelsOnRequest, SkippingStep, skip_of


def test_an_offer_is_found_through_wrappers_that_keep_nothing():
    env = gym.make("chunk_toys:Film-v0", max_episode_steps=9)
    skip, hidden_by = skip_of(chunk_toys.Brightening(env))
    assert skip == env.unwrapped.skip_pixels
    assert hidden_by == ""


def test_an_offer_may_be_an_attribute_of_the_object():
    env = chunk_toys.Offering([3])
    assert skip_of(env) == (env.skip_pixels, "")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda env: gym.wrappers.FrameStackObservation(env, 2),
        lambda env: gym.wrappers.DelayObservation(env, 1),
        lambda env: gym.wrappers.NormalizeObservation(gym.wrappers.FlattenObservation(env)),
        chunk_toys.Forwarding,
    ],
    ids=["stack", "delay", "running mean", "forwarding"],
)
def test_an_offer_is_hidden_by_wrappers_that_keep_observations(wrap):
    env = wrap(chunk_toys.Film([9]))
    assert skip_of(gym.wrappers.TimeLimit(env, 5)) == (None, type(env).__name__)


def test_where_nobody_offers_nothing_is_hidden():
    assert skip_of(gym.wrappers.FrameStackObservation(gym.make("CartPole-v1"), 2)) == (None, "")


def test_an_environment_is_told_only_what_is_new():
    told = []
    step = SkippingStep(lambda action: action, told.append)
    for is_unread in (False, True, True, False, False, True):
        step.is_unread = is_unread
        assert step(7) == 7
    assert told == [True, False, True]


def test_a_reset_begins_with_a_whole_frame():
    lanes = LaneSet([lambda: chunk_toys.Film([9])] * 2)
    lanes.reset_lanes([0, 1], [3, 4])
    actions = np.zeros(2, np.int64)
    steps = lanes.step_lanes(actions, (0, 1), [True, False])
    assert steps.observations["pixels"][:, 0, 0, 0].tolist()[1] == 4 * 31 + 7
    assert steps.observations["pixels"][0, 0, 0, 0] >= chunk_toys.GARBAGE - 1
    first = lanes.reset_lanes([0], [5]).observations["pixels"]
    assert (first == 5 * 31).all()


def test_a_lane_that_nothing_is_said_of_renders():
    lanes = LaneSet([lambda: chunk_toys.Film([9])])
    lanes.reset_lanes([0], [3])
    seen = lanes.step_lanes(np.zeros(1, np.int64), (0,)).observations["pixels"]
    assert (seen == 3 * 31 + 7).all()


def test_an_offer_that_raises_fails_its_lane_alone():
    class Moody(chunk_toys.Film):
        def skip_pixels(self, skip):
            if self.seed == 4:
                raise RuntimeError("not now")
            super().skip_pixels(skip)

    lanes = LaneSet([lambda: Moody([9])] * 2)
    lanes.reset_lanes([0, 1], [3, 4])
    steps = lanes.step_lanes(np.zeros(2, np.int64), (0, 1), [True, True])
    assert list(steps.failures) == [1]
    assert "RuntimeError: not now" in steps.failures[1].message
    assert (lanes.reset_lanes([1], [5]).observations["pixels"] == 155).all()


def drawn(**options) -> PixelsOnRequest:
    return PixelsOnRequest(chunk_toys.Drawn([9], "rgb_array"), **options)


def test_a_frame_stands_beside_the_observation():
    env = drawn()
    assert env.observation_space == spaces.Dict(
        state=chunk_toys.Drawn.observation_space, pixels=spaces.Box(0, 255, (4, 5, 3), np.uint8)
    )
    first, _ = env.reset(seed=2)
    assert first["state"].tolist() == [0, 2]
    assert (first["pixels"] == 62).all()
    assert first in env.observation_space


def test_keys_can_be_chosen_and_the_frame_can_stand_alone():
    assert set(drawn(key="camera", obs_key="place").observation_space) == {"camera", "place"}
    env = drawn(render_only=True)
    assert set(env.observation_space) == set(env.reset(seed=1)[0]) == {"pixels"}


def test_a_dict_keeps_its_keys():
    class Parts(chunk_toys.Drawn):
        observation_space = spaces.Dict(at=chunk_toys.Drawn.observation_space)

        def look(self):
            return {"at": super().look()}

    env = PixelsOnRequest(Parts([9], "rgb_array"), "seen")
    assert set(env.observation_space) == set(env.reset(seed=1)[0]) == {"at", "seen"}
    with pytest.raises(ValueError, match="has a key 'at' already"):
        PixelsOnRequest(Parts([9], "rgb_array"), "at")


def test_a_skipped_frame_is_the_one_before():
    env = drawn()
    env.reset(seed=2)
    env.skip_pixels(True)
    seen = env.step(0)[0]
    assert (seen["pixels"] == 62).all()
    assert seen["state"].tolist() == [1, 2]
    env.skip_pixels(False)
    assert (env.step(0)[0]["pixels"] == 76).all()


@pytest.mark.parametrize("mode", [None, "human"])
def test_environment_that_renders_no_array_is_refused(mode):
    with pytest.raises(ValueError, match=f"render_mode is {mode!r}: make the environment with"):
        PixelsOnRequest(chunk_toys.Drawn([9], mode))


def test_what_is_no_frame_is_refused():
    class Blank(chunk_toys.Drawn):
        def render(self):
            return None

    with pytest.raises(ValueError, match="render gave NoneType, expected an array of uint8"):
        PixelsOnRequest(Blank([9], "rgb_array"))
