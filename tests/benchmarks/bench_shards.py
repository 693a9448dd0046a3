"""Two policy workers, 8 lanes each, against one process.

    python -m tests.benchmarks.bench_shards

HalfCheetah-v5 with a small numpy policy against one worker: a reading is the lane-steps a second of the loop of a
whole command. Episodes of nine steps, where a message an episode would cost as much as the episode, against a bare
SyncVectorEnv, as `bench_rollout` measures one process.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from .bench_rollout import POLICY_FILE, ours, push, sync_loop
from .measuring import Case, Skip

POLICY = """
import numpy as np


class Policy:
    def __init__(self):
        draw = np.random.default_rng(0)
        self.hidden = draw.normal(size=(17, 64))
        self.last = draw.normal(size=(64, 6)) * 0.1

    def predict_batch(self, obs):
        return np.tanh(np.tanh(obs @ self.hidden) @ self.last).astype(np.float32)
"""


def rate(folder: Path, workers: int) -> float:
    """Return lane-steps a second of the loop."""
    command = [sys.executable, "-m", "rlmesh_cli", "eval", str(folder / "bench_policy.py"), "--no-probe", "--json"]
    command += ["--env", "HalfCheetah-v5", "--num-envs", "8", "-n", "64", "--workers", str(workers)]
    ended = subprocess.run([*command, "--out", str(folder / "runs")], capture_output=True, check=True)
    return float(json.loads(ended.stdout)["time"]["steps_per_second"])


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    policies = folder / "shards_policies.py"
    policies.write_text(POLICY_FILE)
    short = Case(
        "shards-9-steps",
        "9-step episodes, seeded, 2 policy workers / SyncVectorEnv(8), unseeded",
        "rate",
        "steps/s",
        partial(ours, policies, "Push", lanes=8, episodes=4000, workers=2),
        partial(sync_loop, push, lanes=8, steps=2500),
        0.85,
        1.0,
    )
    name, what = "shards-cheetah", "HalfCheetah, 2 policy workers / 1"
    if importlib.util.find_spec("mujoco") is None:
        return [Skip(name, what, "mujoco is not installed"), short]
    (folder / "bench_policy.py").write_text(POLICY)
    cheetah = Case(name, what, "rate", "steps/s", partial(rate, folder, 2), partial(rate, folder, 1), 1.7, 1.8)
    return [cheetah, short]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_shards"]))
