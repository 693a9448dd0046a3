"""Studio: what a route records, seen to be possible before the first episode, and made ready."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from rlmesh_adapters.batches import BatchLayout
from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_cli.lane_protocols import Lanes
from rlmesh_cli.rendering import check_film
from rlmesh_cli.reports.video import USUAL_FPS, check_encoder
from rlmesh_cli.run_reader import find_in, read_run
from rlmesh_cli.schema import Route
from rlmesh_cli.step_files import StepFiles, check_steps
from rlmesh_envs.filming import FilmRequest, prefer_offscreen
from rlmesh_envs.request import EnvInfo

from .keeper import Keeper
from .recorder import Deliver, Recorder
from .selection import Selection, parse_selection
from .views import views_of

RECORD = "--record"


def film_request(route: Route) -> FilmRequest | None:
    """Return which episodes the environments of a route film, None if it wants no videos.

    Raises HarnessError, before anything is played, where no video or no picture can be made.
    """
    if not route.is_filmed:
        return None
    check_encoder(f"{RECORD} video")
    prefer_offscreen()
    check_film(route, f"{RECORD} video")
    return FilmRequest(_selection(route).seeds(route.episode_seeds))


def keeper_of(route: Route, folders: Sequence[Path]) -> Keeper | None:
    """Return what keeps a route's recordings, None if it records nothing.

    folders: where a run that the route names is looked for.

    Raises HarnessError where a package is missing, or the run of `flips` cannot be read.
    """
    if not (route.record or route.is_filmed):
        return None
    if "steps" in route.record:
        check_steps(f"{RECORD} steps")
    if not route.is_filmed:
        return Keeper(None, route.episode_seeds)
    check_encoder(f"{RECORD} video")
    selection = _selection(route)
    base = read_run(find_in(selection.run, folders)).rows if selection.kind == "flips" else ()
    return Keeper(selection, route.episode_seeds, base, is_open_ended=route.until is not None)


class Played(Protocol):
    """What is recorded; see stage.Stage."""

    route: Route
    name: str
    env: EnvInfo
    engine: AdapterEngine
    contract: RouteContract


def recorder_of(stage: Played, lanes: Lanes, deliver: Deliver) -> Recorder:
    """Return what stands in front of the lanes of a stage that is recorded, and watches its policy's inputs."""
    route = stage.route
    recorder = Recorder(
        lanes,
        layout=BatchLayout(stage.contract.observation),
        fps=(stage.env.render_fps or USUAL_FPS) if route.is_filmed else None,
        views=views_of(stage.engine, stage.name, stage.contract.observation) if route.is_filmed else (),
        write_steps=StepFiles(stage.contract.observation, stage.contract.action, max(route.episode_seeds))
        if "steps" in route.record
        else None,
        advisories=stage.engine.advisories,
        deliver=deliver,
    )
    if route.is_filmed:
        stage.engine.route(stage.name).watch(recorder.see)
    return recorder


def settled(route: Route, folders: Sequence[Path]) -> Route:
    """Return a route that names the run of `flips` by its place; `latest` may mean another one when it goes on."""
    selection = _selection(route)
    if selection.kind != "flips":
        return route
    return msgspec.structs.replace(route, video=f"flips:{find_in(selection.run, folders).resolve()}")


def _selection(route: Route) -> Selection:
    return parse_selection(route.video or "all", "--video")
