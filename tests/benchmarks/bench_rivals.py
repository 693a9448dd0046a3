"""What others take for the same episodes, where they are installed.

    python -m tests.benchmarks.bench_rivals

All run the policy of bench_rollout.py on CartPole; theirs are as installed, with their defaults.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
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

    # Lanes -> episodes: of ours, and of evaluate_policy's. The peer plays one a lane.
    many, few = {8: 48, 1: 24}, {8: 40, 1: 16}
    rows = []
    for lanes, sb3_bar, sb3_aim, peer_bar, peer_aim in ((8, 1.33, 1.5, 10.0, 15.0), (1, 1.8, 2.2, 25.0, 40.0)):
        reader = mine(lanes, many[lanes])
        sb3 = partial(evaluate_policy_rate, lanes, few[lanes])
        what = f"{lanes} {'lanes' if lanes > 1 else 'lane'} / "
        rows += [
            ("stable_baselines3", f"rivals-sb3-{lanes}", f"{what}evaluate_policy", reader, sb3, sb3_bar, sb3_aim),
            (
                "rlmesh",
                f"rivals-peer-{lanes}",
                f"{what}Model.run",
                reader,
                partial(peer_rate, lanes, lanes),
                peer_bar,
                peer_aim,
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
