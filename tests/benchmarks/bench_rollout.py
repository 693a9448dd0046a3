"""What the harness costs: rates against loops that a user would write by hand.

    python -m tests.benchmarks.bench_rollout

Records are on: `episodes.jsonl` is written as in a real run. A step is one `env.step` of one lane; the reset steps
of gymnasium's autoreset are not steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from rlmesh_cli.schema import EnvRoute

from .evaluations import evaluated
from .measuring import Case, Skip

WEIGHTS = np.array([0.1, 0.5, 1.0, 1.0], np.float32)

POLICY_FILE = """
import numpy as np

WEIGHTS = np.array([0.1, 0.5, 1.0, 1.0], np.float32)


class Balance:
    def predict_batch(self, obs):
        return (obs @ WEIGHTS > 0).astype(np.int64)


class Push:
    def predict_batch(self, obs):
        return np.ones(len(obs), np.int64)
"""


def balance(obs: np.ndarray) -> np.ndarray:
    """Keep the pole up for all of 500 steps."""
    return (obs @ WEIGHTS > 0).astype(np.int64)


def push(obs: np.ndarray) -> np.ndarray:
    """Let it fall after about nine steps."""
    return np.ones(len(obs), np.int64)


def ours(
    policies: Path, name: str, *, lanes: int, episodes: int, vectorization: str = "sync", workers: int = 1
) -> float:
    """Return lane-steps a second of a whole evaluation."""
    env = EnvRoute(id="CartPole-v1", vectorization=vectorization)
    steps, seconds = evaluated(policies, name, env=env, num_envs=lanes, episodes=episodes, workers=workers)
    return steps / seconds


def sync_loop(act: Callable[[np.ndarray], np.ndarray], *, lanes: int, steps: int) -> float:
    """Return lane-steps a second of a bare SyncVectorEnv loop: no seeds, no records, no checks."""
    return _vector_loop(gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * lanes), act, steps)


def native_loop(*, lanes: int, steps: int) -> float:
    """Return lane-steps a second of a bare loop over gymnasium's own CartPoleVectorEnv."""
    env = gym.make_vec("CartPole-v1", num_envs=lanes, vectorization_mode="vector_entry_point")
    return _vector_loop(env, balance, steps)


def _vector_loop(env: Any, act: Callable[[np.ndarray], np.ndarray], steps: int) -> float:
    obs, _ = env.reset(seed=0)
    resets = 0
    began = time.perf_counter()
    for _ in range(steps):
        obs, _, terminated, truncated, _ = env.step(act(obs))
        resets += int(np.count_nonzero(terminated | truncated))
    seconds = time.perf_counter() - began
    env.close()
    return (steps * env.num_envs - resets) / seconds


def single_loop(steps: int) -> float:
    """Return steps a second of a bare loop over one environment, with a policy for one observation."""
    env = gym.make("CartPole-v1")
    obs, _ = env.reset(seed=0)
    began = time.perf_counter()
    for _ in range(steps):
        obs, _, terminated, truncated, _ = env.step(int(obs @ WEIGHTS > 0))
        if terminated or truncated:
            obs, _ = env.reset()
    return steps / (time.perf_counter() - began)


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    file = folder / "rollout_policies.py"
    file.write_text(POLICY_FILE)

    def eight() -> float:
        return ours(file, "Balance", lanes=8, episodes=48)

    def one() -> float:
        return ours(file, "Balance", lanes=1, episodes=24)

    def short() -> float:
        return ours(file, "Push", lanes=8, episodes=2000)

    def native(lanes: int, episodes: int) -> Callable[[], float]:
        return lambda: ours(file, "Balance", lanes=lanes, episodes=episodes, vectorization="native")

    def sync(act: Callable[[np.ndarray], np.ndarray], lanes: int, steps: int) -> Callable[[], float]:
        return lambda: sync_loop(act, lanes=lanes, steps=steps)

    rows = [
        ("rollout-8", "8 lanes / SyncVectorEnv(8)", eight, sync(balance, 8, 3000), 1.25, 1.3),
        ("rollout-8-single", "8 lanes / one bare environment", eight, lambda: single_loop(24_000), 0.9, 1.0),
        ("rollout-1", "1 lane / SyncVectorEnv(1)", one, sync(balance, 1, 12_000), 1.6, 1.8),
        (
            "rollout-9-steps",
            "9-step episodes, seeded / SyncVectorEnv(8), unseeded",
            short,
            sync(push, 8, 2500),
            0.8,
            0.9,
        ),
        (
            "native-8",
            "8 native lanes / bare CartPoleVectorEnv",
            native(8, 80),
            lambda: native_loop(lanes=8, steps=5000),
            0.8,
            0.9,
        ),
        (
            "native-512",
            "512 native lanes / bare CartPoleVectorEnv",
            native(512, 1536),
            lambda: native_loop(lanes=512, steps=1500),
            0.8,
            0.9,
        ),
    ]
    return [
        Case(name, what, "rate", "steps/s", mine, theirs, bar, aim) for name, what, mine, theirs, bar, aim in rows
    ]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_rollout"]))
