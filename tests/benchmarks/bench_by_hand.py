"""The harness against loops by hand that do the same duties, and nothing else.

    python -m tests.benchmarks.bench_by_hand

The bare loops of `bench_rollout` seed nothing, check nothing and write nothing. These reset every episode with its
seed (where that can be had), look whether observations and actions are inside their spaces, hash how each episode
began and what was done and paid in it, and write its row at once: what a user who wants all that, on CartPole and
with nothing ever going wrong, cannot do without. They say how far the other figures could go.
"""

from __future__ import annotations

import hashlib
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np

from rlmesh_cli.episodes import EpisodeResult, Seconds

from .bench_rollout import POLICY_FILE, balance, ours, push
from .measuring import Case, Skip

Act = Callable[[np.ndarray], np.ndarray]
_LIMIT = 500
_BLOCK = 32


def _row(
    index: int,
    lane: int,
    start: str,
    trace: bytes,
    length: int,
    total: float,
    *,
    end: str,
    seed: int | None = None,
) -> EpisodeResult:
    return EpisodeResult(
        index=index,
        seed=seed,
        episode_id=f"ep-{index + 1:06d}",
        lane=lane,
        length=length,
        return_=total,
        end=end,
        terminated=end == "terminated",
        truncated=end == "truncated",
        success=None,
        success_final=None,
        success_any=None,
        success_at_reset=None,
        success_source=None,
        start_hash=start,
        trace_hash=hashlib.sha256(trace).hexdigest()[:16],
        policy_calls=length,
        clipped_actions=0,
        metrics={},
        error=None,
        seconds=Seconds(env=0.0, policy=0.0, adapter=0.0, total=0.0),
        planned_actions=length,
    )


def _start_hash(observation: np.ndarray) -> str:
    return hashlib.sha256(b"<f4(4,)" + observation.tobytes()).hexdigest()[:16]


def lanes_by_hand(act: Act, file: Path, *, lanes: int, episodes: int) -> float:
    """Return lane-steps a second of a list of environments, from their first seeded resets to the last row."""
    envs = [gym.make("CartPole-v1").unwrapped for _ in range(lanes)]
    space, encoder = envs[0].observation_space, msgspec.json.Encoder()
    lows, highs = np.tile(space.low, (lanes, 1)), np.tile(space.high, (lanes, 1))
    seen: list[Any] = [None] * lanes
    index, starts = [0] * lanes, [""] * lanes
    paid: list[list[float]] = [[] for _ in range(lanes)]
    done: list[list[int]] = [[] for _ in range(lanes)]
    planned = iter(range(episodes))
    steps = 0
    with file.open("wb", buffering=0) as rows_file:
        began = time.perf_counter()

        def start(lane: int) -> bool:
            index[lane] = next(planned, -1)
            if index[lane] < 0:
                return False
            seen[lane], _ = envs[lane].reset(seed=index[lane])
            starts[lane], paid[lane], done[lane] = _start_hash(seen[lane]), [], []
            return True

        live = [lane for lane in range(lanes) if start(lane)]
        while live:
            batch = np.array([seen[lane] for lane in live])
            count, yes = len(live), b"\x01" * batch.size
            assert (batch >= lows[:count]).tobytes() == yes
            assert (batch <= highs[:count]).tobytes() == yes
            actions = act(batch)
            plain = actions.tolist()
            assert actions.shape == (count,)
            assert {0, 1}.issuperset(plain)
            rows = []
            for row, (lane, action) in enumerate(zip(live, actions, strict=True)):
                seen[lane], reward, terminated, _, _ = envs[lane].step(action)
                paid[lane].append(reward)
                done[lane].append(plain[row])
                if terminated or len(paid[lane]) == _LIMIT:
                    total = 0.0
                    for reward in paid[lane]:
                        total += reward
                    trace, length = array("d", paid[lane]).tobytes() + bytes(done[lane]), len(paid[lane])
                    end, number = "terminated" if terminated else "truncated", index[lane]
                    rows.append(_row(number, lane, starts[lane], trace, length, total, end=end, seed=number))
                    seen[lane] = None
            steps += count
            if rows:
                rows_file.write(encoder.encode_lines(rows))
                live = [lane for lane in live if seen[lane] is not None or start(lane)]
        return steps / (time.perf_counter() - began)


