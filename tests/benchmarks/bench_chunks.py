"""What it saves to start episodes where chunks end, and not to render what nobody reads.

    python tests/benchmarks/bench_chunks.py [--episodes 200] [--call-ms 80] [--step-ms 20] [--speed-up 10]

Calls of a policy that plans eight actions, and steps of eight lanes together, take a made-up time: the process
sleeps for it, `speed-up` times shorter than said; four fifths of a step are for the frame. Episodes take 40 to 120
steps. Wall time is that of the loop; calls and lane use are counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import chunk_toys
from running import policy

from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.signals import StopOnSignal
from rlmesh_cli.times import time_ledger

LANES, HORIZON = 8, 8


def play(schedule: str, folder: Path, *, episodes: int, call: float, step: float, pixels: str) -> Evaluation:
    """Return a run; call, step: seconds of a policy call, and of one lane's step."""
    route = Route(
        env=EnvRoute(id=f"{chunk_toys.__name__}:Slow-v0", kwargs={"seconds": step}, pixels=pixels),
        policy=PolicyRoute(source=policy("viewing:Slow"), params={"seconds": call}),
        horizon=HORIZON,
        num_envs=LANES,
        episodes=episodes,
        schedule=schedule,
    )
    return evaluate(route, out=folder, watcher=SilentWatcher(), stopper=StopOnSignal(), source={}, is_probed=False)


def main() -> int:
    """Print the table; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--call-ms", type=float, default=80)
    parser.add_argument("--step-ms", type=float, default=20)
    parser.add_argument("--speed-up", type=float, default=10)
    given = parser.parse_args()
    scale = 1000 * given.speed_up
    times = {"call": given.call_ms / scale, "step": given.step_ms / scale / LANES}
    runs = {}
    with tempfile.TemporaryDirectory() as name:
        for schedule, pixels in (("eager", "always"), ("aligned", "always"), ("aligned", "wanted")):
            run = play(schedule, Path(name), episodes=given.episodes, pixels=pixels, **times)
            runs[schedule, pixels] = ledger = time_ledger(run.tally, run.seconds, lanes=LANES)
            print(
                f"{schedule:8s} pixels {pixels:7s} {ledger.calls_per_step:.3f} calls a vector step, "
                f"{ledger.rows_per_call:.2f} rows a call, lanes in use {ledger.lane_use:.1%}, "
                f"{ledger.frames_skipped:,} of {ledger.steps:,} frames skipped, {ledger.total:.2f} s"
            )
    eager, aligned = runs["eager", "always"], runs["aligned", "always"]
    ratio = aligned.total / eager.total
    print(f"aligned / eager: x{ratio:.2f} of the wall time (must 0.55)")
    print(f"pixels wanted / always: x{runs['aligned', 'wanted'].total / aligned.total:.2f} of the wall time")
    return int(aligned.calls_per_step > 0.14 or ratio > 0.55)


if __name__ == "__main__":
    raise SystemExit(main())
