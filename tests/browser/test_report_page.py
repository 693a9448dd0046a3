"""The page of a run in a browser: what is drawn, sorted, filtered, opened and played, and what it asks for."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import MISSING, Opened, started
from cli_toys import errored, row
from pages_toys import EVIL, evil_folder, run_folder
from stored import rows

from rlmesh_cli.exits import Exit
from rlmesh_cli.report_command import ReportRequest, run
from rlmesh_cli.reports.video import Video

pytestmark = [pytest.mark.real, pytest.mark.skipif(bool(MISSING), reason=MISSING)]
_OWN = ("data:", "blob:")
MARK = "getComputedStyle(document.querySelector('#plot-by-seed .scatterlayer .point')).fill"
BLUE = "rgb(11, 102, 176)"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as browser:
        yield browser


@pytest.fixture
def look(browser) -> Iterator[Any]:
    contexts = []

    def opened(file: Path, waits_for: str = "html.drawn", **options: Any) -> Opened:
        contexts.append(browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}))
        return Opened(contexts[-1].new_page(), file, waits_for)

    yield opened
    for context in contexts:
        context.close()


def film(file: Path, frames: int, size: tuple[int, int] = (64, 96)) -> None:
    """Write a video of so many frames, twenty a second."""
    video = Video(20.0)
    for at in range(frames):
        frame = np.full((*size, 3), 240, np.uint8)
        frame[:, at * size[1] // frames :] = 40
        video.add(frame)
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(video.finish())


@pytest.fixture
def filmed(tmp_path) -> Path:
    """Return the page of eight episodes, the third of which was filmed twice."""
    made = [
        row(
            at,
            seed=at + 10,
            success=at % 3 == 0,
            return_=float((at * 5) % 8),
            length=at + 3,
            start_hash=f"{at:016x}",
            trace_hash=f"{at:016x}",
        )
        for at in range(8)
    ]
    folder = run_folder(tmp_path / "run", made)
    for name in ("ep-000003.mp4", "ep-000003.camera.mp4"):
        film(folder / "videos" / name, 20)
    return written_page(folder)


def written_page(*folders: Path) -> Path:
    assert run(ReportRequest(runs=tuple(map(str, folders)))) == Exit.DONE
    return folders[-1] / "report.html"


def test_plots_are_drawn_and_nothing_is_asked_for(look, filmed):
    opened = look(filmed)
    plots = opened.page.query_selector_all(".plot")
    assert len(plots) >= 5
    assert all(plot.query_selector("svg.main-svg") is not None for plot in plots)
    assert len(opened.page.query_selector_all("#plot-by-seed .scatterlayer .point")) == 8
    assert opened.is_quiet()


def test_table_is_sorted_by_a_header_and_filtered_by_typing(look, filmed):
    opened = look(filmed)
    page = opened.page
    page.click("#episode-table th:nth-child(3) button")
    assert opened.column("episode-table", 3) == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert page.get_attribute("#episode-table th:nth-child(3)", "aria-sort") == "ascending"
    page.click("#episode-table th:nth-child(3) button")
    assert opened.column("episode-table", 3)[0] == "7"
    page.select_option(".outcome", "success")
    assert sorted(opened.column("episode-table", 1)) == ["0", "3", "6"]
    page.select_option(".outcome", "")
    page.fill(".filter", "2 videos")
    assert opened.column("episode-table", 1) == ["2"]
    assert page.inner_text(".count") == "1 of 8 rows"
    assert opened.is_quiet()


def test_what_has_no_number_stays_last_whichever_way_is_sorted(look, tmp_path):
    values = [2.0, math.nan, -3.0, math.inf, 10.0]
    made = [row(at, seed=at, return_=value, start_hash=f"{at:016x}") for at, value in enumerate(values)]
    opened = look(written_page(run_folder(tmp_path / "run", made)))
    head = "#episode-table th:nth-child(3) button"
    opened.page.click(head)
    assert opened.column("episode-table", 3) == ["-3", "2", "10", "inf", "nan"]
    opened.page.click(head)
    assert opened.column("episode-table", 3) == ["inf", "10", "2", "-3", "nan"]
    assert opened.is_quiet()


def test_filter_looks_into_each_cell_alone(look, filmed):
    """Episode 2 and seed 12 beside one another are no 212; brackets and stars are letters."""
    opened = look(filmed)
    for text, shown in (("212", []), ("12", ["2"]), (".*", []), ("[", []), ("", list("01234567"))):
        opened.page.fill(".filter", text)
        assert opened.column("episode-table", 1) == shown, text
    assert opened.is_quiet()


def test_bar_of_fractions_says_its_ends_in_short(look, tmp_path):
    made = [row(at, seed=at, return_=value, start_hash=f"{at:016x}") for at, value in enumerate([0.1, 0.3, 0.5])]
    opened = look(written_page(run_folder(tmp_path / "run", made)))
    page = opened.page
    page.locator("#plot-returns").scroll_into_view_if_needed()
    bars = page.locator("#plot-returns .barlayer .point path")
    boxes = [box for bar in bars.all() if (box := bar.bounding_box()) and box["height"] > 9]
    assert len(boxes) == 3
    page.mouse.click(boxes[1]["x"] + boxes[1]["width"] / 2, boxes[1]["y"] + boxes[1]["height"] / 2)
    page.wait_for_selector(".range:not([hidden])")
    assert opened.column("episode-table", 3) == ["0.30"]
    assert page.inner_text(".range").startswith("return 0.3 to below 0.32")
    assert opened.is_quiet()


def test_colour_of_a_bar_chooses_the_episodes_of_that_outcome(look, tmp_path):
    ends = [True, False, True, True, False, True]
    made = [row(at, seed=at, success=end, return_=1.0, start_hash=f"{at:016x}") for at, end in enumerate(ends)]
    opened = look(written_page(run_folder(tmp_path / "run", made)))
    page = opened.page

    def click(colour: int) -> None:
        page.locator("#plot-returns").scroll_into_view_if_needed()
        box = page.locator("#plot-returns .barlayer .point path").nth(colour).bounding_box()
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_selector(".range:not([hidden])")

    click(1)
    assert opened.column("episode-table", 1) == ["1", "4"]
    assert page.input_value(".outcome") == "failure"
    click(0)
    assert opened.column("episode-table", 1) == ["0", "2", "3", "5"]
    page.click(".range")
    assert len(opened.column("episode-table", 1)) == 6
    assert page.input_value(".outcome") == ""
    assert opened.is_quiet()


def test_table_is_read_and_opened_with_the_keyboard_alone(look, filmed):
    page = look(filmed).page
    page.focus("#row-e2 a.open")
    page.keyboard.press("Enter")
    assert page.inner_text("#details-title") == "Episode 2, seed 12"
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#details-title") == "Episode 3, seed 13"
    page.keyboard.press("Escape")
    assert not page.is_visible("#details")
    assert page.evaluate("document.activeElement.closest('tr').id") == "row-e2"


def test_point_that_is_clicked_shows_its_episode(look, filmed):
    opened = look(filmed)
    page = opened.page
    page.locator("#plot-by-seed").scroll_into_view_if_needed()
    # Successes are drawn first: 0, 3 and 6.
    box = page.locator("#plot-by-seed .scatterlayer .point").nth(1).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#details[open]")
    assert page.inner_text("#details-title") == "Episode 3, seed 13"
    assert "ep-000004" in page.inner_text("#details")
    assert opened.is_quiet()


def test_square_that_is_clicked_shows_its_episode_and_a_bar_its_rows(look, filmed):
    opened = look(filmed)
    page = opened.page
    page.locator("#plot-strip").scroll_into_view_if_needed()
    box = page.locator("#plot-strip .heatmaplayer image").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 2.5 / 8, box["y"] + box["height"] / 2)
    page.wait_for_selector("#details[open]")
    assert page.inner_text("#details-title") == "Episode 2, seed 12"
    page.click("#details .close")
    page.locator("#plot-lengths").scroll_into_view_if_needed()
    box = page.locator("#plot-lengths .barlayer .point").last.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector(".range:not([hidden])")
    shown = opened.column("episode-table", 4)
    assert 0 < len(shown) < 8
    page.click(".range")
    assert len(opened.column("episode-table", 4)) == 8
    assert opened.is_quiet()


@pytest.mark.parametrize("is_embedded", [True, False])
def test_videos_of_an_episode_play(is_embedded, look, filmed, monkeypatch):
    if not is_embedded:
        monkeypatch.setattr("rlmesh_cli.pages.clips.EMBEDDED", 0)
        written_page(filmed.parent)
    opened = look(filmed)
    page = opened.page
    page.click("#row-e2 a.open")
    assert page.locator("#details video").count() == 2
    for place in range(2):
        video = page.locator("#details video").nth(place)
        video.evaluate("video => video.play()")
        page.wait_for_function(
            "video => video.readyState >= 2 && video.currentTime > 0.2", arg=video.element_handle(), timeout=15000
        )
        assert abs(video.evaluate("video => video.duration") - 1.0) < 0.11
    if is_embedded:
        assert opened.is_quiet()
    else:
        assert opened.said == []
        assert {os.path.basename(url) for url in opened.asked if not url.startswith(_OWN)} == {
            "report.html",
            "ep-000003.mp4",
            "ep-000003.camera.mp4",
        }


def test_dark_and_light_colour_page_and_plots(look, filmed):
    seen = {}
    for scheme in ("light", "dark"):
        page = look(filmed, color_scheme=scheme).page
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        mark = page.locator("#plot-by-seed .scatterlayer .point").first
        seen[scheme] = (paper, mark.evaluate("node => getComputedStyle(node).fill"))
    assert seen == {
        "light": ("rgb(255, 255, 255)", "rgb(11, 102, 176)"),
        "dark": ("rgb(20, 23, 27)", "rgb(92, 179, 240)"),
    }
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"() => {MARK} === '{BLUE}'")


def test_a_phone_scrolls_tables_and_not_the_page(look, filmed, tmp_path):
    evil = written_page(evil_folder(tmp_path / "evil"))
    for file in (filmed, evil):
        opened = look(file, viewport={"width": 360, "height": 740})
        width = opened.page.evaluate("document.documentElement.scrollWidth")
        assert width == 360
        opened.page.click("tr[data-entry] a.open")
        assert opened.page.evaluate("document.documentElement.scrollWidth") == 360
        assert opened.page.evaluate("document.querySelector('#details').scrollWidth") <= 360
    assert opened.is_quiet()


def test_page_says_all_without_a_script(browser, filmed):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(filmed.as_uri())
    assert "3 of 8" in page.inner_text(".claim")
    assert page.locator("#episode-table tbody tr").count() == 8
    assert not page.is_visible(".controls")
    assert not page.is_visible("#plot-returns")
    assert "need JavaScript" in page.inner_text("main")
    context.close()


def test_names_full_of_markup_are_shown_letter_by_letter(look, tmp_path):
    opened = look(written_page(evil_folder(tmp_path / "evil")))
    page = opened.page
    shown = EVIL.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b")
    assert page.inner_text("h1") == f"{shown} on {shown}"
    page.click("#row-e3 a.open")
    assert f"RuntimeError: {shown}" in page.inner_text("#details")
    assert page.locator("main img, main b img, #details img, .plot img").count() == 0
    label = page.locator("#plot-actuators .ytick text").first
    assert label.evaluate("node => node.textContent").startswith("<b>bold</b>")
    assert label.locator("tspan, a").count() == 0
    assert opened.is_quiet()


def test_two_runs_show_a_pair(look, tmp_path):
    base = run_folder(tmp_path / "base", rows([True, True, False, False]))
    new = run_folder(tmp_path / "new", rows([True, False, True, False]))
    film(base / "videos" / "ep-000002.mp4", 5)
    film(new / "videos" / "ep-000002.mp4", 5)
    opened = look(written_page(base, new))
    page = opened.page
    assert opened.column("flip-table", 1) == ["1", "2"]
    page.locator("#plot-differences").scroll_into_view_if_needed()
    page.click("#row-p1 a.open")
    assert page.inner_text("#details-title") == "Seed 1: BASE alone succeeded"
    assert page.locator("#details video").count() == 2
    assert page.locator("#details h3").all_inner_texts() == ["BASE, episode 1", "NEW, episode 1"]
    assert opened.is_quiet()


@pytest.mark.parametrize("width", [360, 1280])
def test_legend_of_many_kinds_leaves_room_for_the_squares(width, look, tmp_path):
    values: list[list[bool | None]] = [[True, True, False, False, None], [True, False, True, False, None]]
    folders = []
    for name, made in zip(("base", "new"), map(rows, values), strict=True):
        folders.append(run_folder(tmp_path / name, [*made, errored(5, seed=5, start_hash="5" * 16)]))
    opened = look(written_page(*folders), viewport={"width": width, "height": 900})
    page = opened.page
    assert page.locator("#plot-flips .legend .traces").count() == 6
    squares = page.locator("#plot-flips .heatmaplayer image").bounding_box()
    axis = page.locator("#plot-flips .xtitle").bounding_box()
    legend = page.locator("#plot-flips .legend").bounding_box()
    assert squares["height"] > 12
    assert legend["y"] >= axis["y"] + axis["height"] - 2
    assert page.locator("#plot-flips .legend .scrollbar").bounding_box()["height"] == 0
    assert opened.is_quiet()


def test_several_runs_stand_beside_one_another(look, tmp_path):
    folders = [run_folder(tmp_path / f"run{at}", rows([True] * at + [False] * (5 - at))) for at in range(3)]
    opened = look(written_page(*folders))
    page = opened.page
    assert opened.column("run-table", 4)[:3] == ["0.0 %", "20.0 %", "40.0 %"]
    assert len(page.query_selector_all("#plot-rates .scatterlayer .point")) == 3
    page.click("#run-2 details:has(#episodes-1) > summary")
    page.click("#row-r1-0 a.open")
    assert page.inner_text("#details-title") == "Episode 0, seed 0"
    assert opened.is_quiet()


def test_ten_thousand_episodes_stay_usable(look, tmp_path):
    opened = look(written_page(run_folder(tmp_path / "many", rows([True, False] * 5000))))
    page = opened.page
    assert "Of 10,000 episodes 2,000 are listed" in page.inner_text("#episodes")
    page.fill(".filter", "1234")
    assert page.inner_text(".count").endswith("of 2000 rows")
    assert opened.is_quiet()


def test_print_is_light_and_has_all_rows(look, filmed):
    opened = look(filmed, color_scheme="dark")
    page = opened.page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.box')).maxHeight") == "none"
    assert not page.is_visible("nav")
    page.wait_for_function(f"() => {MARK} === '{BLUE}'")
    assert opened.is_quiet()


def test_print_opens_what_is_folded_and_folds_that_alone(look, tmp_path):
    """Three runs that errored have nothing to plot; one part was opened by hand."""
    folders = [run_folder(tmp_path / f"run{at}", [errored(0)]) for at in range(3)]
    opened = look(written_page(*folders), waits_for="#run-3")
    page = opened.page
    parts = page.locator("main details")
    count = parts.count()
    page.click("#run-1 details:first-of-type > summary")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("main details[open]").count() == count
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("main details[open]").count() == 1
    assert opened.is_quiet()
