"""What policies, environments and wrappers use again reaches no other lane."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from reuse_toys import TAGS
from running import Played, play, unarranged

RAMP = "reuse_toys:Ramp"
ARRANGED = [{"num_envs": 1}, {"num_envs": 4}, {"num_envs": 4, "instances": "lane"}, {"num_envs": 3, "workers": 2}]


def rows_of(tmp_path: Path, policy: str, flags: dict[str, Any]) -> list[dict[str, Any]]:
    given = {"episodes": 6, "is_probed": False, **flags}
    return unarranged(play(tmp_path, f"reuse_toys:{policy}", given.pop("env", RAMP), **given).rows)


def returns_of(played: Played) -> list[float]:
    return [row["return"] for row in played.rows]


@pytest.mark.parametrize("flags", ARRANGED)
@pytest.mark.parametrize("policy", ["Reuses", "ReusesInList", "ReusesBatch"])
def test_an_answer_in_an_array_that_is_used_again_is_that_of_its_row(
    tmp_path: Path, policy: str, flags: dict[str, Any]
) -> None:
    played = play(tmp_path, f"reuse_toys:{policy}", RAMP, episodes=6, is_probed=False, **flags)
    # By hand: the action of step t is seed * (t + 2).
    assert returns_of(played) == [float(seed * sum(range(2, 10))) for seed in range(6)]


@pytest.mark.parametrize("flags", ARRANGED)
def test_so_it_is_with_observations_in_a_dict(tmp_path: Path, flags: dict[str, Any]) -> None:
    played = play(
        tmp_path, "reuse_toys:ReusesDict", RAMP, episodes=6, is_probed=False, env_args=("kind=dict",), **flags
    )
    assert returns_of(played) == [float(seed * sum(range(2, 10))) for seed in range(6)]


@pytest.mark.parametrize("flags", ARRANGED)
def test_so_it_is_with_plans(tmp_path: Path, flags: dict[str, Any]) -> None:
    flags = {"horizon": 3, "episodes": 6, "is_probed": False, **flags}
    played = play(tmp_path, "reuse_toys:ReusesChunk", RAMP, **flags)
    by_hand = [sum(seed * (t % 3 + 1) + t - t % 3 for t in range(8)) for seed in range(6)]
    assert returns_of(played) == [float(total) for total in by_hand]


@pytest.mark.parametrize("kind", ["box", "dict"])
@pytest.mark.parametrize("shared", ["steps", "everywhere", "info", "nested", "end", "arrays", "reward"])
@pytest.mark.parametrize("flags", [*ARRANGED, {"num_envs": 4, "vectorization": "async", "env_workers": 2}])
def test_lanes_that_use_one_array_or_info_have_their_own(
    tmp_path: Path, kind: str, shared: str, flags: dict[str, Any]
) -> None:
    policy = "Reuses" if kind == "box" else "ReusesDict"
    within = "stats." if shared == "nested" else ""
    given = {"episodes": 9, "is_probed": False, "metrics": (f"{within}place",), **flags}
    if within:
        given["success"] = f"{within}is_success"
    played = play(
        tmp_path, f"reuse_toys:{policy}", RAMP, env_args=(f"is_shared={shared}", f"kind={kind}"), **given
    )
    assert returns_of(played) == [float(seed * sum(range(2, 10))) for seed in range(9)]
    assert played.column("success") == [seed % 3 == 0 for seed in range(9)]
    assert played.column("success_at_reset") == [seed % 3 == 0 for seed in range(9)]
    assert played.column("metrics") == [{f"{within}place": seed * 10.0 + 8} for seed in range(9)]


@pytest.mark.parametrize("kind", ["box", "dict"])
def test_a_batch_that_was_written_into_before_it_raised_is_asked_again_as_it_was(
    tmp_path: Path, kind: str
) -> None:
    alone, together = (
        rows_of(tmp_path, "Scales", {"num_envs": lanes, "env_args": (f"kind={kind}",)}) for lanes in (1, 3)
    )
    assert together == alone
    assert [row["error"] is not None for row in alone] == [True, False, False, False, False, False]
    assert [row["return"] for row in alone[1:]] == [10.0 * sum(range(8))] * 5


def test_what_a_call_drew_before_it_raised_is_drawn_again(tmp_path: Path) -> None:
    alone, together = (rows_of(tmp_path, "DrawsAndRaises", {"num_envs": lanes}) for lanes in (1, 3))
    assert together == alone
    undisturbed = rows_of(tmp_path, "Draws", {"num_envs": 1})
    assert [row["return"] for row in alone[1:]] == [row["return"] for row in undisturbed[1:]]


@pytest.mark.parametrize("policy", ["Draws", "Counts"])
@pytest.mark.parametrize("lanes", [1, 3, 4])
def test_rows_that_only_pad_a_batch_touch_no_episode(tmp_path: Path, policy: str, lanes: int) -> None:
    alone = rows_of(tmp_path, policy, {"num_envs": 1})
    assert rows_of(tmp_path, policy, {"num_envs": lanes, "batch_rows": 4}) == alone


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async"}])
def test_arguments_of_wrappers_are_each_lanes_own(tmp_path: Path, flags: dict[str, Any]) -> None:
    file = tmp_path / "route.json"
    wrapper = {"name": "reuse_toys:Tired", "kwargs": {"weights": {}}}
    env = {"id": RAMP, "wrappers": [wrapper]}
    file.write_text(json.dumps({"version": 1, "env": env, "policy": {"source": "reuse_toys:Reuses"}}))
    for lanes in (1, 4):
        played = play(tmp_path, None, route=file, episodes=6, num_envs=lanes, is_probed=False, **flags)
        assert played.column("length") == [5] * 6


@pytest.mark.parametrize(("policy", "horizon"), [("Stacks", 1), ("StacksChunk", 3)])
def test_a_window_sees_each_step_once_also_where_a_neighbour_failed(
    tmp_path: Path, policy: str, horizon: int
) -> None:
    file = tmp_path / "route.json"
    route = {"version": 1, "env": {"id": RAMP}, "policy": {"source": f"reuse_toys:{policy}"}, "env_tags": TAGS}
    file.write_text(json.dumps(route))
    flags = {"route": file, "episodes": 5, "horizon": horizon, "is_probed": False, "schedule": "eager"}
    alone, together = (unarranged(play(tmp_path, None, num_envs=lanes, **flags).rows) for lanes in (1, 3))
    assert together == alone
    if horizon == 1:
        seen = [(max(0, t - 2), max(0, t - 1), t) for t in range(8)]
        total = float(sum(100 * first + 10 * second + third for first, second, third in seen))
        assert [row["return"] for row in alone[1:]] == [total] * 4
