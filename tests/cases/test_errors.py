"""Episodes that cannot be finished: counted, named, and nobody else's business."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from running import Played, play


def check_fragile(played: Played) -> None:
    """Seed 3 breaks in its second step, seed 5 in its first, both after success was reported."""
    assert played.column("seed") == list(range(8))
    assert {row["seed"]: row["length"] for row in played.rows if row["end"] == "error"} == {3: 1, 5: 0}
    for row in played.rows:
        if row["seed"] in (3, 5):
            error = row["error"]
            assert (error["phase"], error["step"]) == ("step", row["length"])
            assert f"RuntimeError: gear of seed {row['seed']} is broken" in error["message"]
            assert row["success"] is row["success_final"] is row["success_any"] is None
            assert (row["terminated"], row["truncated"]) == (False, False)
        else:
            assert (row["length"], row["return"], row["success"], row["error"]) == (3, 3.0, True, None)


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("flags", [{}, {"vectorization": "async"}], ids=["sync", "async"])
def test_a_crash_costs_its_own_episode_only(tmp_path: Path, flags: dict[str, Any], lanes: int) -> None:
    """K10."""
    check_fragile(play(tmp_path, "idle", "toys:Fragile-v0", episodes=8, num_envs=lanes, **flags))


# Gymnasium's own workers warn of an error before they pass it on.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_a_crash_of_gymnasiums_own_vector_environment_fails_its_company_and_loses_no_row(
    tmp_path: Path, vectorization: str
) -> None:
    """K10. Who raised cannot be told there; what ran beside it is an error, and the rest is played."""
    flags = {"autoreset": "disabled", "vectorization": vectorization}
    played = play(tmp_path, "idle", "toys:Fragile-v0", episodes=12, num_envs=4, **flags)
    assert played.code == 4
    assert played.column("index") == list(range(12))
    assert played.column("end") == ["error"] * 8 + ["terminated"] * 4
    for row in played.rows:
        assert (row["end"] == "error") == (row["error"] is not None)
        if row["error"] is None:
            assert (row["length"], row["success"]) == (3, True)
        else:
            assert "is broken" in row["error"]["message"]
            assert row["success"] is None


def test_errored_episodes_stay_in_the_denominator_and_both_rates_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """K10."""
    monkeypatch.setenv("COLUMNS", "120")
    played = play(tmp_path, "idle", "toys:Fragile-v0", episodes=8, num_envs=4, seed=0, quiet=False)
    assert played.code == 4
    success = played.summary["success"]
    assert (success["successes"], success["failures"], success["errored"]) == (6, 0, 2)
    assert (played.summary["success_rate"], success["rate_completed"]) == (0.75, 1.0)
    assert played.summary["returns"]["n"] == 6
    shown = capsys.readouterr().out
    for words in ("6 of 8 (75.0 %)", "6 of 6 completed (100.0 %)", "errored: 2", "gear of seed 3 is broken"):
        assert words in shown


@pytest.mark.parametrize(("gate", "code"), [("errors <= 2", 0), ("errors <= 1", 1), ("success_rate >= 0.8", 1)])
def test_a_gate_says_how_many_errors_are_allowed(tmp_path: Path, gate: str, code: int) -> None:
    """K10."""
    assert play(tmp_path, "idle", "toys:Fragile-v0", episodes=8, num_envs=2, gates=(gate,)).code == code


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_a_run_in_which_the_very_first_reset_fails_is_one_run(tmp_path: Path, vectorization: str) -> None:
    """Seed 12 of Ragged has no start."""
    played = play(tmp_path, "ragged:Linear", "Ragged-v0", seeds="12,0,3", vectorization=vectorization)
    assert played.code == 4
    assert played.column("end") == ["error", "truncated", "truncated"]
    assert played.rows[0]["error"]["phase"] == "reset"
    assert played.rows[0]["error"]["message"] == "OSError: no start for seed 12"
    assert (played.rows[0]["length"], played.rows[0]["start_hash"], played.rows[0]["error"]["step"]) == (
        0,
        None,
        None,
    )


def test_a_run_in_which_every_reset_fails_is_written_down(tmp_path: Path) -> None:
    played = play(tmp_path, "ragged:Linear", "Ragged-v0", seeds="12,25,38", num_envs=2)
    assert played.code == 4
    assert played.column("end") == ["error"] * 3
    assert (played.summary["mean_return"], played.summary["success_rate"]) == (None, None)
    assert played.record["status"] == "finished"


def test_the_policy_s_fault_costs_the_episode_it_happened_in(tmp_path: Path) -> None:
    """Every third seed of Faulty cannot be planned for at t = 4; its neighbours are asked again without it."""
    flags = {"episodes": 7, "num_envs": 3, "horizon": 4, "seed": 4}
    played = play(tmp_path, "stamp:Faulty", "toys:Stamped-v0", **flags)
    assert {row["seed"]: row["end"] for row in played.rows} == {
        4: "terminated",
        5: "terminated",
        6: "error",
        7: "terminated",
        8: "terminated",
        9: "error",
        10: "terminated",
    }
    for row in played.rows:
        if row["end"] == "error":
            assert (row["error"]["phase"], row["error"]["step"], row["length"]) == ("policy", 4, 4)
            assert row["error"]["message"].startswith("ValueError: cannot plan from here")
        else:
            assert row["return"] == row["length"] == 2 + 3 * (row["seed"] % 5)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_worker_that_dies_is_an_errored_episode_and_is_started_again(tmp_path: Path, method: str) -> None:
    """K10."""
    flags = {"episodes": 6, "vectorization": "async", "start_method": method}
    played = play(tmp_path, "idle", "toys:Dies-v0", **flags)
    assert played.code == 4
    assert [(row["seed"], row["end"]) for row in played.rows if row["end"] != "terminated"] == [(3, "error")]
    assert "the worker process died (exit code 9)" in played.rows[3]["error"]["message"]
    assert played.column("length") == [3, 3, 3, 1, 3, 3]
