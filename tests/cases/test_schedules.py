"""When episodes start changes what a run costs, and no row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import play_alone
from running import Played, play, unarranged
from toy_policies import ragged, viewing

from rlmesh_cli.caps import Limits
from rlmesh_cli.episodes import plan_episodes
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.stage import staged

LENGTHS = "chunk_toys:Lengths-v0"


def lengths(tmp: Path, source: str, steps: list[int], **flags: Any) -> Played:
    flags = {"episodes": len(steps), "num_envs": 2, "horizon": 4, "is_probed": False, **flags}
    return play(tmp, source, LENGTHS, env_args=(f"lengths={steps}",), **flags)


def counts(played: Played) -> list[int]:
    return [played.summary["time"][name] for name in ("vector_steps", "calls", "call_rows")]


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # every example makes a folder of its own
)
@given(
    steps=st.lists(st.integers(1, 30), min_size=1, max_size=20),
    lanes=st.integers(1, 6),
    horizon=st.integers(1, 8),
    schedule=st.sampled_from(["aligned", "eager"]),
)
def test_no_lane_waits_longer_than_the_rest_of_a_chunk(
    tmp_path: Path, steps: list[int], lanes: int, horizon: int, schedule: str
) -> None:
    played = lengths(tmp_path, "viewing:Ragged", steps, num_envs=lanes, horizon=horizon, schedule=schedule)
    expected = play_alone(LENGTHS, viewing.Ragged, range(len(steps)), horizon=horizon, lengths=steps)
    assert [{name: row[name] for name in expected[0]} for row in played.rows] == expected
    time = played.summary["time"]
    # Until the last episode starts, a lane runs or waits for less than a chunk; after that one episode is left.
    most = sum(steps) + len(steps) * (horizon - 1) + (min(lanes, len(steps)) - 1) * max(steps)
    assert time["vector_steps"] * min(lanes, len(steps)) <= most


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_calls_of_a_small_case_are_those_counted_by_hand(tmp_path: Path, vectorization: str) -> None:
    """Episode 0 ends inside its second chunk, so episode 2 starts with the third chunk of episode 1."""
    found = {}
    for schedule in ("aligned", "eager"):
        played = lengths(tmp_path, "viewing:Clock", [5, 12, 4], schedule=schedule, vectorization=vectorization)
        found[schedule] = counts(played)
    assert found == {"aligned": [12, 3, 6], "eager": [12, 4, 6]}


COUNTING = """
from pathlib import Path

import numpy as np


class Policy:
    made = 0

    def __init__(self, file):
        self.file = file

    def {corner}(self, obs):
        Policy.made += 1
        return {answer}

    def close(self):
        Path(self.file).write_text(str(Policy.made))
