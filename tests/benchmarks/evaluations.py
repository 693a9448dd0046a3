"""Evaluations: whole runs of the harness, timed from inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rlmesh_cli.evaluate import evaluate
from rlmesh_cli.progress import SilentWatcher
from rlmesh_cli.schema import EnvRoute, PolicyRoute, Route
from rlmesh_cli.signals import StopOnSignal


def evaluated(policies: Path, name: str, *, env: EnvRoute, **options: Any) -> tuple[int, float]:
    """Return lane-steps and seconds of a run's loop, its first resets and its records included.

    policies: a policy file; runs are written beside it. name: of a policy in it. options: further fields of the
        route.
    """
    route = Route(env=env, policy=PolicyRoute(source=f"{policies}:{name}"), **options)
    run = evaluate(route, out=policies.parent / "runs", watcher=SilentWatcher(), stopper=StopOnSignal(), source={})
    return run.tally.steps, run.seconds
