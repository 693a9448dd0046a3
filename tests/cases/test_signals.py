"""Ctrl-C, SIGTERM, and both of them twice: what is finished is kept."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
from running import finish, play, policy, read_run, start

from rlmesh_cli.run_reader import read_run as stored_run
from rlmesh_cli.stored_evaluation import evaluation_of


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("sent", [1, 2])
@pytest.mark.parametrize("lanes", [1, 2])
def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path, lanes: int, sent: int, name: str) -> None:
    """K45. The signal comes in the first step of seed 6; two of them do not wait for that step."""
    before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    arguments = ("at=6", f"sends=[{', '.join([name] * sent)}]")
    played = play(tmp_path, "idle", "toys:Alarm-v0", episodes=50, num_envs=lanes, env_args=arguments)
    assert played.code == 130
    assert played.column("seed") == [0, 1, 2, 3, 4, 5]
    assert played.column("length") == [2] * 6
    assert (played.record["status"], played.summary["status"]) == ("interrupted", "interrupted")
    assert (played.summary["episodes"], played.summary["planned"]) == (6, 50)
    assert played.summary["in_flight"] == lanes
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_bars_of_an_interrupted_run_are_open_and_decided_when_it_is_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gates = ("mean_return >= 0", "mean_return >= 1000")
    played = play(
        tmp_path,
        "idle",
        "toys:Alarm-v0",
        episodes=9,
        env_args=("at=6", "sends=[SIGINT]"),
        gates=gates,
        quiet=False,
    )
    assert (played.code, played.record["status"]) == (130, "interrupted")
    assert [(gate["passed"], gate["is_open"]) for gate in played.summary["gates"]] == [(False, True)] * 2
    assert capsys.readouterr().out.count("OPEN") == 2
    assert played.folder is not None
    evaluation = evaluation_of(stored_run(played.folder))
    assert all(verdict.is_open for verdict in evaluation.verdicts)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_leaves_no_worker(tmp_path: Path, name: str) -> None:
    """K45."""
    arguments = ("at=6", f"sends=[{name}]", "to=parent")
    flags = {"episodes": 50, "num_envs": 2, "vectorization": "async"}
    played = play(tmp_path, "idle", "toys:Alarm-v0", env_args=arguments, **flags)
    assert played.code == 130
    assert played.column("seed") == [0, 1, 2, 3, 4, 5]
    assert multiprocessing.active_children() == []


def test_a_run_that_is_over_when_the_signal_comes_is_finished(tmp_path: Path) -> None:
    """Seed 0 is the only episode; its last step is yet to come."""
    played = play(tmp_path, "idle", "toys:Coins-v0", episodes=1)
    assert (played.code, played.record["status"]) == (0, "finished")
    last = play(tmp_path, "idle", "toys:Alarm-v0", episodes=1, env_args=("at=0",), max_episode_steps=1)
    assert last.column("end") == ["truncated"]
    assert (last.code, last.record["status"]) == (0, "finished")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_ctrl_c_that_reaches_the_whole_group_is_one_line(tmp_path: Path, name: str) -> None:
    """K45. A terminal signals workers too; none of them may print a stack."""
    process = start(
        policy("idle"),
        "--env",
        "toys:Alarm-v0",
        "-n",
        "50",
        "--num-envs",
        "2",
        "--vectorization",
        "async",
        "--env-arg",
        "at=6",
        "--env-arg",
        f"sends=[{name}]",
        "--env-arg",
        "to=group",
        "--out",
        "results",
        cwd=tmp_path,
    )
    code, out, err = finish(process)
    assert code == 130
    assert read_run(tmp_path / "results", code).column("seed") == [0, 1, 2, 3, 4, 5]
    assert b"interrupted: 6 of 50 episodes are saved" in out
    assert [line for line in err.splitlines() if line] == [
        b"rlmesh: stopping after this step; press Ctrl-C again to stop at once"
    ]
    with pytest.raises(ProcessLookupError, match="No such process"):
        os.killpg(process.pid, 0)


def test_a_signal_before_the_first_episode_is_over_leaves_a_readable_run(tmp_path: Path) -> None:
    """K45."""
    played = play(tmp_path, "idle", "toys:Alarm-v0", episodes=5, env_args=("at=0",))
    assert played.code == 130
    assert played.rows == []
    assert played.summary["mean_return"] is played.summary["success_rate"] is None
    assert played.record["status"] == "interrupted"


@pytest.mark.parametrize("what", [("--controls", "zero,hold"), ("--verify-lanes", "40")])
@pytest.mark.parametrize("sent", [1, 2])
def test_ctrl_c_after_the_last_episode_leaves_a_complete_run(
    tmp_path: Path, what: tuple[str, str], sent: int
) -> None:
    """What follows the episodes is broken off; the run itself is finished, with its summary."""
    out = tmp_path / "runs"
    nap = ("--env-arg", "nap=0.004", "--num-envs", "2", "--no-probe")
    process = start(
        *("durable_toys:Draws", "--env", "durable_toys:Diary", "-n", "40", *nap, *what),
        *("--out", str(out), "--json"),
        cwd=tmp_path,
    )
    _wait_for_summary(out)
    for _ in range(sent):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.02)
    code, _, err = finish(process, seconds=30)
    played = read_run(out, code)
    assert b"Traceback" not in err
    assert (played.record["status"], played.summary["status"], len(played.rows)) == ("finished", "finished", 40)
    assert code == 130
    if sent == 1:
        advisory = played.advisory("followup-broken-off")
        assert advisory is not None
        assert "the run itself is complete" in advisory["message"]


def _wait_for_summary(out: Path) -> None:
    until = time.monotonic() + 30
    while not list(out.glob("*/summary.json")):
        assert time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.15)