def native_by_hand(file: Path, *, lanes: int, rounds: int) -> float:
    """Return lane-steps a second of gymnasium's own CartPoleVectorEnv, all of whose episodes end together."""
    env = gym.make_vec("CartPole-v1", num_envs=lanes, vectorization_mode="vector_entry_point")
    space, encoder = env.single_observation_space, msgspec.json.Encoder()
    lows, highs = np.tile(space.low, (lanes, 1)), np.tile(space.high, (lanes, 1))
    yes = b"\x01" * lows.size
    # Turned around in blocks, whose rows do not share lines of the cache.
    paid, done = np.empty((lanes, _LIMIT)), np.empty((lanes, _LIMIT), np.uint8)
    new_paid, new_done = np.empty((_BLOCK, lanes + 8))[:, :lanes], np.empty((_BLOCK, lanes), np.uint8)
    steps = 0
    with file.open("wb", buffering=0) as rows_file:
        began = time.perf_counter()
        observation, _ = env.reset(seed=0)
        for played in range(rounds):
            starts = [_start_hash(row) for row in observation]
            for step in range(_LIMIT):
                batch = observation.copy()
                assert (batch >= lows).tobytes() == yes
                assert (batch <= highs).tobytes() == yes
                actions = balance(batch)
                assert actions.shape == (lanes,)
                assert (actions.view(np.uint64) <= 1).all()
                observation, rewards, terminated, truncated, _ = env.step(actions.copy())
                place = step % _BLOCK
                new_paid[place], new_done[place] = rewards, actions
                assert b"\x00" not in np.isfinite(new_paid[place]).tobytes()
                has_ended = b"\x01" in np.logical_or(terminated, truncated).tobytes()
                assert has_ended == (step == _LIMIT - 1)
                if has_ended or place == _BLOCK - 1:
                    paid[:, step - place : step + 1] = new_paid[: place + 1].T
                    done[:, step - place : step + 1] = new_done[: place + 1].T
            steps += _LIMIT * lanes
            totals = np.add.accumulate(paid, axis=1)[:, -1].tolist()
            traces = [paid[lane].tobytes() + done[lane].tobytes() for lane in range(lanes)]
            rows = [
                _row(
                    played * lanes + lane, lane, starts[lane], traces[lane], _LIMIT, totals[lane], end="truncated"
                )
                for lane in range(lanes)
            ]
            rows_file.write(encoder.encode_lines(rows))
            if played < rounds - 1:
                observation, *_ = env.step(actions)  # the step that only resets
        return steps / (time.perf_counter() - began)


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    policies, rows = folder / "by_hand_policies.py", folder / "by_hand.jsonl"
    policies.write_text(POLICY_FILE)

    def case(name: str, what: str, policy: str, act: Act, lanes: int, episodes: int, bar: float) -> Case:
        return Case(
            f"hand-{name}",
            f"{what} / by hand",
            "rate",
            "steps/s",
            lambda: ours(policies, policy, lanes=lanes, episodes=episodes),
            lambda: lanes_by_hand(act, rows, lanes=lanes, episodes=episodes),
            bar,
            1.0,
        )

    return [
        case("8", "8 lanes", "Balance", balance, 8, 48, 0.95),
        case("1", "1 lane", "Balance", balance, 1, 24, 0.95),
        case("9-steps", "9-step episodes", "Push", push, 8, 2000, 0.8),
        Case(
            "hand-512",
            "512 native lanes / by hand",
            "rate",
            "steps/s",
            lambda: ours(policies, "Balance", lanes=512, episodes=1536, vectorization="native"),
            lambda: native_by_hand(rows, lanes=512, rounds=3),
            0.85,
            1.0,
        ),
    ]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_by_hand"]))
