"""Episodes: the plan, and the row that an episode becomes."""

from __future__ import annotations

import json

import msgspec
import pytest
from cli_toys import errored, row

from rlmesh_cli.episodes import Episode, plan_episodes, row_without_arrangement


def test_one_episode_a_seed_in_order():
    plan = plan_episodes((7, 7, 0))
    assert [(episode.index, episode.seed, episode.id) for episode in plan] == [
        (0, 7, "ep-000001"),
        (1, 7, "ep-000002"),
        (2, 0, "ep-000003"),
    ]
    assert plan_episodes(()) == ()


def test_ids_stay_unique_beyond_a_million():
    assert [Episode(index, 0).id for index in (99_999, 999_999, 1_000_000)] == [
        "ep-100000",
        "ep-1000000",
        "ep-1000001",
    ]


def test_plan_cannot_be_changed():
    with pytest.raises(AttributeError, match="immutable"):
        plan_episodes((1,))[0].seed = 2


def test_row_has_the_columns_of_the_run_folders_layout():
    written = json.loads(msgspec.json.encode(errored(0)))
    assert list(written) == [
        *("index", "seed", "episode_id", "lane", "length", "return", "end", "terminated", "truncated"),
        *("success", "success_final", "success_any", "success_at_reset", "success_source"),
        *("start_hash", "trace_hash", "policy_calls", "clipped_actions", "metrics", "error", "seconds"),
        *("success_held", "planned_actions", "dropped_actions", "attempts"),
    ]
    assert list(written["error"]) == ["phase", "step", "message", "place"]
    assert list(written["seconds"]) == ["env", "policy", "adapter", "total"]


def test_only_lane_and_seconds_depend_on_the_arrangement():
    written = json.loads(msgspec.json.encode(row(0)))
    kept = row_without_arrangement(written)
    assert written.keys() - kept.keys() == {"lane", "seconds"}
    assert kept["return"] == 0.5


def test_row_with_an_error_is_not_finished():
    assert errored(0).is_error
    assert not row(0).is_error
