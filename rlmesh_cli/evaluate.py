"""The wiring of one evaluation: stage, store, loop and judgement."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from .bars import Bars
from .episodes import plan_episodes
from .evaluation import Evaluation, RunInterruptedError
from .gates import check_bounds, parse_gate
from .guests import seeded_globals
from .provenance import GitState
from .run_record import RunRecord
from .schema import Route
from .session import Session
from .stage import staged
from .watching import Stopper, Watcher

if TYPE_CHECKING:
    from .recording.keeper import Keeper
    from .resuming import Resumption
    from .shards.crew import Crew


def evaluate(
    route: Route,
    *,
    out: Path,
    watcher: Watcher,
    stopper: Stopper,
    source: dict[str, Any],
    resumption: Resumption | None = None,
    trusts_entrypoints: bool = False,
    verified: int = 0,
    is_probed: bool = True,
    is_forced: bool = False,
) -> Evaluation:
    """Play a route's episodes and write the run.

    out: folder that holds runs. source: `argv`, `route_file` and its hash, for the record.
    resumption: which run is gone on with, if one is.
    trusts_entrypoints: whether functions that documents only name are imported and run.
    verified: how many episodes are played again on one lane, and compared.
    is_probed: whether a policy that lanes are to share is tested first; is_forced: and run whatever is found.

    Raises HarnessError for whatever shows before the first policy call went well, when no folder is made yet,
    and RunInterruptedError where the end was not waited for.
    """
    gates = tuple(parse_gate(text) for text in route.gates)
    check_bounds(gates, route.gate_on)
    file = source.get("route_file")
    folders = (Path(file).parent, out) if file else (out,)
    bars = Bars(route, gates, plan_episodes(route.episode_seeds), folders)
    if route.baseline is not None and bars.baseline is not None:
        # By its place: a name such as `latest` may mean another run when this one is gone on with.
        found = msgspec.structs.replace(route.baseline, run=str(bars.baseline.run.folder.resolve()))
        route = msgspec.structs.replace(route, baseline=found)
    keeper: Keeper | None = None
    if route.record or route.is_filmed:
        from .recording.studio import keeper_of, settled  # noqa: PLC0415 - few runs are recorded

        route = settled(route, folders)
        keeper = keeper_of(route, folders)
    session: Session | None = None
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(seeded_globals(route.episode_seeds[0]))
            crew = _crew(route, stack, source=source, trusts_entrypoints=trusts_entrypoints)
            stage = stack.enter_context(
                staged(
                    route,
                    source=source,
                    trusts_entrypoints=trusts_entrypoints,
                    is_probed=is_probed,
                    is_forced=is_forced,
                    crew_lanes=None if crew is None else crew.count_lanes(route),
                    is_recorded=True,
                )
            )
            if crew is not None:
                crew.check(stage)
            policy_file = stage.policy.file
            git = GitState(policy_file.parent if policy_file is not None else Path.cwd())
            stack.callback(git.close)
            record = RunRecord(stage, source=source, git=git)
            session = Session(
                stage,
                record,
                bars=bars,
                out=out,
                resumption=resumption,
                verified=verified,
                crew=crew,
                keeper=keeper,
                trusts_entrypoints=trusts_entrypoints,
            )
            return session.play(watcher, stopper)
    except KeyboardInterrupt as error:  # while policies and environments were closed
        if session is None or session.folder is None:
            raise
        raise RunInterruptedError(session.folder) from error


def _crew(
    route: Route, stack: contextlib.ExitStack, *, source: dict[str, Any], trusts_entrypoints: bool
) -> Crew | None:
    """Start the workers of a route that wants some, before anything is loaded that they would inherit."""
    if route.workers == 1 and route.cluster is None:
        return None
    from .shards.crew import recruited  # noqa: PLC0415 - most runs are played in one process

    return stack.enter_context(recruited(route, source=source, trusts_entrypoints=trusts_entrypoints))
