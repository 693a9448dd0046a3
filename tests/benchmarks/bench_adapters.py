"""What the adapter costs: a converted route against the same policy on raw observations.

    python tests/benchmarks/bench_adapters.py [--repeats 9]

Each round runs every case once, in turn, in this process. A figure is the median over the rounds of the difference
in microseconds a lane-step, of whole evaluations with records on. The images of bench_images.py come after that.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
from bench_images import report as report_images

from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.signals import StopOnSignal

POLICIES = """
import numpy as np

WEIGHTS = np.array([0.1, 0.5, 1.0, 1.0], np.float32)


class Raw:
    def predict_batch(self, obs):
        return (obs @ WEIGHTS > 0).astype(np.int64)


class Tagged:
    spec = {
        "input": {"type": "state", "components": ["x/cart", "x/pole"]},
        "output": {"components": [{"role": "x/push", "dim": 1, "select": "index"}]},
    }

    def predict_batch(self, obs):
        return (obs @ WEIGHTS > 0)[:, None]


class RawSwing:
    def predict_batch(self, obs):
        return obs[:, 2:] * -0.25


class Swing:
    spec = {
        "input": {"type": "state", "components": [
            {"role": "x/angle", "range": [0.0, 1.0]}, {"role": "x/speed", "range": [-1.0, 1.0]},
        ]},
        "output": {"components": [{"role": "x/torque", "dim": 1, "range": [-1.0, 1.0]}]},
    }

    def predict_batch(self, obs):
        return obs[:, 2:] * -1.0
"""

CARTPOLE = {
    "observation": {"type": "split", "fields": [{"role": "x/cart", "dim": 2}, {"role": "x/pole", "dim": 2}]},
    "action": {"components": [{"role": "x/push", "dim": 1}]},
}
PENDULUM = {
    "observation": {"type": "split", "fields": [{"role": "x/angle", "dim": 2}, {"role": "x/speed", "dim": 1}]},
    "action": {"components": [{"role": "x/torque", "dim": 1}]},
}


def microseconds(folder: Path, policy: str, env: str, tags: dict[str, object] | None) -> float:
    """Return microseconds a lane-step of an evaluation on eight lanes."""
    file = folder / "policies.py"
    if not file.exists():
        file.write_text(POLICIES)
    route = Route(
        env=EnvRoute(id=env),
        policy=PolicyRoute(source=f"{file}:{policy}"),
        env_tags=tags,
        num_envs=8,
        episodes=64,
    )
    run = evaluate(route, out=folder / "runs", watcher=SilentWatcher(), stopper=StopOnSignal(), source={})
    return 1e6 * run.seconds / run.tally.steps


def cases(folder: Path) -> dict[str, Callable[[], float]]:
    """Return what is measured."""
    return {
        "CartPole raw": lambda: microseconds(folder, "Raw", "CartPole-v1", None),
        "CartPole tagged": lambda: microseconds(folder, "Tagged", "CartPole-v1", CARTPOLE),
        "Pendulum raw": lambda: microseconds(folder, "RawSwing", "Pendulum-v1", None),
        "Pendulum tagged": lambda: microseconds(folder, "Swing", "Pendulum-v1", PENDULUM),
    }


# name, converted, raw, most microseconds a lane-step
DIFFERENCES = [
    ("two fields, an index", "CartPole tagged", "CartPole raw", 2.0),
    ("two mapped ranges, a mapped action", "Pendulum tagged", "Pendulum raw", 2.0),
]


def main() -> int:
    """Print the table; return 1 if a difference is above what it may be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        running = cases(Path(name))
        for turn in range(repeats + 1):
            for case, run in running.items():
                gc.collect()
                time = run()
                if turn:
                    times.setdefault(case, []).append(time)
    print(
        f"python {sys.version.split()[0]}, gymnasium {gym.__version__}, numpy {np.__version__}, {repeats} rounds"
    )
    for case, values in times.items():
        print(
            f"  {case:16s} {statistics.median(values):6.2f} us a lane-step"
            f"  ({min(values):.2f} - {max(values):.2f})"
        )
    missed = 0
    for name, converted, raw, most in DIFFERENCES:
        more = [a - b for a, b in zip(times[converted], times[raw], strict=True)]
        middle = statistics.median(more)
        missed += middle > most
        print(f"{name:40s} +{middle:.2f} us  ({min(more):.2f} - {max(more):.2f})  at most {most:.2f}")
    missed += report_images(repeats)
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
