"""An environment that ends its process does not end the command where its lanes have processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import finish, start

ENV = """
import os

import gymnasium
import numpy as np


class Ending(gymnasium.Env):
    "Ends its process where random actions lead it, which is where the probe looks, and never by the policy's."
    observation_space = gymnasium.spaces.Box(-1e9, 1e9, (2,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.seed, self.time = seed, 0
        return np.array([seed, 0.0]), {}

    def step(self, action):
        if action == 1:
            os._exit(9)
        self.time += 1
        return np.array([self.seed, self.time], float), 1.0, self.time >= 3, False, {}
"""
POLICY = "class Policy:\n    def predict(self, obs):\n        return 0\n"


@pytest.mark.parametrize(
    "flags", [("--vectorization", "async"), ("--workers", "2"), ("--workers", "2", "--start-method", "spawn")]
)
def test_the_probe_looks_from_a_process_of_its_own(tmp_path: Path, flags: tuple[str, ...]) -> None:
    (tmp_path / "ending.py").write_text(ENV)
    (tmp_path / "policy.py").write_text(POLICY)
    words = ("policy.py", "--env", "ending:Ending", "-n", "6", "--num-envs", "2", "--out", "runs", *flags)
    code, _, err = finish(start(*words, cwd=tmp_path), seconds=60)
    assert code == 0, err
    (rows,) = tmp_path.glob("runs/*/episodes.jsonl")
    assert len(rows.read_text().splitlines()) == 6
