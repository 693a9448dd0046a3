"""Whatever an environment or a policy gives or raises costs its own episode, and never shows our traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import finish, play, policy, read_run, start
from toy_policies.oddities import ERRORS, INFOS, REWARDS

from rlmesh_cli.step_files import read_steps

WAYS = [{}, {"num_envs": 2}, {"vectorization": "async"}]


def named(flags: dict[str, Any]) -> str:
    return "-".join(map(str, flags.values())) or "one lane"


@pytest.mark.parametrize("flags", WAYS, ids=named)
@pytest.mark.parametrize("kind", REWARDS)
def test_a_reward_that_is_no_number_costs_its_episode(tmp_path: Path, kind: str, flags: dict[str, Any]) -> None:
    arguments = (f"reward={kind!r}",)
    played = play(tmp_path, "oddities", "Odd-v0", episodes=4, env_args=arguments, **flags)
    assert played.code == 4
    assert played.column("end") == ["terminated", "error"] * 2
    assert played.column("length") == [3, 1] * 2
    assert {row["error"]["phase"] for row in played.rows[1::2]} == {"step"}


@pytest.mark.parametrize("flags", WAYS, ids=named)
@pytest.mark.parametrize("kind", INFOS)
def test_an_info_that_cannot_be_read_reports_nothing(tmp_path: Path, kind: str, flags: dict[str, Any]) -> None:
    """The last report before and after it counts."""
    arguments, metrics = (f"info={kind!r}",), ("load",)
    played = play(tmp_path, "oddities", "Odd-v0", episodes=4, env_args=arguments, metrics=metrics, **flags)
    for row in played.rows:
        if row["error"] is None:
            assert (row["length"], row["success"], row["metrics"]["load"]) == (3, True, 3.0)
    assert played.column("error")[::2] == [None, None]


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize("autoreset", [None, "disabled", "next_step", "same_step"])
def test_numbers_of_several_kinds_under_one_key_are_each_lanes_own(
    tmp_path: Path, vectorization: str, autoreset: str | None
) -> None:
    flags = {"num_envs": 6, "episodes": 6, "vectorization": vectorization, "autoreset": autoreset}
    played = play(tmp_path, "idle", "odd_toys:Mixed", metrics=("number", "inner.number"), **flags)
    expected = [0.0, 0.75, 1.0, 0.5, 0.25, 2.0**60]
    assert played.column("metrics") == [{"number": number, "inner.number": number} for number in expected]


@pytest.mark.parametrize("flags", WAYS, ids=named)
@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_whose_words_cannot_be_said_is_an_error_all_the_same(
    tmp_path: Path, kind: str, flags: dict[str, Any]
) -> None:
    arguments = (f"error={kind!r}",)
    played = play(tmp_path, "oddities", "Odd-v0", episodes=4, env_args=arguments, quiet=False, **flags)
    assert played.code == 4
    assert played.column("end") == ["terminated", "error"] * 2
    name = {"half a sign": "OSError", "unspeakable": "UnspeakableError"}.get(kind, "RuntimeError")
    assert {row["error"]["message"].partition(":")[0] for row in played.rows[1::2]} == {name}


@pytest.mark.parametrize("as_json", [False, True])
def test_a_return_that_no_number_can_hold_is_written_as_strict_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    flags = {"quiet": False, "as_json": as_json}
    played = play(tmp_path, "oddities", "Enormous-v0", episodes=3, num_envs=2, **flags)
    assert len(played.rows) == 3
    assert not np.isfinite(3 * 1e308)
    for row in played.rows:
        assert row["return"] is None or row["error"] is not None
    assert played.summary["mean_return"] is None
    assert "Infinity" not in capsys.readouterr().out


@pytest.mark.parametrize("flags", WAYS, ids=named)
def test_an_info_dict_that_is_written_into_again_keeps_what_it_reported(
    tmp_path: Path, flags: dict[str, Any]
) -> None:
    played = play(tmp_path, "oddities", "OneInfo-v0", episodes=3, metrics=("load",), **flags)
    assert [row["metrics"]["load"] for row in played.rows] == [0.5, 1.5, 2.5]


@pytest.mark.parametrize("flags", [*WAYS, {"autoreset": "disabled"}], ids=named)
def test_an_environment_that_writes_into_its_action_does_not_rewrite_the_record(
    tmp_path: Path, flags: dict[str, Any]
) -> None:
    """The trace is of the actions that were executed: (1, 1), and not of the halves that are left of them."""
    played = play(tmp_path, "oddities:Ones", "Overwriting-v0", episodes=2, **flags)
    in_workers = play(tmp_path, "oddities:Ones", "Overwriting-v0", episodes=2, vectorization="async")
    assert played.column("return") == [4.0, 4.0]
    assert played.column("trace_hash") == in_workers.column("trace_hash")


@pytest.mark.parametrize("flags", [{}, {"num_envs": 3}], ids=named)
@pytest.mark.parametrize("source", ["echo", "echo:Batched", "echo:Counting"])
def test_an_environment_that_has_one_observation_for_all_steps_is_read_in_time(
    tmp_path: Path, source: str, flags: dict[str, Any]
) -> None:
    assert play(tmp_path, "oddities", "OneBuffer-v0", episodes=1, **flags).code == 0
    played = play(tmp_path, source, "OneBuffer-v0", episodes=6, **flags)
    assert played.column("return") == [5.0, 7.0] * 3


def test_lanes_that_would_share_one_environment_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A factory that gives the same object twice would have every lane step the others' episodes."""
    factory = "toy_policies.oddities:one_for_all"
    alone = play(tmp_path, "echo", factory, episodes=2)
    assert alone.column("return") == [5.0, 7.0]
    shared = play(tmp_path, "echo", factory, episodes=2, num_envs=2)
    assert shared.code == 2
    assert not shared.out.exists()
    assert "same" in capsys.readouterr().err


