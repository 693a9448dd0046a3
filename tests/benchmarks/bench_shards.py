"""Two policy workers against one: HalfCheetah-v5, 8 lanes each, a small numpy policy.

    python -m tests.benchmarks.bench_shards

A reading is the lane-steps a second of the loop of a whole command.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from functools import partial
from pathlib import Path

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
    name, what = "shards-cheetah", "HalfCheetah, 2 policy workers / 1"
    if importlib.util.find_spec("mujoco") is None:
        return [Skip(name, what, "mujoco is not installed")]
    (folder / "bench_policy.py").write_text(POLICY)
    return [Case(name, what, "rate", "steps/s", partial(rate, folder, 2), partial(rate, folder, 1), 1.7, 1.8)]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_shards"]))
