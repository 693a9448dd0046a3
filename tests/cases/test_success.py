"""What counts as a success: what the environment reported, by a rule that is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from running import play

from rlmesh_envs.infos import read_flag, split_infos

#: Lane 0 has just finished with success, lane 1 with failure, lane 2 still runs: as three versions tell it.
LAYOUTS = {
    "0.29, a list of dicts": {
        "final_info": np.array([{"is_success": True, "lap": 8}, {"is_success": False, "lap": 3}, None], object),
        "_final_info": np.array([True, True, False]),
        "final_observation": np.array([np.ones(1), np.zeros(1), None], object),
    },
    "1.x, the same step": {
        "final_info": {
            "is_success": np.array([True, False, False]),
            "_is_success": np.array([True, True, False]),
        },
        "_final_info": np.array([True, True, False]),
        "final_obs": np.array([np.ones(1), np.zeros(1), None], object),
        "_final_obs": np.array([True, True, False]),
    },
    "1.x, the next step": {
        "is_success": np.array([True, False, False]),
        "_is_success": np.array([True, True, False]),
    },
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_last_info_of_a_lane_is_found_wherever_a_version_puts_it(layout: str) -> None:
    """K05."""
    lanes = split_infos(LAYOUTS[layout], 3)
    assert [read_flag(info.get("final_info", info), "is_success") for info in lanes] == [True, False, None]


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async"}, {"autoreset": "disabled"}])
@pytest.mark.parametrize("lanes", [1, 6])
def test_an_episode_that_reported_nothing_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lanes: int, flags: dict[str, Any]
) -> None:
    """K06. Filled with zeros, the rate would be a third."""
    played = play(tmp_path, "idle", "toys:Shy-v0", episodes=6, num_envs=lanes, quiet=False, **flags)
    assert played.column("success") == [True, False, None] * 2
    assert played.column("success_source") == ["is_success", "is_success", None] * 2
    success = played.summary["success"]
    assert (success["successes"], success["failures"], success["unknown"]) == (2, 2, 2)
    assert played.summary["success_rate"] == 0.5
    shown = capsys.readouterr().out
    assert "2 of 4 (50.0 %)" in shown
    assert "unknown: 2" in shown


@pytest.mark.parametrize(
    ("rule", "success", "words"),
    [
        (None, False, "is_success or success, last value"),
        ("is_success", False, "is_success, last value"),
        ("is_success:any", True, "is_success, any step"),
        ("return >= 0", True, "return >= 0"),
    ],
)
def test_the_rule_decides_between_any_step_and_the_last_one_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rule: str | None, success: bool, words: str
) -> None:
    """K07. The goal holds at step 4 of 8 only."""
    played = play(tmp_path, "idle", "toys:Flash-v0", episodes=1, success=rule, quiet=False)
    (row,) = played.rows
    assert (row["length"], row["end"]) == (8, "truncated")
    assert (row["success_any"], row["success_final"], row["success"]) == (True, False, success)
    assert played.record["success_rule"] == played.summary["success"]["rule"] == words
    assert words in capsys.readouterr().out


def test_a_fall_is_no_success_and_no_failure_but_not_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """K08."""
    played = play(tmp_path, "idle", "toys:Tumble-v0", episodes=3, num_envs=2, quiet=False)
    for row in played.rows:
        assert (row["length"], row["terminated"], row["end"]) == (5, True, "terminated")
        assert row["success"] is row["success_any"] is row["success_final"] is row["success_source"] is None
    assert played.summary["success_rate"] is None
    assert played.summary["success"]["unknown"] == 3
    shown = capsys.readouterr().out
    assert "n/a" in shown
    assert " success  " in shown
    assert "success n/a" not in shown


@pytest.mark.parametrize("flags", [{}, {"num_envs": 3}, {"vectorization": "async"}, {"autoreset": "same_step"}])
def test_a_goal_that_holds_at_the_reset_is_counted_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: dict[str, Any]
) -> None:
    """K09."""
    played = play(tmp_path, "idle", "toys:Solved-v0", episodes=4, quiet=False, **flags)
    assert played.column("success") == played.column("success_at_reset") == [True] * 4
    assert played.summary["success"]["at_reset"] == 4
    advisory = played.advisory("success-at-reset")
    assert advisory is not None
    assert advisory["severity"] == "caution"
    assert advisory["count"] == 4
    assert "at reset 4" in capsys.readouterr().out


def test_a_caution_about_the_number_misses_a_strict_bar(tmp_path: Path) -> None:
    """K09."""
    assert play(tmp_path, "idle", "toys:Solved-v0", episodes=1, strict=True).code == 1
    assert play(tmp_path, "idle", "toys:Coins-v0", episodes=1, max_episode_steps=9, strict=True).code == 0


def test_a_gate_on_a_rate_that_nobody_reported_is_missed(tmp_path: Path) -> None:
    """K08."""
    played = play(tmp_path, "idle", "toys:Tumble-v0", episodes=1, gates=("success_rate >= 0",))
    assert played.code == 1
    (verdict,) = played.summary["gates"]
    assert (verdict["value"], verdict["passed"]) == (None, False)
