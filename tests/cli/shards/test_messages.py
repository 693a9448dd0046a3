"""What crosses the border of a process arrives as it was said."""

from __future__ import annotations

import math
import pickle
from typing import Any

import msgspec
import pytest

from rlmesh_adapters.advisories import Advisory
from rlmesh_cli.episodes import EpisodeError, EpisodeResult, Seconds
from rlmesh_cli.shards.messages import Report
from rlmesh_cli.tallies import Tally

ROW = EpisodeResult(
    index=3,
    seed=8,
    episode_id="ep-000004",
    lane=9,
    length=12,
    return_=1.5,
    end="terminated",
    terminated=True,
    truncated=False,
    success=True,
    success_final=True,
    success_any=True,
    success_at_reset=None,
    success_source="is_success",
    start_hash="ab" * 8,
    trace_hash="cd" * 8,
    policy_calls=12,
    clipped_actions=0,
    metrics={"distance": 0.1, "unreported": None},
    error=None,
    seconds=Seconds(env=0.1, policy=0.2, adapter=0.0, total=0.3),
    success_held=2,
    planned_actions=12,
    dropped_actions=1,
    attempts=2,
)
ERROR = EpisodeError(phase="step", step=4, message="ValueError: außen", place="policy.py:3 in predict")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"error": ERROR, "end": "error", "success": None},
        {"seed": None, "start_hash": None},
        {"return_": -math.inf, "metrics": {"distance": math.inf}},
        {"seed": 2**64 - 1},
        {"seed": 2**80},
    ],
)
def test_a_row_arrives_as_it_was(fields: dict[str, Any]) -> None:
    report = Report((ROW, msgspec.structs.replace(ROW, **fields)), Tally(steps=5, step_seconds=0.25), {})
    arrived = pickle.loads(pickle.dumps(report))
    assert arrived == report
    assert type(arrived.rows[1]) is EpisodeResult
    assert repr(arrived) == repr(report)  # 1 is not 1.0


def test_advisories_arrive_with_texts_that_are_none() -> None:
    # A file name that is no UTF-8 reaches Python like this.
    advisory = Advisory(code="x", severity="caution", message="in caf\udce9.py", count=3)
    report = Report((ROW,), Tally(), {"x": advisory})
    assert pickle.loads(pickle.dumps(report)) == report
