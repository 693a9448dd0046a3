"""What `rlmesh replay` does between its arguments and its exit code."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rlmesh_adapters.errors import HarnessError, RouteError, nearest
from rlmesh_envs.filming import prefer_offscreen

from .answering import answer_with, write_json, write_out
from .encores import Encore, find_row
from .exits import Exit
from .rendering import MODES, Camera, check_display, check_render_mode
from .replaying import Replay, replay_episode, replay_record
from .reports.writing import make_folder, open_target, write_report
from .run_reader import find_run, read_run
from .stage import Stage
from .streams import user_output_to_stderr
from .telling import say


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `rlmesh replay`, as typed.

    run, episode: which one. out: folder that holds runs. render: `human`, `video` or None. video: the file.
    """

    run: str
    episode: str
    out: Path = Path("runs")
    render: str | None = None
    video: Path | None = None
    as_json: bool = False
    trusts_entrypoints: bool = False


def run(request: ReplayRequest) -> Exit:
    """Replay, show, and return the exit code; a user's mistake is one message, a fault of ours a traceback."""
    return answer_with(lambda: _answer(request))


def _answer(request: ReplayRequest) -> Exit:
    _check(request)
    if request.render == "video":
        # Libraries that draw read the setting when they are imported, which the policy may do.
        prefer_offscreen()
    stored = read_run(find_run(request.run, request.out.absolute()))
    row = find_row(stored, request.episode)
    with user_output_to_stderr():
        encore = Encore(stored, row, trusts_entrypoints=request.trusts_entrypoints)
        if encore.change_of_policy is not None:
            say(f"rlmesh: {encore.change_of_policy}; what is played is the policy as it is now")
        replay, video = _play(encore, request)
    _show(replay, video, as_json=request.as_json)
    return Exit.DONE if replay.is_identical else Exit.MISSED


def _check(request: ReplayRequest) -> None:
    if request.render is not None and request.render not in MODES:
        near = nearest(request.render, MODES)
        raise RouteError(
            f"`{request.render}` is no way to render",
            where="--render",
            mend=f"did you mean {near[0]}?" if near else f"use {' or '.join(MODES)}",
        )
    if request.video is not None and request.render != "video":
        raise RouteError(
            f"a video {request.video} is wanted, but nothing is rendered for it",
            where="--video",
            mend="add --render video",
        )
    if request.render == "human":
        check_display()


def _play(encore: Encore, request: ReplayRequest) -> tuple[Replay, Path | None]:
    if request.render is None:
        return replay_episode(encore), None
    mode = MODES[request.render]
    if request.render == "video":
        return _film(encore, request, mode)
    check_render_mode(encore.route, mode)
    return replay_episode(encore, render_mode=mode), None


def _film(encore: Encore, request: ReplayRequest, mode: str) -> tuple[Replay, Path]:
    """Replay an episode and write its frames; all that could keep them from being written is looked at first."""
    from .reports.video import USUAL_FPS, Video, check_video  # noqa: PLC0415 - of an extra

    folder = encore.stored.folder / "videos"
    path = request.video or folder / f"{encore.episode.id}.mp4"
    check_video(path, "--video" if request.video is not None else "--render video")
    fps = check_render_mode(encore.route, mode) or USUAL_FPS
    if request.video is None:
        make_folder(folder, "--render video")
    target = open_target(path, "--video")
    if target.way != "whole":
        raise HarnessError(f"{path} is no plain file", where="--video", mend="name a file, such as episode.mp4")
    film = Video(fps, path.suffix)

    def watch(stage: Stage) -> Camera:
        lanes = stage.lanes
        return Camera(lambda: lanes.envs[0], film)  # type: ignore[union-attr]

    replay = replay_episode(encore, render_mode=mode, watch=watch)
    if not film.frames:
        raise HarnessError(
            f"{encore.episode.id} has no frame: its reset failed, as in the run",
            where="--render video",
            mend="replay it without --render",
        )
    write_report(target, film.finish())
    return replay, target.path


def _show(replay: Replay, video: Path | None, *, as_json: bool) -> None:
    if as_json:
        record = replay_record(replay, None if video is None else str(video))
        write_json(record)
        return
    from .replay_tables import show_replay  # noqa: PLC0415 - rich is not needed for --json

    write_out(lambda: show_replay(replay, video))
