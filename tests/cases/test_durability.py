"""What dies, hangs or stumbles costs its own episode, and a second try where it was the environment's doing."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from running import play, read_run, unarranged

from rlmesh_cli.evaluation_command import Request, run

ARRANGEMENTS: list[dict[str, Any]] = [
    {},
    {"num_envs": 3},
    {"num_envs": 3, "vectorization": "async"},
]
DRAWS = "durable_toys:Draws"


@pytest.mark.parametrize("flags", ARRANGEMENTS)
@pytest.mark.parametrize("env", ["durable_toys:Stumbles", "durable_toys:Trips"])
def test_an_episode_whose_environment_fails_once_is_played_again_from_its_seed(
    tmp_path: Path, env: str, flags: dict[str, Any]
) -> None:
    mark = tmp_path / "mark"
    mark.mkdir()
    played = play(tmp_path, DRAWS, env, episodes=6, env_args=(f"mark={mark}",), **flags)
    sound = play(tmp_path, DRAWS, "durable_toys:Diary", episodes=6)
    assert played.code == 0
    assert played.column("attempts") == [1, 1, 2, 1, 1, 1]
    rows, expected = unarranged(played.rows), unarranged(sound.rows)
    rows[2]["attempts"] = 1
    assert rows == expected
    advisory = played.advisory("episodes-retried")
    assert advisory is not None
    assert (advisory["count"], advisory["severity"]) == (1, "info")
    assert played.summary["retried"] == 1


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async", "env_workers": 2}], ids=["sync", "async"])
@pytest.mark.parametrize("lanes", [1, 2, 3, 5])
def test_an_episode_is_played_again_where_the_environment_was_built_anew(
    tmp_path: Path, lanes: int, flags: dict[str, Any]
) -> None:
    """On two lanes, lane 1 fails when lane 0 is free for its third episode, in which it would fail too."""
    given = {"episodes": 13, "env_args": ("lengths=[3,1,1,9,1]",)}
    played = play(tmp_path, DRAWS, "durable_toys:Wears", num_envs=lanes, **given, **flags)
    assert played.code == 0
    assert played.column("length") == [3, 1, 1, 9, 1, *[20] * 8]
    if lanes == 2:
        assert played.column("attempts")[3] == 2


def test_a_worker_that_dies_once_loses_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.mkdir()
    arguments = (f"mark={mark}", "dies=true")
    flags = {"episodes": 8, "num_envs": 4, "vectorization": "async", "env_args": arguments}
    played = play(tmp_path, DRAWS, "durable_toys:Stumbles", **flags)
    sound = play(tmp_path, DRAWS, "durable_toys:Diary", episodes=8)
    assert played.code == 0
    assert played.column("trace_hash") == sound.column("trace_hash")
    # Whose doing it was showed when it was played alone, and then it was nobody's.
    assert played.column("attempts") == [1] * 8
    advisory = played.advisory("env-worker-died")
    assert advisory is not None
    assert (advisory["severity"], advisory["count"]) == ("info", 2)
    assert advisory["message"] == (
        "the worker process died (exit code 7): the episodes that it had in hand were played again, each alone"
    )
    assert sound.advisory("env-worker-died") is None


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("env", ["Dies", "DiesAtReset"])
def test_a_worker_that_dies_takes_no_neighbour_along_whatever_the_lanes(
    tmp_path: Path, env: str, lanes: int
) -> None:
    flags = {"episodes": 10, "num_envs": lanes, "vectorization": "async"}
    played = play(tmp_path, DRAWS, f"durable_toys:{env}", **flags)
    sound = play(tmp_path, DRAWS, "durable_toys:Diary", episodes=10)
    assert played.code == 4
    assert [row["index"] for row in played.rows if row["error"]] == [4]
    assert played.column("attempts") == [1, 1, 1, 1, 2, 1, 1, 1, 1, 1]
    for row, expected in zip(played.rows, sound.rows, strict=True):
        assert row["index"] == 4 or row["trace_hash"] == expected["trace_hash"]


def test_a_neighbour_that_kills_the_worker_takes_no_second_try_along(tmp_path: Path) -> None:
    """One stumbles by itself, and a neighbour kills their worker while it is played again."""
    mark = tmp_path / "mark"
    mark.mkdir()
    played = play(
        tmp_path,
        DRAWS,
        "durable_toys:StumblesOnce",
        episodes=2,
        num_envs=2,
        vectorization="async",
        env_workers=1,
        env_args=(f"mark={mark}",),
    )
    sound = play(tmp_path, DRAWS, "durable_toys:Diary", episodes=2)
    assert played.code == 0
    assert played.column("trace_hash") == sound.column("trace_hash")
    assert played.column("error") == [None, None]


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async"}, {"autoreset": "disabled"}])
@pytest.mark.parametrize("how", ["OSError", "SystemExit"])
def test_an_environment_that_cannot_be_closed_takes_no_result_away(
    tmp_path: Path, flags: dict[str, Any], how: str
) -> None:
    played = play(
        tmp_path, DRAWS, "durable_toys:Sticks", episodes=4, num_envs=2, env_args=(f"how={how}",), **flags
    )
    assert (played.code, played.record["status"], len(played.rows)) == (0, "finished", 4)


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async"}, {"workers": 2}])
@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_environment_that_panics_loses_that_episode_alone(
    tmp_path: Path, flags: dict[str, Any], where: str
) -> None:
    """What extensions in other languages raise is no Exception to Python."""
    played = play(
        tmp_path, DRAWS, "durable_toys:Panics", episodes=6, num_envs=2, env_args=(f"where={where}",), **flags
    )
    assert played.code == 4
    errors = {row["index"]: row["error"] for row in played.rows if row["error"]}
    assert list(errors) == [4]
    assert errors[4]["phase"] == where
    assert errors[4]["message"] == "Panic: called `unwrap` on a `None`"


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let every file take so many bytes, as a disk does that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_full_disk_is_a_message_and_the_run_goes_on_afterwards(
    tmp_path: Path, workers: int, capsys: Any
) -> None:
    flags = {"episodes": 300, "num_envs": 3, "workers": workers}
    out = tmp_path / "runs"
    with files_of_at_most(80_000):
        assert run(Request(policy=DRAWS, env="durable_toys:Diary", out=out, quiet=True, **flags)) == 2
    said = capsys.readouterr().err
    assert "episodes.jsonl cannot be written: File too large" in said
    assert "see that there is room on the disk; rlmesh eval --resume goes on with the run" in said
    (folder,) = out.iterdir()
    assert 0 < len((folder / "episodes.jsonl").read_bytes().splitlines()) < 300
    assert run(Request(resume=str(folder), out=out, quiet=True)) == 0
    whole = play(tmp_path, DRAWS, "durable_toys:Diary", **flags)
    assert unarranged(read_run(out, 0).rows) == unarranged(whole.rows)


def test_a_disk_that_is_full_before_the_first_row_leaves_no_folder(tmp_path: Path, capsys: Any) -> None:
    with files_of_at_most(64):
        played = play(tmp_path, DRAWS, "durable_toys:Diary", episodes=4)
    assert (played.code, played.folder) == (2, None)
    assert "run.json cannot be written: File too large" in capsys.readouterr().err


def test_a_run_of_failing_resets_stops_when_too_many_episodes_have_errored(tmp_path: Path) -> None:
    played = play(tmp_path, DRAWS, "durable_toys:NeverStarts", episodes=50, num_envs=2, max_errors=3)
    assert played.code == 4
    assert played.summary["errors"] < 8


def test_a_worker_that_dies_twice_at_one_seed_costs_that_episode(tmp_path: Path) -> None:
    flags = {"episodes": 8, "num_envs": 2, "vectorization": "async"}
    played = play(tmp_path, DRAWS, "durable_toys:Dies", **flags)
    assert played.code == 4
    assert [row["index"] for row in played.rows if row["error"]] == [4]
    assert "worker process died (exit code 9)" in played.rows[4]["error"]["message"]
    assert played.rows[4]["attempts"] == 2


def test_an_environment_that_fails_twice_is_errored_with_bounds(tmp_path: Path, capsys: Any) -> None:
    """K10, with its bounds: seeds 3 and 5 break for good."""
    played = play(tmp_path, "idle", "toys:Fragile-v0", episodes=8, num_envs=4, quiet=False)
    success = played.summary["success"]
    assert (played.code, success["rate"], success["worst"], success["best"]) == (4, 0.75, 0.75, 1.0)
    assert [row["index"] for row in played.rows if row["attempts"] == 2] == [3, 5]
    assert "75.0 to 100.0 %, whatever the 2 that errored" in capsys.readouterr().out


@pytest.mark.parametrize("flags", ARRANGEMENTS)
def test_a_step_and_a_reset_that_hang_are_errors_of_their_episodes(tmp_path: Path, flags: dict[str, Any]) -> None:
    began = time.monotonic()
    played = play(tmp_path, DRAWS, "durable_toys:Hangs", episodes=5, step_timeout=0.2, **flags)
    assert time.monotonic() - began < 30
    assert played.code == 4
    errors = {row["index"]: row["error"] for row in played.rows if row["error"]}
    assert {index: error["phase"] for index, error in errors.items()} == {1: "step", 3: "reset"}
    assert errors[1]["message"] == "TimeoutError: step of the environment took longer than 0.2 s"
    assert "durable_toys.py" in errors[1]["place"]
    assert errors[1]["place"].endswith("in wait")
    assert errors[3]["message"] == "TimeoutError: reset of the environment took longer than 0.2 s"
    sound = play(tmp_path, DRAWS, "durable_toys:Diary", episodes=5)
    kept = [index for index in range(5) if index not in errors]
    assert [played.rows[index]["trace_hash"] for index in kept] == [
        sound.rows[index]["trace_hash"] for index in kept
    ]


def test_building_an_environment_is_no_step(tmp_path: Path) -> None:
    flags = {"episodes": 3, "num_envs": 2, "step_timeout": 0.2, "is_probed": False}
    for vectorization in ("sync", "async"):
        assert play(tmp_path, DRAWS, "durable_toys:SlowToBuild", vectorization=vectorization, **flags).code == 0


def test_a_worker_that_cannot_be_interrupted_is_killed(tmp_path: Path) -> None:
    flags = {"episodes": 4, "num_envs": 2, "vectorization": "async", "step_timeout": 0.2}
    played = play(tmp_path, DRAWS, "durable_toys:Deaf", **flags)
    assert played.code == 4
    assert [row["index"] for row in played.rows if row["error"]] == [1]
    assert "the worker process gave no answer" in played.rows[1]["error"]["message"]


@pytest.mark.parametrize("policy", ["SleepsAtSeedTwo", "SleepsInBatches"])
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_call_that_hangs_takes_no_neighbour_along(tmp_path: Path, policy: str, lanes: int) -> None:
    flags = {"episodes": 4, "num_envs": lanes, "call_timeout": 0.2, "is_probed": False}
    played = play(tmp_path, f"durable_toys:{policy}", "durable_toys:Diary", **flags)
    assert played.code == 4
    errors = {row["index"]: row["error"] for row in played.rows if row["error"]}
    assert list(errors) == [2]
    assert (errors[2]["phase"], errors[2]["step"]) == ("policy", 3)
    assert errors[2]["message"].startswith("TimeoutError: the call took longer than 0.2 s")


def test_a_run_stops_when_too_many_episodes_have_errored(tmp_path: Path, capsys: Any) -> None:
    played = play(tmp_path, "idle", "toys:Fragile-v0", episodes=40, seed=3, max_errors=0)
    assert played.code == 4
    assert (played.record["status"], played.summary["errors"]) == ("stopped", 1)
    assert played.summary["episodes"] < 40
    said = capsys.readouterr().out
    assert "stopped by --max-errors: 1 of 1 episodes errored" in said
    assert "--resume" in said


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_errors_of_episodes_that_do_not_count_stop_nothing(tmp_path: Path, lanes: int) -> None:
    """The rule ends the run before the plan comes to the one that errors."""
    flags = {"episodes": 60, "success": "return >= -1", "until": "width<0.5", "max_errors": 0}
    played = play(tmp_path, DRAWS, "durable_toys:Refuses", num_envs=lanes, **flags)
    assert (played.code, played.record["status"]) == (0, "finished")
    assert played.record["stopped_at"] == played.summary["episodes"] < 12


@pytest.mark.parametrize("name", ["step_timeout", "call_timeout"])
def test_a_limit_of_nothing_is_refused(tmp_path: Path, name: str, capsys: Any) -> None:
    played = play(tmp_path, "zero", "toys:Coins-v0", episodes=1, **{name: 0.0})
    assert (played.code, played.folder) == (2, None)
    assert name in capsys.readouterr().err
