"""Which start each episode has."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from running import play, unarranged
from toy_policies import seeing


def test_there_are_as_many_starts_as_episodes_whatever_the_number_of_lanes(tmp_path: Path) -> None:
    """K14. Seed 0 is a seed: its episode has 2 steps."""
    played = play(tmp_path, "idle", "toys:TwoPaces-v0", num_envs=4, episodes=12, seed=0)
    assert played.column("seed") == list(range(12))
    assert played.record["seeds"] == list(range(12))
    assert len(set(played.column("start_hash"))) == 12
    assert played.rows[0]["length"] == 2


def test_a_run_without_a_seed_writes_down_the_seeds_it_took_and_they_repeat_it(tmp_path: Path) -> None:
    """K14."""
    first = play(tmp_path, "random", "Acrobot-v1", num_envs=3, episodes=5, max_episode_steps=20)
    seeds = first.record["seeds"]
    assert [type(seed) for seed in seeds] == [int] * 5
    again = play(
        tmp_path,
        "random",
        "Acrobot-v1",
        num_envs=2,
        seeds=",".join(map(str, seeds)),
        max_episode_steps=20,
    )
    assert unarranged(again.rows) == unarranged(first.rows)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3,1,4", [3, 1, 4]), ("11..13", [11, 12, 13]), ("7,7,7", [7, 7, 7]), ("0,4294967296", [0, 2**32])],
)
def test_seeds_are_played_in_the_order_they_are_listed_in(tmp_path: Path, text: str, seeds: list[int]) -> None:
    played = play(tmp_path, "echo", "toys:Echo-v0", seeds=text, num_envs=2, metrics=("seed_seen",))
    assert played.column("seed") == seeds
    assert [row["metrics"]["seed_seen"] for row in played.rows] == seeds
    assert played.column("return") == [5.0 + 2 * (seed % 2) for seed in seeds]


def test_one_seed_thrice_is_one_start_thrice(tmp_path: Path) -> None:
    played = play(tmp_path, "idle", "CartPole-v1", seeds="7,7,7", num_envs=2)
    assert len(set(played.column("start_hash"))) == len(set(played.column("trace_hash"))) == 1
    assert played.column("episode_id") == ["ep-000001", "ep-000002", "ep-000003"]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_the_lanes_of_cartpole_start_where_single_environments_start(tmp_path: Path, vectorization: str) -> None:
    """K13. Gymnasium's own vector CartPole starts its second lane at x = 0.03079408."""
    seeing.SEEN.clear()
    flags = {"num_envs": 2, "episodes": 2, "seed": 5, "vectorization": vectorization, "is_probed": False}
    play(tmp_path, "toy_policies.seeing:Batched", "CartPole-v1", **flags)
    expected = [gym.make("CartPole-v1").reset(seed=seed)[0] for seed in (5, 6)]
    np.testing.assert_array_equal(seeing.SEEN[0], expected)
    np.testing.assert_allclose(seeing.SEEN[0][:, 0], [0.03050029, 0.00381644], atol=5e-9)


def test_a_native_vector_environment_says_that_it_cannot_be_replayed_by_episode(tmp_path: Path) -> None:
    """K13."""
    flags = {"num_envs": 2, "episodes": 5, "seed": 5, "vectorization": "native", "max_episode_steps": 6}
    played = play(tmp_path, "idle", "CartPole-v1", **flags)
    assert played.record["seeded"] is False
    assert played.column("seed") == [None] * 5
    advisory = played.advisory("unseeded")
    assert advisory is not None
    assert advisory["severity"] == "caution"
    assert set(played.column("length")) == {6}


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
def test_episodes_that_no_seed_decides_are_shared_out_beforehand(tmp_path: Path, autoreset: str) -> None:
    """Lane i gets episodes i, i + N, ...: whoever is quick gets no more of them."""
    flags = {"num_envs": 3, "episodes": 8, "autoreset": autoreset}
    played = play(tmp_path, "idle", "toys:TwoPaces-v0", **flags)
    assert played.column("lane") == [0, 1, 2, 0, 1, 2, 0, 1]
    assert played.column("seed") == [None] * 8
    assert len(set(played.column("start_hash"))) == 8
