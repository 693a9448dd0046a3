"""Which episodes are counted, and how many steps each of them has."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import play

AUTORESETS = ("next_step", "same_step", "disabled")


def test_short_episodes_are_not_counted_more_often_than_long_ones(tmp_path: Path) -> None:
    """K01. Whoever stops at the first eight to finish reports a mean of 8.75."""
    played = play(tmp_path, "idle", "toys:TwoPaces-v0", num_envs=4, episodes=8, seed=0)
    assert played.column("seed") == list(range(8))
    assert played.column("length") == [2, 20] * 4
    assert played.summary["mean_return"] == 11.0
    assert sorted(played.written) == list(range(8))


@pytest.mark.parametrize(
    ("episodes", "lanes", "lengths"),
    [(5, 3, [2, 20, 2, 20, 2]), (1, 4, [2]), (7, 2, [2, 20, 2, 20, 2, 20, 2]), (6, 6, [2, 20, 2, 20, 2, 20])],
)
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_as_many_episodes_are_counted_as_were_asked_for(
    tmp_path: Path, episodes: int, lanes: int, lengths: list[int], vectorization: str
) -> None:
    """K02."""
    flags = {"num_envs": lanes, "episodes": episodes, "vectorization": vectorization}
    played = play(tmp_path, "idle", "toys:TwoPaces-v0", **flags)
    assert played.code == 0
    assert played.column("seed") == list(range(episodes))
    assert played.column("length") == lengths
    assert played.summary["mean_return"] == pytest.approx(sum(lengths) / episodes)
    assert played.summary["episodes"] == played.summary["planned"] == episodes


@pytest.mark.parametrize("autoreset", AUTORESETS)
@pytest.mark.parametrize(("episodes", "lanes"), [(5, 3), (1, 4), (7, 2), (3, 3)])
def test_a_lockstep_environment_plays_as_many_episodes_as_were_asked_for(
    tmp_path: Path, autoreset: str, episodes: int, lanes: int
) -> None:
    """K02. Its surplus lanes step along, and are not counted."""
    flags = {"num_envs": lanes, "episodes": episodes, "autoreset": autoreset}
    played = play(tmp_path, "idle", "toys:TwoPaces-v0", **flags)
    assert played.code == 0
    assert played.column("index") == list(range(episodes))
    assert set(played.column("length")) <= {2, 20}
    assert played.column("return") == played.column("length")


@pytest.mark.parametrize("flag", ["episodes", "num_envs"])
@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_a_usage_error_that_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, count: int
) -> None:
    """K02."""
    played = play(tmp_path, "idle", "toys:TwoPaces-v0", **{flag: count})
    assert played.code == 2
    assert not played.out.exists()
    message = capsys.readouterr().err
    assert f"--{flag.replace('_', '-')}" in message
    assert str(count) in message


@pytest.mark.parametrize("lanes", [1, 2, 3])
@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("autoreset", AUTORESETS)
def test_neither_the_reset_step_nor_the_next_episode_is_counted(
    tmp_path: Path, autoreset: str, vectorization: str, lanes: int
) -> None:
    """K03, K04 and K05: length 4, and returns of 110 or 112, are what other readings give."""
    flags = {"num_envs": lanes, "autoreset": autoreset, "vectorization": vectorization}
    played = play(tmp_path, "idle", "toys:Coins-v0", episodes=3 * lanes, **flags)
    assert [(row["length"], row["return"], row["end"]) for row in played.rows] == [(3, 111.0, "terminated")] * (
        3 * lanes
    )
    assert played.column("success") == [True] * (3 * lanes)
    assert played.summary["success_rate"] == 1.0
    assert played.record["env"]["autoreset"] == autoreset
    assert played.record["seeded"] == (autoreset == "disabled")


@pytest.mark.parametrize("autoreset", [None, *AUTORESETS])
def test_every_start_of_a_list_is_played_once(tmp_path: Path, autoreset: str | None) -> None:
    """K15. A reset on top of another one skips every second start."""
    played = play(tmp_path, "idle", "toys:Shelf-v0", episodes=4, metrics=("start",), autoreset=autoreset)
    assert [row["metrics"]["start"] for row in played.rows] == [0, 1, 2, 3]


def test_lanes_share_a_plan_and_take_their_starts_in_turn(tmp_path: Path) -> None:
    """K15. Two lanes with a shelf each: nobody resets more often than he plays."""
    played = play(tmp_path, "idle", "toys:Shelf-v0", episodes=6, num_envs=2, metrics=("start",))
    by_lane: dict[int, list[float]] = {0: [], 1: []}
    for row in played.rows:
        by_lane[row["lane"]].append(row["metrics"]["start"])
    assert by_lane == {0: [0, 1, 2], 1: [0, 1, 2]}


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("lanes", [1, 3, 4, 12])
def test_the_number_of_lanes_changes_no_row(tmp_path: Path, lanes: int, vectorization: str) -> None:
    """K16."""
    flags = {"num_envs": lanes, "vectorization": vectorization}
    played = play(tmp_path, "echo:Batched", "toys:Echo-v0", episodes=12, **flags)
    assert played.column("length") == [5, 7] * 6
    assert played.column("return") == [5.0, 7.0] * 6
    assert played.column("episode_id") == [f"ep-{number:06d}" for number in range(1, 13)]
    assert played.column("policy_calls") == [5, 7] * 6