@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize(
    "source",
    ["singletons", "singletons:agent", "bare", "toy_policies.singletons:agent", "toy_policies.bare"],
)
def test_a_policy_of_which_there_is_only_one_is_right_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, lanes: int
) -> None:
    """It keeps something between `reset`s, so lanes that shared it would count each other's calls."""
    played = play(tmp_path, source, "toys:Echo-v0", episodes=4, num_envs=lanes)
    if played.code == 2:
        assert lanes > 1
        assert "--num-envs 1" in capsys.readouterr().err
    else:
        assert played.column("return") == [5.0, 7.0, 5.0, 7.0]


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_rows_that_are_asked_again_are_asked_with_what_was_seen(tmp_path: Path, lanes: int) -> None:
    """A policy may write into its batch before it raises."""
    played = play(tmp_path, "oddities:Greedy", "toys:Echo-v0", episodes=6, num_envs=lanes)
    assert played.column("end") == ["terminated"] * 3 + ["error"] + ["terminated"] * 2
    assert played.column("return") == [5.0, 7.0, 5.0, 2.0, 5.0, 7.0]


def test_what_the_policy_s_last_words_raise_is_in_the_record(tmp_path: Path) -> None:
    played = play(tmp_path, "oddities:Closing", "toys:Echo-v0", episodes=2)
    assert played.code == 0
    ended, closed = played.advisory("episode-end-raised"), played.advisory("close-raised")
    assert ended is not None
    assert ended["count"] == 2
    assert "no such episode" in ended["message"]
    assert closed is not None
    assert "the socket is gone" in closed["message"]


@pytest.mark.parametrize("autoreset", ["next_step", "same_step", "disabled"])
def test_an_endless_lockstep_environment_goes_on_after_a_time_cap(tmp_path: Path, autoreset: str) -> None:
    """Whoever waits for an episode that was given up to end by itself waits for ever."""
    process = start(
        policy("idle"),
        "--env",
        "toys:Toy-v0",
        "--autoreset",
        autoreset,
        "--max-episode-seconds",
        "0.02",
        "-n",
        "4",
        "--num-envs",
        "2",
        "--out",
        "runs",
        cwd=tmp_path,
    )
    code, _, err = finish(process, seconds=5)
    assert code in (0, 2), err
    if code == 0:
        played = read_run(tmp_path / "runs", code)
        assert played.column("end") == ["time_cap"] * 4


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_an_ending_is_kept_where_the_environment_writes_into_the_same_info_again(tmp_path, vectorization):
    """SAME_STEP hands the objects of an ended episode out after the reset; the score is that of its end."""
    flags = {"autoreset": "same_step", "vectorization": vectorization, "metrics": ("t",), "record": "steps"}
    played = play(tmp_path, "zero", "film_toys:Forgetful", episodes=4, num_envs=2, **flags)
    assert played.column("metrics") == [{"t": 3}] * 4
    steps = read_steps(played.folder / "steps" / "ep-000001.parquet")
    assert steps["observation"][:, 0].tolist() == [0, 1, 2, 3]
