"""What the adapter costs: a converted route against the same policy on raw observations, in whole evaluations.

    python -m tests.benchmarks.bench_adapters

A figure is the difference in microseconds a lane-step, records on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rlmesh_cli.schema import EnvRoute

from .evaluations import evaluated
from .measuring import Case, Skip

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


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured, each on eight lanes."""
    file = folder / "adapter_policies.py"
    file.write_text(POLICIES)

    def lane_step(policy: str, env: str, tags: dict[str, object] | None) -> Callable[[], float]:
        def read() -> float:
            route = EnvRoute(id=env)
            steps, seconds = evaluated(file, policy, env=route, env_tags=tags, num_envs=8, episodes=64)
            return 1e6 * seconds / steps

        return read

    rows = [
        ("adapter-fields", "two fields, an index: more than raw", "Tagged", "Raw", "CartPole-v1", CARTPOLE),
        (
            "adapter-ranges",
            "two ranges, a mapped action: more than raw",
            "Swing",
            "RawSwing",
            "Pendulum-v1",
            PENDULUM,
        ),
    ]
    return [
        Case(name, what, "extra", "us", lane_step(tagged, env, tags), lane_step(raw, env, None), bar=2.0, aim=1.0)
        for name, what, tagged, raw, env, tags in rows
    ]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_adapters"]))
