"""The return is the environment's own, in float64, whatever its numbers are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import play

MIXED = """
from fractions import Fraction

import gymnasium
import numpy as np


class Mixed(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.seed, self.time = seed, 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        large = np.float32(2**24 if self.time == 1 else 1)
        return np.zeros(1, np.float32), Fraction(1, 2) if self.seed % 2 else large, self.time == 5, False, {}
"""


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_what_one_lane_pays_in_does_not_shorten_the_sum_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    """In float32 2**24 + 1 is 2**24; beside a Fraction, float32 passes for Python's own float."""
    (tmp_path / "mixed_rewards.py").write_text(MIXED)
    monkeypatch.syspath_prepend(tmp_path)
    played = play(tmp_path, "idle", "mixed_rewards:Mixed", episodes=4, num_envs=lanes)
    assert played.column("return") == [2**24 + 4, 2.5, 2**24 + 4, 2.5]


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async"}, {"autoreset": "next_step"}])
def test_a_wrapper_of_the_route_does_not_change_the_return(tmp_path: Path, flags: dict[str, Any]) -> None:
    """K11. The environment pays 15, of which the wrapper shows 3."""
    path = tmp_path / "route.yaml"
    path.write_text("env: {id: 'toys:Fives-v0', wrappers: ['toys:Sign']}\n")
    played = play(tmp_path, "idle", route=path, episodes=3, num_envs=2, **flags)
    assert played.column("return") == [15.0] * 3
    assert played.record["route"]["env"]["wrappers"] == ["toys:Sign"]
    advisory = played.advisory("wrapper-rewards-unused")
    assert advisory is not None
    assert (advisory["severity"], advisory["count"]) == ("info", 1)
    assert "the route's wrapper Sign makes of rewards is not counted" in advisory["message"]
    if "autoreset" not in flags:
        assert "Sign" in played.record["env"]["layers"]


def test_a_wrapper_that_repeats_actions_pays_for_every_inner_step(tmp_path: Path) -> None:
    """K11."""
    path = tmp_path / "route.yaml"
    wrapper = "{name: MaxAndSkipObservation, kwargs: {skip: 2}}"
    path.write_text(f"env: {{id: 'toys:Coins-v0', wrappers: [{wrapper}, 'toys:Sign']}}\n")
    played = play(tmp_path, "idle", route=path, episodes=2)
    assert played.column("return") == [111.0, 111.0]
    assert played.column("length") == [2, 2]


def test_a_wrapper_behind_the_id_is_named_in_the_record(tmp_path: Path) -> None:
    """K11. It cannot be undone; the reader can see that it is there."""
    played = play(tmp_path, "idle", "toys:Squashed-v0", episodes=1)
    assert played.column("return") == [3.0]
    layers = played.record["env"]["layers"]
    assert layers.index("Sign") < layers.index("Fives")


@pytest.mark.parametrize("flags", [{}, {"workers": 2}])
def test_a_wrapper_that_goes_on_changing_statistics_is_told_once_as_a_caution(
    tmp_path: Path, flags: dict[str, Any]
) -> None:
    path = tmp_path / "route.yaml"
    path.write_text("env: {id: 'CartPole-v1', wrappers: [NormalizeObservation]}\n")
    played = play(tmp_path, "random", route=path, episodes=4, strict=True, **flags)
    advisory = played.advisory("running-statistics")
    assert advisory is not None
    assert (played.code, advisory["severity"], advisory["count"]) == (1, "caution", 1)
    assert "the wrapper NormalizeObservation goes on changing statistics" in advisory["message"]


@pytest.mark.parametrize("flags", [{}, {"num_envs": 3}, {"vectorization": "async"}])
def test_odd_types_become_plain_numbers_and_nothing_is_lost(tmp_path: Path, flags: dict[str, Any]) -> None:
    """K42. A float32 sum stays at 16777216."""
    played = play(tmp_path, "idle", "toys:OddTypes-v0", episodes=3, **flags)
    assert played.column("return") == [16777219.0] * 3
    assert played.column("success") == [True] * 3
    assert {type(row["return"]) for row in played.rows} == {float}
    assert {type(row["success"]) for row in played.rows} == {bool}
    assert {type(row["length"]) for row in played.rows} == {int}
