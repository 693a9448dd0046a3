"""Steps that were recorded are those that the environment made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import film_toys
import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import play, unarranged

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.step_files import read_steps

pyarrow = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EDITS = """
import numpy as np
class Policy:
    def predict_batch(self, obs):
        answer = obs[:, 0].astype(np.int64) % 4
        obs[:] = -7.0
        return answer
"""


def files(played: Any) -> dict[str, dict[str, Any]]:
    return {path.stem: read_steps(path) for path in sorted((played.folder / "steps").iterdir())}


def leaf(value: Any, name: str) -> Any:
    for key in name.split(".")[1:]:
        value = value[int(key) if isinstance(value, (tuple, spaces.Tuple)) else key]
    return value


def assert_equal(recorded: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.asarray(recorded), np.asarray(expected))
    assert np.asarray(recorded).dtype == np.asarray(expected).dtype


@pytest.mark.parametrize(
    "env_id",
    ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Blackjack-v1", "Taxi-v4", "MountainCarContinuous-v0"],
)
def test_playing_the_actions_again_gives_what_was_recorded(tmp_path: Path, env_id: str) -> None:
    """The environment itself, stepped by hand, is the measure of observations, rewards and flags."""
    if env_id not in gym.registry:
        env_id = "Taxi-v3"
    played = play(tmp_path, "random", env_id, episodes=7, num_envs=3, max_episode_steps=40, seed=5, record="steps")
    recorded = files(played)
    assert sorted(recorded) == [row["episode_id"] for row in played.rows]
    for row in played.rows:
        steps = recorded[row["episode_id"]]
        with gym.make(env_id, max_episode_steps=40) as env:
            observation, _ = env.reset(seed=row["seed"])
            seen, paid, ends = [observation], [], []
            for action in steps["action"]:
                observation, reward, terminated, truncated, _ = env.step(action)
                seen.append(observation)
                paid.append(reward)
                ends.append((terminated, truncated))
            space = env.observation_space
        assert len(paid) == row["length"]
        names = [name for name in steps if name.split(".")[0] == "observation"]
        for name in names:
            one = leaf(space, name) if isinstance(space, spaces.Tuple) else space
            assert_equal(steps[name], np.array([leaf(value, name) for value in seen], one.dtype))
        assert steps["reward"].tolist() == paid
        assert sum(paid) == row["return"]
        assert list(zip(steps["terminated"], steps["truncated"], strict=True)) == [(False, False), *ends]
        assert steps["t"].tolist() == list(range(row["length"] + 1))
        assert set(steps["seed"]) == {row["seed"]}
        assert set(steps["index"]) == {row["index"]}


def test_leaves_of_every_kind_come_back(tmp_path: Path) -> None:
    played = play(tmp_path, "random", "film_toys:Leaves", episodes=3, num_envs=2, record="steps")
    steps = files(played)["ep-000002"]
    assert_equal(steps["observation.half"], np.array([np.full((2, 3), t + 0.5) for t in range(4)], np.float16))
    assert_equal(steps["observation.count"], np.arange(4))
    assert_equal(steps["observation.flags"], np.array([[1, 0, t % 2] for t in range(4)], np.int8))
    assert_equal(steps["observation.pair.0"], np.array([[t, 1] for t in range(4)], np.uint8))
    assert steps["observation.pair.1"].tolist() == [[t, 8] for t in range(4)]
    assert steps["observation.text"] == [f"step {t}, “ja”" for t in range(4)]
    graph = json.loads(steps["observation.graph"][2])
    assert graph[0] == [[2, 2]] * 3
    assert steps["action.arm"].shape == (3, 2)
    assert steps["action.arm"].dtype == np.float32
    assert steps["action.grip"].shape == (3,)
    assert steps["info"][0] is None
    assert steps["info"][1] == {
        "bad": None,
        "frame": "float64[100, 100]",
        "small": [0, 1],
        "key": {"3": "[b]x"},
    }


@pytest.mark.real
def test_pandas_and_polars_read_a_folder_of_files(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    played = play(tmp_path, "random", "film_toys:Leaves", episodes=3, num_envs=2, record="steps")
    frame = pandas.read_parquet(played.folder / "steps")
    assert frame.groupby("index")["reward"].sum().tolist() == played.column("return")
    table = polars.read_parquet(played.folder / "steps" / "*.parquet")
    assert table.group_by("index").agg(polars.col("reward").sum()).sort("index")["reward"].to_list() == (
        played.column("return")
    )
    assert table["observation.half"].to_list()[1] == [1.5] * 6


def test_what_is_recorded_is_what_was_given_whoever_writes_into_it(tmp_path: Path) -> None:
    """The environment reuses its arrays, and the policy writes into what it sees."""
    source = tmp_path / "policy.py"
    source.write_text(EDITS)
    flags = {"episodes": 5, "num_envs": 2, "is_probed": False, "instances": "shared"}
    played = play(tmp_path, str(source), "film_toys:Same", record="steps", **flags)
    for row in played.rows:
        steps = files(played)[row["episode_id"]]
        assert steps["observation"].tolist() == [[t, row["seed"]] for t in range(4)]
        assert steps["action"].tolist() == [0, 1, 2]
        assert steps["info"] == [None, {"t": 1}, {"t": 2}, {"t": 3}]


def test_an_episode_that_broke_has_the_steps_that_it_finished(tmp_path: Path) -> None:
    played = play(tmp_path, "zero", "film_toys:Falls", episodes=4, num_envs=2, record="steps")
    assert [row["end"] for row in played.rows] == ["terminated", "error", "terminated", "terminated"]
    steps = files(played)["ep-000002"]
    assert steps["observation"].tolist() == [[0, 1], [1, 1]]
    assert steps["reward"].tolist() == [2.0]
    assert not (steps["terminated"] | steps["truncated"]).any()
    assert files(played)["ep-000004"]["reward"].tolist() == [4.0, 5.0, 6.0]


def test_an_episode_without_a_step_has_one_observation(tmp_path: Path) -> None:
    """Its first policy call raises."""
    source = tmp_path / "policy.py"
    source.write_text(
        "class Policy:\n    def predict(self, obs, context):\n"
        "        if context.index == 1:\n            raise ValueError('no')\n        return 0\n"
    )
    played = play(tmp_path, str(source), "film_toys:Clock", episodes=3, record="steps", is_probed=False)
    steps = files(played)["ep-000002"]
    assert steps["observation"].tolist() == [[0, 1]]
    assert (steps["action"].shape, steps["reward"].shape) == ((0,), (0,))


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Any:
    tmp = tmp_path_factory.mktemp("alone")
    return play(tmp, "chunky", "toys:TwoPaces-v0", episodes=9, horizon=3, record="steps")


class TestArrangement:
    """However a run is arranged, and whether it is recorded, files and rows are the same."""

    @pytest.mark.parametrize(
        "flags",
        [
            {"num_envs": 4},
            {"num_envs": 4, "schedule": "eager"},
            {"num_envs": 3, "vectorization": "async"},
            {"num_envs": 2, "workers": 2},
            {"num_envs": 9},
        ],
        ids=str,
    )
    def test_files_are_the_same(self, tmp_path: Path, alone: Any, flags: dict[str, Any]) -> None:
        played = play(tmp_path, "chunky", "toys:TwoPaces-v0", episodes=9, horizon=3, record="steps", **flags)
        assert unarranged(played.rows) == unarranged(alone.rows)
        mine, others = files(played), files(alone)
        assert mine.keys() == others.keys()
        for name, steps in mine.items():
            for column, values in steps.items():
                np.testing.assert_array_equal(np.asarray(values), np.asarray(others[name][column]))

    def test_rows_do_not_know_of_it(self, tmp_path: Path, alone: Any) -> None:
        played = play(tmp_path, "chunky", "toys:TwoPaces-v0", episodes=9, horizon=3, num_envs=4)
        assert unarranged(played.rows) == unarranged(alone.rows)
        assert not (played.folder / "steps").exists()


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(lanes=st.integers(1, 6), episodes=st.integers(1, 8), horizon=st.integers(1, 5), seed=st.integers(0, 99))
def test_any_company_of_lanes_is_sorted_rightly(tmp_path, lanes, episodes, horizon, seed):
    """Observation = [t, seed] in the toy: each row of each file says which moment it is of."""
    played = play(
        tmp_path,
        "chunky",
        "toys:TwoPaces-v0",
        episodes=episodes,
        num_envs=lanes,
        horizon=horizon,
        seed=seed,
        record="steps",
    )
    for row in played.rows:
        steps = files(played)[row["episode_id"]]
        length = 20 if row["seed"] % 2 else 2
        assert steps["observation"].tolist() == [[t, row["seed"]] for t in range(length + 1)]
        assert steps["terminated"].tolist() == [False] * length + [True]


@pytest.mark.parametrize(
    "flags",
    [
        {"vectorization": "native"},
        {"autoreset": "next_step"},
        {"autoreset": "same_step"},
        {"autoreset": "disabled"},
    ],
    ids=str,
)
def test_lanes_that_reset_themselves_are_sorted_too(tmp_path: Path, flags: dict[str, Any]) -> None:
    """CartPole's own rule: it ends where the pole or the cart is out of bounds, and every reward is 1."""
    played = play(tmp_path, "random", "CartPole-v1", episodes=9, num_envs=3, record="steps", **flags)
    assert played.code == 0
    for row in played.rows:
        steps = files(played)[row["episode_id"]]
        observations = steps["observation"]
        assert len(observations) == row["length"] + 1
        assert np.abs(observations[0]).max() <= 0.05
        is_out = (np.abs(observations[:, 0]) > 2.4) | (np.abs(observations[:, 2]) > 12 * np.pi / 180)
        assert is_out.tolist() == [False] * row["length"] + [True]


def test_missing_package_is_told_before_anything_is_played(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr("rlmesh_cli.step_files.find_spec", lambda name: None)
    played = play(tmp_path, "zero", "film_toys:Clock", episodes=2, record="steps")
    assert (played.code, played.folder) == (2, None)
    assert "pip install 'rlmesh-cli[steps]'" in capsys.readouterr().err


def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(HarnessError, match="cannot be read as Parquet"):
        read_steps(path)
    pq.write_table(pyarrow.table({"a": [1]}), path)
    with pytest.raises(HarnessError, match="is not a file of an episode's steps"):
        read_steps(path)


def test_toys_are_what_they_say() -> None:
    assert film_toys.picture(0, 0)[0, 0].tolist() == [0, 1, 2]


@pytest.mark.real
def test_seeds_of_any_size_stand_in_one_column(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    played = play(tmp_path, "zero", "film_toys:Clock", seeds=f"1,{2**64 + 1}", record="steps")
    assert set(pandas.read_parquet(played.folder / "steps")["seed"]) == {"1", str(2**64 + 1)}
