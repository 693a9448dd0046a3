"""Seven faults that were measured in a harness of the same name, and what is right instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import toys
from oracle import play_alone
from running import play, unarranged
from toy_policies import idle

LOCKSTEP = [{"autoreset": mode} for mode in ("next_step", "same_step", "disabled")]
OURS = [{}, {"vectorization": "async"}]


def named(flags: dict[str, Any]) -> str:
    return "-".join(map(str, flags.values())) or "sync"


def length_of(seed: int) -> int:
    """Return the length of an episode of Stamped."""
    return 2 + 3 * (seed % 5)


@pytest.mark.parametrize("horizon", [1, 4, 8])
@pytest.mark.parametrize("policy", ["stamp", "stamp:Batched", "stamp:Uneven"])
@pytest.mark.parametrize("flags", OURS + LOCKSTEP, ids=named)
def test_no_action_is_executed_in_an_episode_it_was_not_planned_in(
    tmp_path: Path, flags: dict[str, Any], policy: str, horizon: int
) -> None:
    """Fact 4. Every action says in which episode, and for which step, it was planned."""
    horizon = min(horizon, 6) if policy.endswith("Uneven") else horizon
    flags = {"num_envs": 3, "episodes": 12, "horizon": horizon, "metrics": ("stale",), **flags}
    played = play(tmp_path, policy, "toys:Stamped-v0", **flags)
    assert played.code == 0
    assert [row["metrics"]["stale"] for row in played.rows] == [0.0] * 12
    assert played.column("return") == played.column("length")
    if played.record["seeded"]:
        assert played.column("length") == [length_of(seed) for seed in range(12)]


@pytest.mark.parametrize("limit", [3, 6])
@pytest.mark.parametrize("flags", OURS + LOCKSTEP, ids=named)
def test_no_action_outlives_an_episode_that_a_limit_ends(
    tmp_path: Path, flags: dict[str, Any], limit: int
) -> None:
    """Fact 4, with lanes that end in the middle of a chunk and start anew at once."""
    flags = {"num_envs": 3, "episodes": 9, "horizon": 4, "max_episode_steps": limit, **flags}
    played = play(tmp_path, "stamp", "toys:Stamped-v0", metrics=("stale",), **flags)
    assert [row["metrics"]["stale"] for row in played.rows] == [0.0] * 9
    assert max(played.column("length")) == limit
    assert played.column("return") == played.column("length")


@pytest.mark.parametrize("flags", OURS, ids=named)
def test_no_action_outlives_an_episode_that_breaks(tmp_path: Path, flags: dict[str, Any]) -> None:
    """Fact 4. Odd seeds break in their third step, two actions before their chunk is used up."""
    flags = {"num_envs": 2, "episodes": 10, "horizon": 5, "env_args": ("breaks_at=2",), **flags}
    played = play(tmp_path, "stamp", "toys:Stamped-v0", metrics=("stale",), **flags)
    for row in played.rows:
        is_broken = row["seed"] % 2 and length_of(row["seed"]) > 2
        assert row["end"] == ("error" if is_broken else "terminated")
        assert row["return"] == row["length"] == (2 if is_broken else length_of(row["seed"]))
        assert row["metrics"]["stale"] == 0


@pytest.mark.parametrize("lanes", [1, 2, 3, 6])
@pytest.mark.parametrize("horizon", [2, 3, 5, 8])
@pytest.mark.parametrize("policy", ["stamp", "stamp:Batched"])
def test_an_episode_is_planned_at_every_horizon_th_step_whatever_its_neighbours_do(
    tmp_path: Path, policy: str, horizon: int, lanes: int
) -> None:
    """Fact 3. One queue for all lanes is cleared by any lane's end; 14 steps are then planned more often."""
    toys.LOG.clear()
    seeds = (4, 0, 1, 2, 0, 1, 9, 3, 5, 6)
    flags = {"seeds": ",".join(map(str, seeds)), "num_envs": lanes, "horizon": horizon}
    played = play(tmp_path, policy, "toys:Stamped-v0", **flags)
    assert played.column("policy_calls") == [-(-length_of(seed) // horizon) for seed in seeds]
    for seed in set(seeds):
        planned_at = {action[1] for known, _, action in toys.LOG if known == seed}
        assert sorted(planned_at) == list(range(0, length_of(seed), horizon))
        executed = [(t, action[1] + action[2]) for known, t, action in toys.LOG if known == seed]
        assert all(t == meant for t, meant in executed)
    assert played.record["policy"]["chunk_length"] == 8


@pytest.mark.parametrize("flags", [*OURS, *LOCKSTEP], ids=named)
def test_long_episodes_count_as_much_as_short_ones(tmp_path: Path, flags: dict[str, Any]) -> None:
    """Fact 5. Half of the episodes succeed, in ten times the steps; the first 32 to finish give a rate of 0.38."""
    is_seeded = flags.get("autoreset") in (None, "disabled")
    rates = []
    for base in range(2 if is_seeded else 12):
        seeds = range(100 * base, 100 * base + 32)
        played = play(tmp_path, "idle", "toys:Gamble-v0", num_envs=16, episodes=32, seed=seeds[0], **flags)
        assert sorted(played.written) == played.column("index") == list(range(32))
        rates.append(played.summary["success_rate"])
        if is_seeded:
            alone = play_alone("Gamble-v0", idle.Policy, seeds)
            assert played.column("success") == [row["success"] for row in alone]
    if not is_seeded:
        # Four standard deviations of the mean of 12 rates, each of 32 fair coins.
        assert np.mean(rates) == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(12 * 32))


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize(
    "flags", [*OURS, *LOCKSTEP, {"vectorization": "async", "autoreset": "next_step"}], ids=named
)
def test_an_environment_that_always_reports_failure_has_a_rate_of_zero(
    tmp_path: Path, flags: dict[str, Any], lanes: int
) -> None:
    """Fact 6. Neither 1.0, because it terminated, nor unknown, because nobody looked into the infos."""
    played = play(tmp_path, "idle", "toys:Denies-v0", episodes=6, num_envs=lanes, **flags)
    assert played.column("success") == [False] * 6
    assert played.column("success_source") == ["is_success"] * 6
    assert played.summary["success_rate"] == 0.0
    assert played.summary["success"]["failures"] == 6


@pytest.mark.parametrize("flags", [*OURS, {"autoreset": "same_step"}, {"vectorization": "native"}], ids=named)
@pytest.mark.parametrize(("policy", "is_perfect"), [("idle", False), ("balance", True)])
def test_cartpole_reports_no_success_for_a_bad_policy_nor_for_a_perfect_one(
    tmp_path: Path, policy: str, is_perfect: bool, flags: dict[str, Any]
) -> None:
    """Fact 7. Read off `terminated`, the bad one has a rate of 1.0 and the perfect one of 0.0."""
    played = play(tmp_path, policy, "CartPole-v1", episodes=3, num_envs=3, **flags)
    assert played.column("end") == ["truncated" if is_perfect else "terminated"] * 3
    assert (played.summary["mean_return"] == 500) == is_perfect
    assert played.column("success") == [None] * 3
    assert played.summary["success_rate"] is None
    assert played.summary["success"]["unknown"] == 3


@pytest.mark.parametrize("lanes", [1, 2, 5])
@pytest.mark.parametrize("flags", [*OURS, {"autoreset": "disabled"}], ids=named)
def test_capped_episodes_are_counted_once_each_under_their_own_seeds(
    tmp_path: Path, flags: dict[str, Any], lanes: int
) -> None:
    """Facts 8 and 9. Episode i pays i + 1 a step, so that no two can be taken for one another."""
    flags = {"seeds": "11..15", "max_episode_steps": 4, "num_envs": lanes, **flags}
    played = play(tmp_path, "idle", "toys:Payday-v0", metrics=("seed_seen",), **flags)
    assert played.column("seed") == [11, 12, 13, 14, 15]
    assert [row["metrics"]["seed_seen"] for row in played.rows] == [11, 12, 13, 14, 15]
    assert played.column("length") == [4] * 5
    assert played.column("return") == [4.0, 8.0, 12.0, 16.0, 20.0]
    assert played.column("end") == ["truncated"] * 5


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_a_lockstep_environment_can_be_capped(tmp_path: Path, lanes: int, autoreset: str) -> None:
    """Fact 9. Its episodes say that no seed of their own decided them."""
    flags = {"seeds": "11..15", "max_episode_steps": 4, "num_envs": lanes, "autoreset": autoreset}
    played = play(tmp_path, "idle", "toys:Payday-v0", metrics=("seed_seen",), **flags)
    assert played.column("length") == [4] * 5
    assert played.column("seed") == [None] * 5
    assert [row["return"] / 4 + 10 for row in played.rows] == [row["metrics"]["seed_seen"] for row in played.rows]


@pytest.mark.parametrize("flags", [*OURS, *LOCKSTEP, {"vectorization": "native"}], ids=named)
def test_two_vector_runs_with_the_same_seed_are_the_same_run(tmp_path: Path, flags: dict[str, Any]) -> None:
    """Fact 9. Where single episodes cannot be seeded, the first reset of the whole vector still can."""
    runs = [
        play(tmp_path, "idle", "CartPole-v1", num_envs=4, episodes=10, seed=21, **flags).rows for _ in range(2)
    ]
    first, second = (unarranged(rows) for rows in runs)
    assert first == second


@pytest.mark.parametrize("lanes", [1, 3])
def test_a_native_vector_environment_is_read_as_its_own_loop_reads_it(tmp_path: Path, lanes: int) -> None:
    """Facts 4 and 9. Lane by lane: the length of each of its episodes, the reset step left out."""
    env = gym.make_vec("CartPole-v1", num_envs=lanes)
    env.reset(seed=21)
    lengths: list[list[int]] = [[] for _ in range(lanes)]
    counts, was_over = np.zeros(lanes, int), np.zeros(lanes, bool)
    while min(map(len, lengths)) < 4:
        _, _, terminated, truncated, _ = env.step(np.zeros(lanes, np.int64))
        counts = np.where(was_over, 0, counts + 1)
        was_over = terminated | truncated
        for lane in np.flatnonzero(was_over):
            lengths[lane].append(int(counts[lane]))
    env.close()
    flags = {"num_envs": lanes, "episodes": 4 * lanes, "seed": 21, "vectorization": "native"}
    played = play(tmp_path, "idle", "CartPole-v1", **flags)
    for lane in range(lanes):
        assert [row["length"] for row in played.rows if row["lane"] == lane] == lengths[lane][:4]
