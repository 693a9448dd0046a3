"""The result of an episode does not depend on how the run around it was arranged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import play_alone
from running import Played, play, unarranged
from toy_policies import ragged, stamp

KINDS = ("discrete", "box", "dict")
CHUNKED = ("Chunks", "FaultyChunks", "Uneven")
KNOWABLE = ("Linear", "Summing", "Faulty", "FaultyBatch", *CHUNKED)


def laws(count: int) -> settings:
    """Return settings for `count` examples that are the same at every run."""
    checks = [HealthCheck.function_scoped_fixture]  # every example makes a folder of its own
    return settings(max_examples=count, deadline=None, derandomize=True, suppress_health_check=checks)


@st.composite
def arrangements(draw: st.DrawFn) -> dict[str, Any]:
    """What a run is made of, and how it is arranged."""
    seeds = draw(st.lists(st.integers(0, 400), min_size=1, max_size=12, unique=True))
    return {
        "seeds": draw(st.permutations(seeds)),
        "num_envs": draw(st.integers(1, 6)),
        "horizon": draw(st.integers(1, 5)),
        "max_episode_steps": draw(st.none() | st.integers(1, 9)),
        "kind": draw(st.sampled_from(KINDS)),
        "schedule": draw(st.sampled_from(["aligned", "eager", None])),
    }


def run(tmp: Path, policy: str, arrangement: dict[str, Any], **others: Any) -> Played:
    flags = {**arrangement, **others}
    kind = flags.pop("kind")
    flags["seeds"] = ",".join(map(str, flags["seeds"]))
    return play(
        tmp,
        f"ragged:{policy}",
        "Ragged-v0",
        env_args=(f"kind={kind}",),
        policy_args=(f"kind={kind}",),
        metrics=("arm.load",),
        **flags,
    )


def alone(policy: str, arrangement: dict[str, Any]) -> list[dict[str, Any]]:
    kind = arrangement["kind"]
    return play_alone(
        "Ragged-v0",
        lambda: getattr(ragged, policy)(kind),
        arrangement["seeds"],
        horizon=arrangement["horizon"],
        max_steps=arrangement["max_episode_steps"],
        metrics=("arm.load",),
        kind=kind,
    )


def as_the_loop_sees(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows without hashes, and errors without the harness's own words."""
    seen = []
    for row in unarranged(rows):
        kept = {key: value for key, value in row.items() if key not in ("start_hash", "trace_hash")}
        if kept["error"] is not None:
            message = kept["error"]["message"].partition(" (in ")[0]
            kept["error"] = {"phase": kept["error"]["phase"], "step": kept["error"]["step"], "message": message}
        seen.append(kept)
    return seen


def by_seed(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return rows by seed, without their place in the plan."""
    places = ("index", "episode_id")
    return {
        row["seed"]: {key: value for key, value in row.items() if key not in places} for row in unarranged(rows)
    }


@pytest.mark.parametrize("policy", KNOWABLE)
@laws(25)
@given(arrangement=arrangements())
def test_every_row_is_that_of_a_plain_loop(tmp_path: Path, policy: str, arrangement: dict[str, Any]) -> None:
    played = run(tmp_path, policy, arrangement)
    assert as_the_loop_sees(played.rows) == alone(policy, arrangement)


@pytest.mark.parametrize("policy", KNOWABLE)
@laws(12)
@given(arrangement=arrangements())
def test_neither_lanes_nor_the_order_of_seeds_change_the_row_of_a_seed(
    tmp_path: Path, policy: str, arrangement: dict[str, Any]
) -> None:
    played = run(tmp_path, policy, arrangement)
    one_lane = run(tmp_path, policy, arrangement, seeds=sorted(arrangement["seeds"]), num_envs=1)
    assert by_seed(played.rows) == by_seed(one_lane.rows)
    assert len({row["start_hash"] for row in played.rows if row["error"] is None}) == len(
        [row for row in played.rows if row["error"] is None]
    )


@pytest.mark.parametrize("policy", CHUNKED)
@laws(15)
@given(arrangement=arrangements())
def test_neither_does_when_episodes_start(tmp_path: Path, policy: str, arrangement: dict[str, Any]) -> None:
    played = {
        schedule: unarranged(run(tmp_path, policy, arrangement, schedule=schedule).rows)
        for schedule in ("aligned", "eager")
    }
    assert played["aligned"] == played["eager"]


@laws(20)
@given(arrangement=arrangements())
def test_an_episode_draws_the_same_numbers_whatever_lanes_run_beside_it(
    tmp_path: Path, arrangement: dict[str, Any]
) -> None:
    played = run(tmp_path, "Random", arrangement)
    assert unarranged(played.rows) == unarranged(run(tmp_path, "Random", arrangement, num_envs=1).rows)


@pytest.mark.parametrize("policy", [*KNOWABLE, "Random"])
@laws(3)
@given(arrangement=arrangements())
def test_worker_processes_change_no_row(tmp_path: Path, policy: str, arrangement: dict[str, Any]) -> None:
    in_workers = run(tmp_path, policy, arrangement, vectorization="async")
    assert unarranged(in_workers.rows) == unarranged(run(tmp_path, policy, arrangement).rows)


@pytest.mark.parametrize("policy", KNOWABLE)
@laws(6)
@given(arrangement=arrangements())
def test_lanes_of_gymnasium_s_own_vector_environment_change_no_row(
    tmp_path: Path, policy: str, arrangement: dict[str, Any]
) -> None:
    seeds = [seed for seed in arrangement["seeds"] if seed % 13 != 12 and seed % 6 != 5] or [0]
    calm = {**arrangement, "seeds": seeds}
    played = run(tmp_path, policy, calm, autoreset="disabled")
    ours = run(tmp_path, policy, calm)
    assert as_the_loop_sees(played.rows) == as_the_loop_sees(ours.rows)
    assert played.column("trace_hash") == ours.column("trace_hash")


def test_a_start_has_one_hash_whoever_carries_its_info(tmp_path: Path) -> None:
    """Seed 9 reports success at its reset; gymnasium's vector environments turn that flag into a numpy one."""
    start = {"seeds": [9], "num_envs": 1, "horizon": 1, "max_episode_steps": None, "kind": "discrete"}
    merged = run(tmp_path, "Linear", start, autoreset="disabled")
    assert merged.column("start_hash") == run(tmp_path, "Linear", start).column("start_hash")


@pytest.mark.parametrize("flags", [{}, {"num_envs": 3}, {"num_envs": 2, "vectorization": "async"}])
def test_thousands_of_steps_are_added_up_as_a_plain_loop_adds_them(tmp_path: Path, flags: dict[str, Any]) -> None:
    """Rewards of a tenth, of which another order of additions would change the last bits."""
    flags = {"episodes": 5, "max_episode_steps": 1300, **flags}
    played = play(tmp_path, "stamp", "toys:Marathon-v0", horizon=7, **flags)
    expected = play_alone("toys:Marathon-v0", stamp.Policy, range(5), horizon=7, max_steps=1300)
    assert as_the_loop_sees(played.rows) == expected
    one_lane = play(tmp_path, "stamp:Batched", "toys:Marathon-v0", horizon=7, episodes=5, max_episode_steps=1300)
    assert played.column("trace_hash") == one_lane.column("trace_hash")
    assert len(set(played.column("trace_hash"))) == 5
