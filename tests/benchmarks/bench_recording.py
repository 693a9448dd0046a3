"""What it costs to record: steps against none, and videos against none.

    python -m tests.benchmarks.bench_recording

Steps: eight lanes of CartPole that balance for 500 steps, files included. Videos: two lanes of a toy that sleeps
for a millisecond a step and whose frames of 96 by 96 cost nothing to render: what is left is the copy, the codec
and the file.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import film_toys
from running import policy

from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.signals import StopOnSignal

from .measuring import Case, Skip

LANES, EPISODES = 8, 16


def vector_step(folder: Path, route: Route) -> float:
    """Return the microseconds of a vector step of a run."""
    run = evaluate(route, out=folder, watcher=SilentWatcher(), stopper=StopOnSignal(), source={}, is_probed=False)
    return run.seconds / run.tally.vector_steps * 1e6


def balancing(folder: Path, *record: str) -> float:
    """Return the microseconds of a vector step of eight CartPoles."""
    return vector_step(
        folder,
        Route(
            env=EnvRoute(id="CartPole-v1"),
            policy=PolicyRoute(source=policy("balance")),
            num_envs=LANES,
            episodes=EPISODES,
            record=record,
        ),
    )


def filmed(folder: Path, video: str | None) -> float:
    """Return the microseconds of a vector step of two toys."""
    return vector_step(
        folder,
        Route(
            env=EnvRoute(id=f"{film_toys.__name__}:Large", kwargs={"length": 100}),
            policy=PolicyRoute(source="zero"),
            num_envs=2,
            episodes=8,
            video=video,
        ),
    )


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    steps = "steps recorded / not, 8 lanes of CartPole"
    frames = "filmed / not, 2 lanes of 96 x 96, 1 ms a step"
    plain = partial(balancing, folder)
    found: list[Case | Skip] = []
    if find_spec("pyarrow") is None:
        found.append(Skip("record-steps", steps, "pyarrow is not installed"))
    else:
        found.append(
            Case("record-steps", steps, "time", "us", partial(balancing, folder, "steps"), plain, 1.5, 1.2)
        )
    if find_spec("av") is None:
        found.append(Skip("record-video", frames, "PyAV is not installed"))
    else:
        ours, theirs = partial(filmed, folder, "all"), partial(filmed, folder, None)
        found.append(Case("record-video", frames, "time", "us", ours, theirs, 1.5, 1.2))
    return found


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_recording"]))
