"""Observations that do not stack, and actions that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toys
from running import play
from toy_policies import seeing

ARRANGEMENTS = [{}, {"vectorization": "async"}, {"autoreset": "next_step"}, {"autoreset": "disabled"}]


def named(flags: dict[str, Any]) -> str:
    return "-".join(flags.values()) or "sync"


@pytest.mark.parametrize("flags", ARRANGEMENTS, ids=named)
def test_each_lane_s_policy_gets_its_own_graph(tmp_path: Path, flags: dict[str, Any]) -> None:
    """K40. Graphs of 1, 2 and 3 nodes have no common array; each row is answered with its count, twice."""
    flags = {"num_envs": 3, "episodes": 3, "seed": 0, **flags}
    played = play(tmp_path, "seeing:CountsNodes", "toys:Graphs-v0", **flags)
    assert played.code == 0
    if played.record["seeded"]:
        assert played.column("return") == [2.0, 4.0, 6.0]
    assert set(played.column("return")) <= {2.0, 4.0, 6.0}


def test_graphs_come_as_one_object_a_lane(tmp_path: Path) -> None:
    """K40. A corner that takes the whole batch gets a list of them."""
    seeing.SEEN.clear()
    play(
        tmp_path, "toy_policies.seeing:Batched", "toys:Graphs-v0", num_envs=3, episodes=3, seed=0, is_probed=False
    )
    first = seeing.SEEN[0]
    assert [len(graph.nodes) for graph in first] == [1, 2, 3]
    assert {graph.nodes.dtype for graph in first} == {np.dtype(np.float32)}


@pytest.mark.parametrize("flags", ARRANGEMENTS, ids=named)
def test_half_precision_stays_half_precision(tmp_path: Path, flags: dict[str, Any]) -> None:
    """K40."""
    played = play(tmp_path, "seeing:NamesType", "toys:Halves-v0", num_envs=2, episodes=4, **flags)
    assert played.column("return") == [32.0] * 4


@pytest.mark.parametrize("vectorization", ["sync", "async"])
@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("OneForAll", "expected int64(4,), got int64(1,)"),
        ("Column", "expected int64(4,), got int64(4, 1)"),
        ("Fractions", "takes whole numbers, got float64"),
        ("WholeFloats", "takes whole numbers, got float64"),
        ("TooLarge", "action 99 is outside Discrete(32)"),
        ("Nothing", "got NoneType None"),
        ("Words", "takes whole numbers, got"),
    ],
)
def test_an_answer_that_fits_no_lane_is_one_error_before_the_first_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, words: str, vectorization: str
) -> None:
    """K41. Gymnasium takes columns, floats and 99 without a word, and hangs on some."""
    played = play(tmp_path, f"misfits:{policy}", "toys:Echo-v0", num_envs=4, vectorization=vectorization)
    assert played.code == 2
    assert not played.out.exists()
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("num_envs", [1, 3])
def test_an_action_outside_its_box_is_clipped_and_counted(tmp_path: Path, num_envs: int) -> None:
    """Twice the bound of Pendulum's torque, asked for at every step."""
    path = tmp_path / "strong.py"
    path.write_text("def predict(obs):\n    return [4.0]\n")
    flags = {"episodes": 3, "num_envs": num_envs, "max_episode_steps": 5}
    strong = play(tmp_path, str(path), "Pendulum-v1", **flags)
    assert strong.column("clipped_actions") == [5] * 3
    assert strong.summary["clipped_actions"] == 15
    path.write_text("def predict(obs):\n    return [2.0]\n")
    limited = play(tmp_path, str(path.rename(tmp_path / "limited.py")), "Pendulum-v1", **flags)
    assert limited.column("clipped_actions") == [0] * 3
    assert limited.column("return") == strong.column("return")
    assert limited.column("trace_hash") == strong.column("trace_hash")


def test_a_toy_s_log_sees_the_very_actions_that_were_planned(tmp_path: Path) -> None:
    toys.LOG.clear()
    play(tmp_path, "stamp", "toys:Stamped-v0", seeds="1", horizon=3)
    seen = list(toys.LOG)
    assert seen == [(1, t, (1, t - t % 3, t % 3)) for t in range(5)]
