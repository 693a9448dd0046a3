"""What a start costs: whole processes against the imports that they cannot do without.

    python -m tests.benchmarks.bench_start

The command that is installed beside this Python is run, or else the package as a module. Compiled modules are kept
in a folder of their own, whatever the environment says: an installed package has them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from .measuring import Case, Skip

POLICY_FILE = """
import numpy as np

WEIGHTS = np.array([0.1, 0.5, 1.0, 1.0], np.float32)


def predict_batch(obs):
    return (obs @ WEIGHTS > 0).astype(np.int64)


class Policy:
    def predict_batch(self, obs):
        return predict_batch(obs)
"""

#: What a smoke run and a help text cannot do without.
FLOOR = "import gymnasium, numpy, typer, rich.console, rich.table, yaml"
HELP_FLOOR = "import typer, rich.console, rich.table, rich.panel"


def command() -> list[str]:
    """Return the command line of the harness; the peer has a command `rlmesh` too, so the longer name is taken."""
    installed = Path(sys.executable).with_name("rlmesh-cli")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "rlmesh_cli"]


def process(words: list[str], folder: Path) -> Callable[[], float]:
    """Return what takes a reading: milliseconds of a process that must end well."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}

    def read() -> float:
        began = time.perf_counter()
        ended = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - began
        if ended.returncode:
            raise RuntimeError(f"{' '.join(words)} left with {ended.returncode}: {ended.stderr[-500:]}")
        return 1e3 * seconds

    return read


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    (folder / "smoke.py").write_text(POLICY_FILE)
    smoke = ["eval", "smoke.py", "--env", "CartPole-v1", "--num-envs", "8", "--episodes", "16"]
    rows = [
        ("start-help", "rlmesh --help / import typer, rich", ["--help"], HELP_FLOOR, 1.5, 1.25),
        ("start-smoke", "CartPole, 8 lanes, 16 episodes / imports alone", smoke, FLOOR, 1.3, 1.15),
    ]
    return [
        Case(
            name,
            what,
            "time",
            "ms",
            process([*command(), *words], folder),
            process([sys.executable, "-c", floor], folder),
            bar,
            aim,
        )
        for name, what, words, floor, bar, aim in rows
    ]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_start"]))