"""
ANSWERS = {
    "predict": "0",
    "predict_batch": "np.zeros(len(obs), int)",
    "predict_chunk": "np.zeros(4, int)",
    "predict_chunk_batch": "np.zeros((len(obs), 4), int)",
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("instances", ["shared", "lane"])
@pytest.mark.parametrize("corner", ANSWERS)
def test_calls_are_those_that_the_policy_counts(
    tmp_path: Path, corner: str, instances: str, workers: int, capsys: Any
) -> None:
    """Two lanes of episodes of eight steps: a call of a single row, or of an instance of its own, is one each."""
    file, made = tmp_path / "counting.py", tmp_path / "made"
    file.write_text(COUNTING.format(corner=corner, answer=ANSWERS[corner]))
    horizon = 4 if "chunk" in corner else 1
    flags = {"instances": instances, "workers": workers, "horizon": horizon, "quiet": False}
    played = lengths(tmp_path, str(file), [8] * 4, policy_args=(f"file={made}",), **flags)
    time = played.summary["time"]
    rows = 4 * 8 // horizon
    is_together = corner.endswith("_batch") and instances == "shared"
    assert (time["call_rows"], played.summary["policy_calls"]) == (rows, rows)
    if workers == 1:
        assert time["calls"] == int(made.read_text()) == (rows // 2 if is_together else rows)
        assert f"asked {rows} times for an episode, in {time['calls']} calls" in capsys.readouterr().out
    else:
        assert (time["calls"] < rows) == is_together


def test_ledger_says_calls_by_step_and_rows_by_call(tmp_path: Path) -> None:
    time = lengths(tmp_path, "viewing:Clock", [5, 12, 4]).summary["time"]
    assert (time["calls_per_step"], time["rows_per_call"], time["lane_use"]) == (3 / 12, 6 / 3, 21 / 24)


def test_nobody_waits_when_all_lanes_have_ended(tmp_path: Path) -> None:
    """Both lanes end after three of four planned actions; the next two episodes start at once."""
    time = lengths(tmp_path, "viewing:Clock", [3, 3, 5, 5]).summary["time"]
    assert [time[name] for name in ("vector_steps", "calls", "lane_use")] == [8, 3, 1.0]


def test_a_lane_that_got_a_short_chunk_joins_the_others_with_its_next_episode(tmp_path: Path) -> None:
    """Seed 0 asks apart at step 13 and ends at 20; seed 3 waits for the other two lanes, which ask at 24."""
    played = lengths(tmp_path, "viewing:Parting", [20, 160, 160, 80], num_envs=3, horizon=8)
    assert counts(played) == [160, 20 + 1, 2 * 20 + 3 + 10]


def test_episode_whose_policy_fails_is_followed_in_step_with_the_others(tmp_path: Path) -> None:
    """The call at step 3 fails for seed 1 alone; seed 14 starts in that step, and asks with the other at 6."""
    flags = {"num_envs": 2, "horizon": 3, "is_probed": False}
    played = play(tmp_path, "ragged:FaultyChunks", "Ragged-v0", seeds="1,2,14", **flags)
    assert played.column("end") == ["error", "terminated", "terminated"]
    assert counts(played) == [11, 8, 8]


@pytest.mark.parametrize("limits", [Limits(steps=5), Limits(steps=8)])
def test_caps_of_ours_end_episodes_at_the_same_step(limits: Limits) -> None:
    def rows(schedule: str, lanes: int) -> list[Any]:
        route = Route(
            env=EnvRoute(id="Ragged-v0", kwargs={"kind": "box"}),
            policy=PolicyRoute(source=f"{Path(ragged.__file__)}:Chunks", params={"kind": "box"}),
            horizon=4,
            num_envs=lanes,
            episodes=30,
            schedule=schedule,
        )
        with staged(route, source={}) as stage:
            played = stage.rollout(plan_episodes(route.episode_seeds), limits=limits)
            found = sorted((row for rows in played.run() for row in rows), key=lambda row: row.index)
        return [
            (row.index, row.end, row.length, row.return_, row.trace_hash, row.policy_calls, row.dropped_actions)
            for row in found
        ]

    assert rows("aligned", 4) == rows("eager", 4) == rows("aligned", 1)
    assert "step_cap" in {end for _, end, *_ in rows("aligned", 4)}


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_lanes_that_step_together_start_at_once(tmp_path: Path, mode: str) -> None:
    flags = {"num_envs": 3, "horizon": 4, "episodes": 12, "autoreset": mode, "is_probed": False}
    asked = play(
        tmp_path, "viewing:Clock", LENGTHS, env_args=("lengths=[5, 9, 6, 14]",), schedule="aligned", **flags
    )
    unasked = play(tmp_path, "viewing:Clock", LENGTHS, env_args=("lengths=[5, 9, 6, 14]",), **flags)
    assert len(asked.rows) == 12
    assert counts(asked) == counts(unasked)
    assert unasked.advisory("schedule-eager") is None
    advisory = asked.advisory("schedule-eager")
    assert advisory is not None
    assert advisory["severity"] == "info"


def test_alignment_of_single_actions_is_harmless(tmp_path: Path) -> None:
    found = [
        lengths(tmp_path, "viewing:Clock", [5, 12, 4, 7], horizon=1, schedule=schedule).summary["time"]
        for schedule in ("aligned", "eager")
    ]
    assert found[0]["vector_steps"] == found[1]["vector_steps"]
    assert found[0]["calls"] == found[1]["calls"] == found[0]["vector_steps"]


@pytest.mark.parametrize(("episodes", "least_use"), [(200, 0.93), (800, 0.95)])
def test_chunks_of_eight_cost_one_call_in_eight_steps(tmp_path: Path, episodes: int, least_use: float) -> None:
    """Episodes of 40 to 120 steps on 8 lanes; what the last ones leave idle counts less the more there are."""
    flags = {"episodes": episodes, "num_envs": 8, "horizon": 8, "is_probed": False}
    aligned = play(tmp_path, "viewing:Clock", LENGTHS, **flags)
    eager = play(tmp_path, "viewing:Clock", LENGTHS, schedule="eager", **flags)
    assert unarranged(aligned.rows) == unarranged(eager.rows)
    time = aligned.summary["time"]
    assert time["calls_per_step"] <= 0.14
    assert time["lane_use"] >= least_use
    assert eager.summary["time"]["calls_per_step"] > 0.5


def test_an_interrupted_run_goes_on_with_the_other_schedule(tmp_path: Path) -> None:
    flags = {"episodes": 40, "num_envs": 3, "horizon": 3, "is_probed": False}
    whole = play(tmp_path, "ragged:FaultyChunks", "Ragged-v0", **flags)
    broken_off = play(tmp_path, "ragged:FaultyChunks", "Ragged-v0", max_errors=2, **flags)
    assert len(broken_off.rows) < 40
    flags |= {"schedule": "eager", "max_errors": 40}
    resumed = play(tmp_path, "ragged:FaultyChunks", "Ragged-v0", resume=str(broken_off.folder), **flags)
    assert resumed.folder is None
    lines = (broken_off.folder / "episodes.jsonl").read_text().splitlines()  # type: ignore[union-attr]
    assert len(lines) == len(whole.rows) == 40
