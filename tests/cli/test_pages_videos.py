"""Videos and steps beside a page: embedded, linked, or left alone."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from cli_toys import row
from pages_toys import data_of, figures_of, page_of, run_folder
from stored import rows

from rlmesh_cli.pages import clips
from rlmesh_cli.pages.making import run_html
from rlmesh_cli.pages.opened import opened
from rlmesh_cli.run_reader import StoredRun, read_run


@pytest.fixture
def filmed(tmp_path) -> Path:
    folder = run_folder(tmp_path / "runs" / "a run", rows([True, False]))
    (folder / "videos").mkdir()
    for name in ("ep-000001.mp4", "ep-000001.front #1.mp4", "ep-000002.mp4", "notes.txt", "ep-000009.mp4"):
        (folder / "videos" / name).write_bytes(name.encode())
    (folder / "videos" / "ep-000002.camera.mp4").touch()  # the encoder had no time
    (folder / "steps").mkdir()
    (folder / "steps" / "ep-000002.parquet").write_bytes(b"PAR1")
    return folder


def test_small_videos_are_part_of_the_page(filmed):
    page = run_html(read_run(filmed), filmed).decode()
    sources = re.findall(r'<video id="clip-\d+"[^>]* src="([^"]*)"', page)
    assert sources == [
        "data:video/mp4;base64,ZXAtMDAwMDAxLm1wNA==",
        "data:video/mp4;base64,ZXAtMDAwMDAxLmZyb250ICMxLm1wNA==",
        "data:video/mp4;base64,ZXAtMDAwMDAyLm1wNA==",
    ]
    sides = data_of(page)["entries"]["e0"]["sides"]
    assert [label for _, label in sides[0]["clips"]] == ["rendered", "what the model saw: front #1"]
    assert "There is 1 more video of episodes that are not listed." in page


def test_large_videos_are_linked_from_where_the_page_is(filmed, monkeypatch, tmp_path):
    monkeypatch.setattr(clips, "EMBEDDED", 10)
    page = run_html(read_run(filmed), filmed).decode()
    assert 'src="videos/ep-000001.front%20%231.mp4"' in page
    assert "are linked, not part of this page" in page
    elsewhere = run_html(read_run(filmed), tmp_path).decode()
    assert 'src="runs/a%20run/videos/ep-000001.mp4"' in elsewhere


def test_many_videos_are_links_until_one_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(clips, "EMBEDDED", 10)
    folder = run_folder(tmp_path / "run", rows([True] * 61))
    (folder / "videos").mkdir()
    for at in range(61):
        (folder / "videos" / f"ep-{at + 1:06d}.mp4").write_bytes(b"video")
    page = run_html(read_run(folder), folder).decode()
    assert page.count('href="videos/ep-') == 61
    assert '<video id="clip' not in page
    assert data_of(page)["entries"]["e60"]["sides"][0]["clips"] == [["clip-60", "rendered"]]


def test_junk_beside_videos_hides_none(filmed):
    folder = filmed / "videos"
    (folder / "ep-000003.mp4").symlink_to("ep-000003.mp4")  # leads to itself
    (folder / "gone.mp4").symlink_to("nowhere")
    (folder / "ep-000004.mp4").mkdir()
    (filmed / "steps" / "ep-000001.parquet").touch()
    footage = opened(read_run(filmed)).footage
    assert {episode: len(videos) for episode, videos in footage.videos.items()} == {
        "ep-000001": 2,
        "ep-000002": 1,
        "ep-000009": 1,
    }
    assert list(footage.steps) == ["ep-000002"]


def test_run_that_a_link_leads_to_links_to_what_is_beside_the_page(filmed, tmp_path, monkeypatch):
    monkeypatch.setattr(clips, "EMBEDDED", 10)
    link = tmp_path / "link"
    link.symlink_to(filmed)
    page = run_html(read_run(link), filmed).decode()
    assert 'src="videos/ep-000001.mp4"' in page


def test_run_that_one_stands_in_has_its_name(tmp_path, monkeypatch):
    folder = run_folder(tmp_path / "a run", rows([True]))
    monkeypatch.chdir(folder)
    assert page_of(Path(".")).lead.startswith("a run · ")


def test_folder_whose_name_is_no_text_is_linked_byte_by_byte(filmed, tmp_path, monkeypatch):
    monkeypatch.setattr(clips, "EMBEDDED", 0)
    odd = tmp_path / os.fsdecode(b"run-\xff")
    filmed.rename(odd)
    page = run_html(read_run(odd), tmp_path).decode()
    assert 'src="run-%FF/videos/ep-000001.mp4"' in page
    assert "run-\\udcff" in page


def test_seeds_that_no_axis_can_tell_apart_are_numbered(tmp_path):
    made = [row(at, seed=2**60 + at, start_hash=f"{at:016x}") for at in range(3)]
    figure = figures_of(page_of(run_folder(tmp_path / "run", made)))["by-seed"]
    assert [trace["x"] for trace in figure.spec["data"]] == [[0, 1, 2]]
    assert f"seed {2**60 + 1}" in figure.spec["data"][0]["hovertext"][1]


def test_steps_are_linked_and_not_read(filmed):
    page = run_html(read_run(filmed), filmed).decode()
    entries = data_of(page)["entries"]
    assert entries["e1"]["sides"][0]["links"] == [["steps of ep-000002 (Parquet)", "steps/ep-000002.parquet"]]
    assert entries["e0"]["sides"][0]["links"] == []
    assert "Steps of 1 episode are linked from their details." in page


def test_a_linked_video_of_a_run_from_elsewhere_draws_no_file_in(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    run = tmp_path / "run"
    (run / "videos").mkdir(parents=True)
    (run / "videos" / "ep-000001.mp4").symlink_to(secret)
    (run / "videos" / "ep-000002.mp4").write_bytes(b"seen")
    footage = clips.footage_of(StoredRun(folder=run, record={"seeds": []}, rows=[]))
    assert list(footage.videos) == ["ep-000002"]
