"""What others take for the same episodes, where they are installed.

    python -m tests.benchmarks.bench_rivals

All run the policy of bench_rollout.py on CartPole; theirs are as installed, with their defaults.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from .bench_rollout import POLICY_FILE, balance, ours
from .measuring import Case, Skip


class _Predictor:
    """What evaluate_policy asks for."""

    def predict(self, observation: np.ndarray, **_: Any) -> tuple[np.ndarray, None]:
        return balance(observation), None


def evaluate_policy_rate(lanes: int, episodes: int) -> float:
    """Return lane-steps a second of Stable-Baselines3's evaluate_policy, Monitor included, as it wants it."""
    from stable_baselines3.common.evaluation import evaluate_policy  # noqa: PLC0415 - optional
    from stable_baselines3.common.monitor import Monitor  # noqa: PLC0415 - optional
    from stable_baselines3.common.vec_env import DummyVecEnv  # noqa: PLC0415 - optional

    env = DummyVecEnv([lambda: Monitor(gym.make("CartPole-v1"))] * lanes)
    began = time.perf_counter()
    _, lengths = evaluate_policy(_Predictor(), env, n_eval_episodes=episodes, return_episode_rewards=True)
    seconds = time.perf_counter() - began
    env.close()
    return sum(lengths) / seconds


def peer_rate(lanes: int, episodes: int) -> float:
    """Return lane-steps a second of the peer's `Model.run`, on a vector environment where there are lanes."""
    from rlmesh.numpy import Model  # noqa: PLC0415 - optional

    class Balance(Model):
        def predict_batch(self, observation: np.ndarray) -> np.ndarray:
            return balance(observation)

        def predict(self, observation: np.ndarray) -> int:
            return int(balance(observation))

    env: Any = gym.make("CartPole-v1")
    if lanes > 1:
        env = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * lanes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the edition that it would like to be told
        began = time.perf_counter()
        result = Balance().run(env, episodes=episodes)
    seconds = time.perf_counter() - began
    env.close()
    return result.total_steps / seconds


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    file = folder / "rival_policies.py"
    file.write_text(POLICY_FILE)

    def mine(lanes: int, episodes: int) -> Callable[[], float]:
        return lambda: ours(file, "Balance", lanes=lanes, episodes=episodes)

    sb3, peer = "stable_baselines3", "rlmesh"
    rows = [
        (
            sb3,
            "rivals-sb3-8",
            "8 lanes / evaluate_policy, 8",
            mine(8, 48),
            lambda: evaluate_policy_rate(8, 40),
            1.33,
            1.5,
        ),
        (
            sb3,
            "rivals-sb3-1",
            "1 lane / evaluate_policy, 1",
            mine(1, 24),
            lambda: evaluate_policy_rate(1, 16),
            1.8,
            2.2,
        ),
        (
            peer,
            "rivals-peer-8",
            "8 lanes / the peer's Model.run, 8",
            mine(8, 48),
            lambda: peer_rate(8, 8),
            5.0,
            10.0,
        ),
        (
            peer,
            "rivals-peer-1",
            "1 lane / the peer's Model.run, 1",
            mine(1, 24),
            lambda: peer_rate(1, 1),
            12.0,
            25.0,
        ),
    ]
    return [
        Case(name, what, "rate", "steps/s", reader, theirs, bar, aim)
        if find_spec(package)
        else Skip(name, what, f"{package} is not installed")
        for package, name, what, reader, theirs, bar, aim in rows
    ]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_rivals"]))
