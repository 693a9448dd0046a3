"""Limits of an episode's steps: which one holds, and how the end is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import play

EVERYWHERE = [
    {},
    {"num_envs": 2},
    {"vectorization": "async"},
    {"autoreset": "next_step"},
    {"autoreset": "disabled", "num_envs": 2},
]


def named(flags: dict[str, Any]) -> str:
    return "-".join(map(str, flags.values())) or "one lane"


@pytest.mark.parametrize("flags", EVERYWHERE, ids=named)
@pytest.mark.parametrize("limit", [7, 250])
def test_a_limit_replaces_the_registered_one_be_it_shorter_or_longer(
    tmp_path: Path, limit: int, flags: dict[str, Any]
) -> None:
    """K12. Put around the registered limit of 200, a second one could only shorten."""
    played = play(tmp_path, "zero", "Pendulum-v1", episodes=2, max_episode_steps=limit, **flags)
    assert played.column("length") == [limit] * 2
    assert played.column("end") == ["truncated"] * 2
    assert played.record["env"]["max_episode_steps"] == played.record["limits"]["steps"] == limit


def test_pendulum_can_be_played_for_a_thousand_steps(tmp_path: Path) -> None:
    """K12."""
    played = play(tmp_path, "zero", "Pendulum-v1", episodes=1, max_episode_steps=1000)
    assert played.column("length") == [1000]


@pytest.mark.parametrize("flags", EVERYWHERE, ids=named)
def test_an_endless_episode_is_truncated_and_not_terminated(tmp_path: Path, flags: dict[str, Any]) -> None:
    """K12."""
    played = play(tmp_path, "idle", "toys:Toy-v0", episodes=3, max_episode_steps=9, **flags)
    for row in played.rows:
        assert (row["length"], row["terminated"], row["truncated"]) == (9, False, True)


@pytest.mark.parametrize("flags", EVERYWHERE, ids=named)
def test_an_episode_that_ends_at_its_limit_has_both_flags_and_is_counted_once(
    tmp_path: Path, flags: dict[str, Any]
) -> None:
    """K12."""
    played = play(tmp_path, "idle", "toys:Coins-v0", episodes=4, max_episode_steps=3, **flags)
    assert played.column("index") == [0, 1, 2, 3]
    for row in played.rows:
        assert (row["length"], row["terminated"], row["truncated"]) == (3, True, True)
        assert (row["end"], row["success"]) == ("terminated", True)
    assert played.summary["ends"] == {"terminated": 4}


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_step_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: int
) -> None:
    """K12."""
    played = play(tmp_path, "idle", "toys:Toy-v0", max_episode_steps=limit)
    assert played.code == 2
    assert not played.out.exists()
    assert "--max-episode-steps" in capsys.readouterr().err


@pytest.mark.parametrize("flags", [{}, {"num_envs": 3}, {"vectorization": "async"}], ids=named)
def test_an_environment_without_a_limit_is_ended_after_so_many_seconds(
    tmp_path: Path, flags: dict[str, Any]
) -> None:
    played = play(tmp_path, "idle", "toys:Toy-v0", episodes=2, max_episode_seconds=0.02, **flags)
    assert played.column("end") == ["time_cap"] * 2
    for row in played.rows:
        assert row["length"] > 0
        assert (row["terminated"], row["truncated"], row["success"]) == (False, False, None)
        assert row["seconds"]["total"] >= 0.02


@pytest.mark.parametrize("flags", [{}, {"num_envs": 8}, {"num_envs": 8, "vectorization": "async"}], ids=named)
def test_resets_take_nothing_of_an_episodes_seconds(tmp_path: Path, flags: dict[str, Any]) -> None:
    """Eight of them, one after the other, take longer than the twenty steps may."""
    given = {"episodes": 8, "max_episode_seconds": 0.2, "is_probed": False, **flags}
    played = play(tmp_path, "durable_toys:Draws", "durable_toys:StartsSlowly", **given)
    assert played.column("length") == [20] * 8
    assert played.column("end") == ["terminated"] * 8


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_waiting_for_an_autoreset_takes_nothing_of_an_episodes_seconds(tmp_path: Path, mode: str) -> None:
    """An episode that was ended after 0.1 s leaves a lane to wait until 0.24 s are over."""
    given = {"episodes": 3, "max_episode_seconds": 0.1, "is_probed": False, "env_args": (f"mode={mode}",)}
    played = play(tmp_path, "idle", "durable_toys:Naps", **given)
    assert played.column("end") == ["time_cap"] * 3
    assert min(played.column("length")) >= 3
