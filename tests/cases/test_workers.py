"""Environments in worker processes, however these are started."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
import toys
from running import play, policy, unarranged

METHODS = ("fork", "forkserver", "spawn")


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_imports_the_module_in_front_of_the_id(tmp_path: Path, method: str) -> None:
    """K39."""
    flags = {"vectorization": "async", "start_method": method, "episodes": 3, "num_envs": 2}
    played = play(tmp_path, "idle", "toys:Coins-v0", **flags)
    assert played.column("return") == [111.0] * 3
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_knows_an_id_that_only_this_process_has_registered(tmp_path: Path, method: str) -> None:
    """K39. The registry of a worker that is not forked is empty."""
    assert toys.Coins.__name__ == "Coins"
    flags = {"vectorization": "async", "start_method": method, "episodes": 3, "num_envs": 2}
    played = play(tmp_path, "idle", "Coins-v0", **flags)
    assert played.code == 0
    assert played.column("return") == [111.0] * 3


def test_a_worker_imports_what_the_route_lists(tmp_path: Path) -> None:
    """K39."""
    path = tmp_path / "route.yaml"
    path.write_text("env: {id: Coins-v0, imports: [toys], vectorization: async, start_method: spawn}\n")
    assert play(tmp_path, "idle", route=path, episodes=2).column("return") == [111.0] * 2


def test_what_a_worker_cannot_build_is_said_in_its_own_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """K39. Not `ConnectionResetError`."""
    flags = {"vectorization": "async", "start_method": "spawn", "env_args": ("speed=9",)}
    played = play(tmp_path, "idle", "toys:Coins-v0", **flags)
    assert played.code == 2
    assert not played.out.exists()
    message = capsys.readouterr().err
    assert "`toys:Coins-v0` cannot be built with (speed=9): TypeError: Coins() takes no arguments" in message
    assert "Traceback" not in message
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("source", ["homemade", "toy_policies.homemade:Policy"])
def test_an_environment_in_the_policy_s_own_file_reaches_the_workers(
    tmp_path: Path, source: str, method: str
) -> None:
    """K48. By name, its class cannot be found there; by id, it is not registered there."""
    flags = {"vectorization": "async", "start_method": method, "episodes": 3, "num_envs": 2}
    played = play(tmp_path, source, "Homemade-v0", **flags)
    assert played.code == 0
    assert [(row["length"], row["return"]) for row in played.rows] == [(2, 2.0)] * 3


@pytest.mark.parametrize("method", METHODS)
def test_no_start_method_changes_a_row(tmp_path: Path, method: str) -> None:
    """K48."""
    flags = {"episodes": 6, "num_envs": 2}
    here = play(tmp_path, "random", "CartPole-v1", **flags)
    there = play(tmp_path, "random", "CartPole-v1", vectorization="async", start_method=method, **flags)
    assert unarranged(there.rows) == unarranged(here.rows)


def test_the_policy_s_file_is_loaded_from_another_folder_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """K48. A path that is relative to where the command was given."""
    (tmp_path / "elsewhere").mkdir()
    local = Path(policy("homemade")).read_text().replace("Homemade-v0", "Local-v0")
    (tmp_path / "elsewhere" / "local.py").write_text(local)
    monkeypatch.chdir(tmp_path)
    flags = {"vectorization": "async", "start_method": "spawn", "episodes": 2}
    assert play(tmp_path, "elsewhere/local.py", "Local-v0", **flags).column("return") == [2.0, 2.0]


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_the_number_of_workers_changes_no_row(tmp_path: Path, workers: int) -> None:
    """Lanes that no number divides, and that end at different times."""
    flags = {"episodes": 13, "num_envs": 5}
    here = play(tmp_path, "random", "CartPole-v1", **flags)
    there = play(tmp_path, "random", "CartPole-v1", vectorization="async", env_workers=workers, **flags)
    assert unarranged(there.rows) == unarranged(here.rows)
    assert (here.record["env"]["workers"], there.record["env"]["workers"]) == (None, workers)
    assert there.advisory("env-workers-capped") is None


def test_more_workers_than_lanes_are_one_a_lane_and_an_advisory(tmp_path: Path) -> None:
    played = play(tmp_path, "random", "CartPole-v1", vectorization="async", env_workers=9, episodes=2, num_envs=2)
    advisory = played.advisory("env-workers-capped")
    assert advisory is not None
    assert (advisory["severity"], played.record["env"]["workers"]) == ("info", 2)
    assert "9 environment workers were asked for" in advisory["message"]
