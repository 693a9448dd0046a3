"""One worker against two: HalfCheetah-v5, 8 lanes, a small numpy policy; paired medians of interleaved runs.

    python tests/benchmarks/bench_shards.py [repeats]

Prints the ratio of lane-steps a second, of the loop and of the whole command, and of processor seconds: where
others use the cores too, these say what two workers would reach on free ones.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def spent_by_children() -> float:
    """Return processor seconds of the processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(folder: Path, workers: int, episodes: int) -> tuple[float, float, float]:
    """Return lane-steps a second of the loop, of the whole command, and of one processor."""
    command = [sys.executable, "-m", "rlmesh_cli", "eval", str(folder / "bench_policy.py"), "--no-probe", "--json"]
    command += ["--env", "HalfCheetah-v5", "--num-envs", "8", "-n", str(episodes), "--workers", str(workers)]
    before, began = spent_by_children(), time.perf_counter()
    done = subprocess.run([*command, "--out", str(folder / "runs")], capture_output=True, check=True)
    seconds, processor = time.perf_counter() - began, spent_by_children() - before
    spent = json.loads(done.stdout)["time"]
    return spent["steps_per_second"], spent["steps"] / seconds, spent["steps"] / processor


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bench_policy.py").write_text(POLICY)
        pairs = [(measure(folder, 1, 64), measure(folder, 2, 64)) for _ in range(repeats)]
    for place, what in enumerate(("loop", "command", "processor")):
        ratio = statistics.median(two[place] / one[place] for one, two in pairs)
        one, two = (statistics.median(pair[side][place] for pair in pairs) for side in (0, 1))
        print(f"{what:10} 1 worker {one:9,.0f} steps/s   2 workers {two:9,.0f} steps/s   ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
