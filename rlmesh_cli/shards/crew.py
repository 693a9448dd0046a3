"""Crew: the workers of one run, from before its policy is loaded to their last word."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rlmesh_adapters.errors import RouteError
from rlmesh_cli.contracting import env_request
from rlmesh_cli.episodes import Episode
from rlmesh_cli.schema import Route
from rlmesh_cli.sources import at_file, split_source
from rlmesh_cli.stage import Stage
from rlmesh_cli.tallies import Tally
from rlmesh_cli.traces import Column
from rlmesh_envs.registry import spec_of

from .crew_rollout import CrewRollout
from .executor import Executor
from .merging import note_crew
from .messages import Task
from .processes import ProcessExecutor
from .threads import core_count

if TYPE_CHECKING:
    from rlmesh_cli.recording.recorder import Deliver


class Crew:
    """Workers that wait for a run.

    executor: where they live. workers: W. trusts_entrypoints: see evaluate.
    """

    def __init__(self, executor: Executor, *, workers: int, trusts_entrypoints: bool) -> None:
        self._trusts_entrypoints = trusts_entrypoints
        self._executor, self._workers = executor, workers
        if executor.is_early:
            self._start(workers)

    def _start(self, workers: int) -> None:
        for worker in range(workers):
            self._executor.start(worker)

    def rollout(
        self,
        stage: Stage,
        episodes: Sequence[Episode],
        *,
        source: dict[str, Any],
        traced: frozenset[int],
        on_answer: Callable[[], None],
        on_tick: Callable[[Tally], None],
        on_trace: Callable[[int, Sequence[Column]], None] | None,
        deliver: Deliver | None = None,
    ) -> CrewRollout:
        """Tell the workers what they play, wait until they are ready, and return what plays it.

        stage: where the policy was looked at; it is not needed any more. Callbacks as of Rollout.
        traced: indices of the episodes that `on_trace` wants.

        Raises HarnessError where a worker cannot build policy or environments, or nothing can be sent to it.
        """
        workers = max(1, min(self._workers, len(episodes)))
        # A lane without an episode would only cost its environment.
        lanes = max(1, min(stage.route.num_envs, -(-len(episodes) // workers)))
        executor = self._executor
        if not executor.is_early:
            self._start(workers)
        note_crew(
            stage.engine.advisories,
            stage.first,
            workers=workers,
            lanes=lanes,
            threads=executor.threads,
            cores=core_count() if executor.is_early else None,
        )
        stage.num_lanes, stage.workers = lanes, workers
        route = msgspec.structs.replace(_placed(stage), num_envs=lanes)
        task = Task(
            route=route,
            source=source,
            first_lane=0,
            sharing=stage.contract.sharing,
            is_cleared=stage.contract.is_cleared,
            has_answered=False,
            trusts_entrypoints=self._trusts_entrypoints,
            traced=traced,
            threads=executor.threads,
            spec=spec_of(env_request(route)),
        )
        rollout = CrewRollout(
            executor,
            task,
            stage,
            episodes,
            workers=workers,
            on_answer=on_answer,
            on_tick=on_tick,
            on_trace=on_trace,
            deliver=deliver,
        )
        rollout.muster()
        return rollout

    def check(self, stage: Stage) -> None:
        """Raise RouteError where episodes cannot be shared out."""
        if not stage.env.is_seeded:
            raise RouteError(
                f"single episodes cannot be seeded ({stage.env.autoreset} autoreset): which worker plays an "
                "episode would decide what comes of it",
                where="workers",
                mend="use --workers 1, or --vectorization sync or async without --autoreset",
            )

    def count_lanes(self, route: Route) -> int:
        """Return how many lanes all workers of a route have."""
        return self._workers * route.num_envs


@contextlib.contextmanager
def recruited(route: Route, *, source: dict[str, Any], trusts_entrypoints: bool) -> Iterator[Crew]:
    """Start the workers of a route, and end them; source: see evaluate.

    Raises HarnessError where they cannot be started.
    """
    workers = min(route.workers, route.episodes)
    executor: Executor
    if route.cluster is None:
        threads = max(1, core_count() // workers)
        executor = ProcessExecutor(start_method=route.env.start_method, threads=threads)
    else:
        from .ray_executor import RayExecutor  # noqa: PLC0415 - most runs stay on one machine
        from .shipping import pack  # noqa: PLC0415

        shipment = pack(route, source)
        executor = RayExecutor(route.cluster, workers=workers, resources=route.ray_resources, shipment=shipment)
    with contextlib.closing(executor):
        yield Crew(executor, workers=workers, trusts_entrypoints=trusts_entrypoints)


def _placed(stage: Stage) -> Route:
    """Return the route with its policy's file by its full path, wherever the command was typed."""
    route, file = stage.route, stage.policy.file
    target, _ = split_source(route.policy.source)
    if file is None or not target.endswith(".py"):
        return route
    policy = msgspec.structs.replace(route.policy, source=at_file(route.policy.source, str(file)))
    return msgspec.structs.replace(route, policy=policy)
