"""What a run costs by its size: whole commands over episodes, lanes and workers, with seconds and memory.

    python -m tests.benchmarks.scaling [--most 4096]

CartPole with the built-in policy `zero`: episodes of nine steps, so that the cost of an episode is seen. Seconds
are those of the loop; memory is the largest of the process. The slope is that of log seconds over log episodes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

EPISODES = (8, 64, 512, 4096)
LANES = (1, 8, 64, 512)


class Reading(NamedTuple):
    """Seconds of the loop, and megabytes of the process."""

    seconds: float
    megabytes: float


def read(folder: Path, episodes: int, lanes: int, workers: int) -> Reading:
    """Return what one command costs."""
    command = [sys.executable, "-m", "rlmesh_cli", "eval", "zero", "--env", "CartPole-v1", "--json", "--no-probe"]
    command += ["-n", str(episodes), "--num-envs", str(lanes), "--workers", str(workers), "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        told = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} left with {process.returncode}")
    return Reading(json.loads(told)["time"]["total"], used.ru_maxrss / 1024)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=max(EPISODES), help="episodes at most")
    most = parser.parse_args().most
    sizes = [episodes for episodes in EPISODES if episodes <= most]
    with tempfile.TemporaryDirectory() as name:
        for workers in (1, 2):
            print(
                f"{workers} worker{'s' if workers > 1 else ''}: seconds of the loop, and megabytes of the process"
            )
            print("lanes  " + "".join(f"{episodes:>20,} episodes" for episodes in sizes) + "     slope")
            for lanes in LANES:
                found = [read(Path(name), episodes, lanes, workers) for episodes in sizes]
                cells = "".join(f"{one.seconds:>16.3f} s {one.megabytes:>7.0f} MB" for one in found)
                print(f"{lanes:5d}  {cells}  {slope(sizes, [one.seconds for one in found]):8.2f}")


def slope(sizes: list[int], seconds: list[float]) -> float:
    """Return the slope of log seconds over log episodes between the two largest sizes."""
    if len(sizes) < 2:
        return math.nan
    return math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])


if __name__ == "__main__":
    main()
