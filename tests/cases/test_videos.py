"""What an episode looked like."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from films import decoded
from running import play, unarranged

pytest.importorskip("av")

ARRANGEMENTS = [
    {},
    {"num_envs": 2},
    {"num_envs": 3, "vectorization": "async"},
    {"num_envs": 2, "workers": 2},
    {"num_envs": 2, "workers": 2, "vectorization": "async"},
    {"num_envs": 2, "vectorization": "async", "start_method": "spawn"},
]


@pytest.mark.parametrize("flags", ARRANGEMENTS, ids=str)
def test_frames_are_those_of_the_episode_and_no_other(tmp_path: Path, flags: dict[str, Any]) -> None:
    """K50. Each pixel is t: four frames, 0 to 3, the terminal one among them, at ten a second as the env says."""
    played = play(tmp_path, "zero", "film_toys:Clock", episodes=4, record="video", **flags)
    assert played.code == 0
    videos = sorted((played.folder / "videos").iterdir())
    assert [path.name for path in videos] == [f"{row['episode_id']}.mp4" for row in played.rows]
    for path in videos:
        video = decoded(path)
        assert video.levels == [0, 1, 2, 3]
        assert all((frame == frame[0, 0, 0]).all() for frame in video.frames)
        assert (video.fps, video.codec, video.pixels) == (10.0, "h264", "yuv420p")
    plain = play(tmp_path, "zero", "film_toys:Clock", episodes=4)
    assert unarranged(played.rows) == unarranged(plain.rows)


def test_every_episode_has_a_file_of_its_own(tmp_path: Path) -> None:
    """K51. Equal outcomes, equal seeds: names are those of the rows."""
    played = play(tmp_path, "zero", "film_toys:Clock", seeds="2,2,2,2", num_envs=2, record="video")
    names = {path.name for path in (played.folder / "videos").iterdir()}
    assert names == {f"ep-00000{number}.mp4" for number in (1, 2, 3, 4)}


@pytest.mark.parametrize("flags", [{}, {"vectorization": "async", "num_envs": 2}, {"workers": 2}], ids=str)
def test_an_environment_without_a_picture_is_one_error_before_the_first_episode(
    tmp_path: Path, capsys, monkeypatch, flags: dict[str, Any]
) -> None:
    """K51. The render modes and MUJOCO_GL are named, and nothing is left."""
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    played = play(tmp_path, "zero", "film_toys:Blind", episodes=2, record="video", **flags)
    said = capsys.readouterr().err
    assert (played.code, played.folder) == (2, None)
    assert said.count("rlmesh: ") == 1
    assert "render gave None, not a frame uint8[height, width, 3]" in said
    assert "render_modes are rgb_array; MUJOCO_GL is osmesa" in said


def test_a_set_backend_is_respected_and_an_unset_one_needs_no_display(tmp_path: Path, monkeypatch) -> None:
    """K51."""
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    play(tmp_path, "zero", "film_toys:Clock", episodes=1, record="video")
    assert os.environ["MUJOCO_GL"] == "glfw"
    monkeypatch.delenv("MUJOCO_GL")
    play(tmp_path, "zero", "film_toys:Clock", episodes=1)
    assert "MUJOCO_GL" not in os.environ
    play(tmp_path, "zero", "film_toys:Clock", episodes=1, record="video")
    assert os.environ.pop("MUJOCO_GL") == "egl"
