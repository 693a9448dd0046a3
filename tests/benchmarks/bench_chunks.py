"""What it saves to start episodes where chunks end, and not to render what nobody reads.

    python -m tests.benchmarks.bench_chunks

Calls of a policy that plans eight actions take 80 ms, steps of eight lanes together 10 ms, four fifths of them for
the frame; where time is measured the process sleeps for a fifth of it. Episodes take 40 to 120 steps. Wall time is
that of the loop; calls and lane use are counts of a run so long that its end, when lanes have nothing left, hardly
counts.
"""

from __future__ import annotations

import sys
from functools import cache, partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import chunk_toys
from running import policy

from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.signals import StopOnSignal
from rlmesh_cli.times import TimeLedger, time_ledger

from .measuring import Case, Skip

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


#: Seconds that a policy call and one lane's step sleep.
TIMES = {"call": 0.08 / 5, "step": 0.01 / 5 / LANES}
COUNTED, TIMED = 800, 24


def ledger(folder: Path, schedule: str, pixels: str = "always", *, is_timed: bool = False) -> TimeLedger:
    """Return where a run's time went, and what was done in it; without sleeping if only counts are wanted."""
    times = TIMES if is_timed else dict.fromkeys(TIMES, 0.0)
    run = play(schedule, folder, episodes=TIMED if is_timed else COUNTED, pixels=pixels, **times)
    return time_ledger(run.tally, run.seconds, lanes=LANES)


@cache
def counted(folder: Path) -> TimeLedger:
    """Return the ledger of a long aligned run; its counts are the same each time."""
    return ledger(folder, "aligned")


def calls(folder: Path) -> float:
    """Return the calls a vector step of an aligned run."""
    return counted(folder).calls_per_step or 0.0


def idle(folder: Path) -> float:
    """Return the share of the lanes that stood still in an aligned run."""
    return 1.0 - (counted(folder).lane_use or 0.0)


def seconds(folder: Path, schedule: str, pixels: str = "always") -> float:
    """Return the wall time of a run."""
    return ledger(folder, schedule, pixels, is_timed=True).total


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    aligned = partial(seconds, folder, "aligned")
    eager = partial(seconds, folder, "eager")
    wanted = partial(seconds, folder, "aligned", "wanted")
    return [
        Case(
            "chunks-calls",
            "policy calls a vector step, chunks of 8",
            "value",
            "",
            partial(calls, folder),
            None,
            0.14,
            0.125,
        ),
        Case(
            "chunks-idle", "share of lanes that stand still", "value", "", partial(idle, folder), None, 0.05, 0.045
        ),
        Case("chunks-wall", "aligned / eager, an 80 ms call", "time", "s", aligned, eager, 0.55, 0.5),
        Case("chunks-pixels", "frames when wanted / always", "time", "s", wanted, aligned, 0.75, 0.65),
    ]


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_chunks"]))
