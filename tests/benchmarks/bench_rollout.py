"""What the harness costs: ratios of rates against loops that a user would write by hand.

    python tests/benchmarks/bench_rollout.py [--repeats 9]

Each round runs every case once, in turn, in this process; a ratio is the median over the rounds of (ours / theirs
in the same round). Records are on: `episodes.jsonl` is written as in a real run. A step is one `env.step` of one
lane; the reset steps of gymnasium's autoreset are not steps.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np

from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.signals import StopOnSignal

WEIGHTS = np.array([0.1, 0.5, 1.0, 1.0], np.float32)


def balance(obs: np.ndarray) -> np.ndarray:
    """Keep the pole up for all of 500 steps."""
    return (obs @ WEIGHTS > 0).astype(np.int64)


def push(obs: np.ndarray) -> np.ndarray:
    """Let it fall after about nine steps."""
    return np.ones(len(obs), np.int64)


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


def ours(folder: Path, policy: str, *, lanes: int, episodes: int, vectorization: str = "sync") -> float:
    """Return lane-steps a second of a whole evaluation's loop, first resets and records included."""
    file = folder / "policies.py"
    if not file.exists():
        file.write_text(POLICY_FILE)
    route = Route(
        env=EnvRoute(id="CartPole-v1", vectorization=vectorization),
        policy=PolicyRoute(source=f"{file}:{policy}"),
        num_envs=lanes,
        episodes=episodes,
    )
    run = evaluate(route, out=folder / "runs", watcher=SilentWatcher(), stopper=StopOnSignal(), source={})
    return run.tally.steps / run.seconds


def sync_loop(act: Callable[[np.ndarray], np.ndarray], *, lanes: int, steps: int) -> float:
    """Return lane-steps a second of a bare SyncVectorEnv loop: no seeds, no records, no checks."""
    env = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1")] * lanes)
    obs, _ = env.reset(seed=0)
    resets = 0
    began = time.perf_counter()
    for _ in range(steps):
        obs, _, terminated, truncated, _ = env.step(act(obs))
        resets += int(np.count_nonzero(terminated | truncated))
    seconds = time.perf_counter() - began
    env.close()
    return (steps * lanes - resets) / seconds


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


def native_loop(*, lanes: int, steps: int) -> float:
    """Return lane-steps a second of a bare loop over gymnasium's own CartPoleVectorEnv."""
    env = gym.make_vec("CartPole-v1", num_envs=lanes, vectorization_mode="vector_entry_point")
    obs, _ = env.reset(seed=0)
    resets = 0
    began = time.perf_counter()
    for _ in range(steps):
        obs, _, terminated, truncated, _ = env.step(balance(obs))
        resets += int(np.count_nonzero(terminated | truncated))
    return (steps * lanes - resets) / (time.perf_counter() - began)


# name, our case, their case, what must be reached, what is aimed at
RATIOS = [
    ("8 lanes / SyncVectorEnv(8)", "ours 8", "sync 8", 1.2, 1.3),
    ("8 lanes / one bare environment", "ours 8", "single", 0.85, 0.9),
    ("1 lane / SyncVectorEnv(1)", "ours 1", "sync 1", 1.5, 1.8),
    ("512 native lanes / bare CartPoleVectorEnv", "ours 512", "native 512", 0.75, 0.9),
    ("9-step episodes, seeded / SyncVectorEnv(8), unseeded", "ours short", "sync short", 0.75, 0.9),
]


def cases(folder: Path) -> dict[str, Callable[[], float]]:
    """Return what is measured, each about a fifth of a second."""
    return {
        "ours 8": lambda: ours(folder, "Balance", lanes=8, episodes=48),
        "sync 8": lambda: sync_loop(balance, lanes=8, steps=3000),
        "single": lambda: single_loop(24_000),
        "ours 1": lambda: ours(folder, "Balance", lanes=1, episodes=24),
        "sync 1": lambda: sync_loop(balance, lanes=1, steps=12_000),
        "ours 512": lambda: ours(folder, "Balance", lanes=512, episodes=1536, vectorization="native"),
        "native 512": lambda: native_loop(lanes=512, steps=1500),
        "ours short": lambda: ours(folder, "Push", lanes=8, episodes=2000),
        "sync short": lambda: sync_loop(push, lanes=8, steps=2500),
    }


def measure(repeats: int) -> dict[str, list[float]]:
    """Run every case once a round; a first round warms up and is not counted."""
    rates: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        running = cases(Path(name))
        names = list(running)
        for turn in range(repeats + 1):
            shift = turn % len(names)
            for case in names[shift:] + names[:shift]:
                gc.collect()
                rate = running[case]()
                if turn:
                    rates.setdefault(case, []).append(rate)
    return rates


def main() -> int:
    """Print the table; return 1 if a ratio is below what must be reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    rates = measure(repeats)
    print(
        f"python {sys.version.split()[0]}, gymnasium {gym.__version__}, numpy {np.__version__}, {repeats} rounds"
    )
    for case, values in rates.items():
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"  {case:12s} {middle:12,.0f} steps/s  ({low:,.0f} - {high:,.0f})")
    missed = 0
    for name, mine, theirs, must, aim in RATIOS:
        ratios = [a / b for a, b in zip(rates[mine], rates[theirs], strict=True)]
        middle = statistics.median(ratios)
        missed += middle < must
        spread = f"{min(ratios):.2f} - {max(ratios):.2f}"
        print(f"{name:54s} x{middle:.2f}  ({spread})  must {must:.2f}  aim {aim:.2f}")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
