"""What a page says: its numbers are those of the run, its text is text, and what it leaves out is told."""

from __future__ import annotations

import json
import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import plotly.graph_objects
import pytest
from cli_toys import ROOT, errored, play, row
from hypothesis import example, given
from hypothesis import strategies as st
from pages_toys import EVIL, data_of, evil_folder, run_folder
from stored import golden_copy, rows

from rlmesh_cli.comparing import Judging, compare
from rlmesh_cli.control_results import ControlResult, PairedDifference
from rlmesh_cli.pages import clips
from rlmesh_cli.pages.bins import bins_of, block_size
from rlmesh_cli.pages.facts import Figure, Figures, Meter, Page, Table
from rlmesh_cli.pages.labels import plotted, scripted
from rlmesh_cli.pages.listing import choose
from rlmesh_cli.pages.making import pair_html, run_html, several_html
from rlmesh_cli.pages.pair_page import pair_page
from rlmesh_cli.pages.run_page import control_blocks, opened, run_page
from rlmesh_cli.run_reader import StoredRun, read_run


def page_of(folder: Path) -> Page:
    return run_page(opened(read_run(folder)), folder, made="")


def figures_of(page: Page) -> dict[str, Figure]:
    """Return the plots of a page by their ids."""
    blocks = [block for section in page.sections for block in section.blocks]
    return {figure.id: figure for block in blocks if isinstance(block, Figures) for figure in block.items}


def tables_of(page: Page) -> dict[str, Table]:
    """Return the tables of a page's sections by their ids."""
    blocks = [block for section in page.sections for block in section.blocks]
    return {block.id: block for block in blocks if isinstance(block, Table)}


class Reader(HTMLParser):
    """Reads a page as a browser does, as far as tags and text outside of scripts go."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.handlers: list[str] = []
        self.ids: list[str] = []
        self.text: list[str] = []
        self._script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._script = tag in ("script", "style")
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action", "poster")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_endtag(self, tag):
        self._script = False

    def handle_data(self, data):
        if not self._script:
            self.text.append(data)


# Numbers


def test_numbers_are_those_of_the_summary(tmp_path, capsys):
    """A run that was played; its summary.json is the oracle."""
    code, folder = play(
        tmp_path, "random", "cli_toys:Steps", episodes=12, success="return >= 21", gates=("success_rate >= 0.9",)
    )
    assert code == 1
    assert folder is not None
    told = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    page = page_of(folder)
    interval, returns = told["success"]["interval"], told["returns"]
    assert page.claim == (
        f"{told['success_rate'] * 100:.1f} % of 12 episodes succeeded ({told['success']['successes']} of 12; "
        f"95 % interval {interval['low'] * 100:.1f} to {interval['high'] * 100:.1f} %); "
        f"mean return {returns['mean']:.2f} (95 % interval {returns['interval']['low']:.2f} to "
        f"{returns['interval']['high']:.2f})."
    ).replace(".00", "")
    rate, mean = page.top[0].items
    assert (rate.point, rate.low, rate.high) == (told["success_rate"], interval["low"], interval["high"])
    assert (mean.point, mean.low) == (returns["mean"], returns["interval"]["low"])
    assert (mean.start, mean.end) == (returns["min"], returns["max"])
    assert rate.marks == ((0.9, "gate >= 0.9"),)
    assert page.verdict is not None
    assert (page.verdict.text, page.verdict.severity) == ("bar missed", "bad")
    times = figures_of(page)["times"].spec["data"][0]
    ledger = told["time"]
    parts = ("env_step", "env_reset", "policy", "adapter", "recording", "harness")
    assert times["x"] == [ledger[name] for name in parts]


@pytest.mark.parametrize(
    ("made", "claim"),
    [
        (
            rows([True, True, False, None]),
            "66.7 % of 3 episodes succeeded (2 of 3; 95 % interval 9.4 to 99.2 %); 4 episodes were "
            "played, 1 of them did not report success; mean return 0.50 (95 % interval 0 to 1).",
        ),
        (
            [row(0, return_=2.0), row(1, return_=2.0)],
            "Success was not reported in 2 episodes; mean return 2 over 2 finished episodes, without an interval.",
        ),
        (
            [errored(0), errored(1)],
            "Success was not reported in 2 episodes; 2 episodes errored, without a return.",
        ),
    ],
    ids=["not all reported", "no success", "all errored"],
)
def test_claim_says_what_was_played_and_how_sure_it_is(made, claim, tmp_path):
    assert page_of(run_folder(tmp_path / "run", made)).claim == claim


def test_errored_episodes_stay_in_the_claim(tmp_path):
    made = [*rows([True, True, False]), errored(3)]
    claim = page_of(run_folder(tmp_path / "run", made)).claim
    assert claim.startswith("50.0 % of 4 episodes succeeded (2 of 4;")
    assert claim.endswith("1 episode errored, counted as failed.")


def test_plots_count_every_episode(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(50, 20, 300).round(2).tolist()
    made = [
        row(at, seed=at, success=value > 50, return_=value, length=1 + at % 9, start_hash=f"{at:016x}")
        for at, value in enumerate(values)
    ]
    page = page_of(run_folder(tmp_path / "run", made))
    figures = figures_of(page)
    bars = {trace["name"]: trace for trace in figures["returns"].spec["data"]}
    edges = [low for low, _ in bars["success"]["customdata"]] + [bars["success"]["customdata"][-1][1]]
    for name, chosen in (
        ("success", [value for value in values if value > 50]),
        ("failure", [value for value in values if value <= 50]),
    ):
        assert bars[name]["y"] == np.histogram(chosen, edges)[0].tolist()
    lengths = figures["lengths"].spec["data"]
    assert sum(sum(trace["y"]) for trace in lengths) == 300
    grid = figures["strip"].spec["data"][0]
    keys = [key for line in grid["customdata"] for key in line if key]
    assert keys == [f"e{at}" for at in range(300)]
    cells = [cell for line in grid["z"] for cell in line if cell is not None]
    assert [cell < 1 for cell in cells] == [value > 50 for value in values]
    points = figures["by-seed"].spec["data"]
    assert sorted(y for trace in points for y in trace["y"]) == sorted(values)
    assert figures["by-seed"].spec["layout"]["xaxis"]["title"]["text"] == "seed"


def test_blocks_of_many_episodes_are_those_of_numpy(tmp_path):
    count = 5000
    made = [
        row(at, seed=at, success=at % 3 == 0, return_=float((at * 7919) % 997), start_hash=f"{at:016x}")
        for at in range(count)
    ]
    figures = figures_of(page_of(run_folder(tmp_path / "run", made)))
    rates = figures["strip"].spec["data"][0]
    success = np.array([one.success for one in made]).reshape(100, 50)
    assert rates["y"] == pytest.approx((success.mean(axis=1) * 100).tolist())
    assert rates["customdata"][1] == [50, 100]
    returns = np.array([one.return_ for one in made]).reshape(100, 50)
    bands = figures["by-seed"].spec["data"][0]
    assert bands["y"] == np.median(returns, axis=1).tolist()
    assert (np.add(bands["y"], bands["error_y"]["array"])).tolist() == returns.max(axis=1).tolist()
    assert (np.subtract(bands["y"], bands["error_y"]["arrayminus"])).tolist() == returns.min(axis=1).tolist()


def test_actuators_are_shares_of_what_was_sent(tmp_path):
    use = [{"role": "arm", "values": 200, "clipped": 10, "saturated": 50}, {"role": "idle", "values": 0}]
    figures = figures_of(page_of(run_folder(tmp_path / "run", rows([True]), actuators=use)))
    bars = figures["actuators"].spec["data"][0]
    assert (bars["y"], bars["x"], bars["text"]) == (["arm"], [25.0], ["25.0 %, 5.0 % clipped"])


def test_actuators_with_one_long_beginning_have_a_bar_each(tmp_path):
    """Bars of one label would be drawn over one another."""
    name = "left_arm_end_effector_position"
    use = [
        {"role": f"{name}_{leaf}", "values": 10, "clipped": 0, "saturated": count}
        for leaf, count in zip("xyz", (1, 2, 3), strict=True)
    ]
    figures = figures_of(page_of(run_folder(tmp_path / "run", rows([True]), actuators=use)))
    bars = figures["actuators"].spec["data"][0]
    assert len(set(bars["y"])) == 3
    assert bars["y"][1].startswith("2. left_arm")
    assert bars["x"] == [10.0, 20.0, 30.0]


@pytest.mark.parametrize("count", [1, 7, 130, 700, 2500])
def test_plots_are_as_plotly_takes_them(count, tmp_path):
    made = [row(at, seed=at, success=at % 2 == 0, start_hash=f"{at:016x}") for at in range(count)]
    use = [{"role": "arm", "values": 200, "clipped": 10, "saturated": 50}]
    folders = [run_folder(tmp_path / name, made, actuators=use) for name in ("base", "new")]
    base, new = map(read_run, folders)
    pages = [
        page_of(folders[0]),
        pair_page(opened(base), opened(new), compare(base, new, Judging()), folders[1], divergence=None, made=""),
    ]
    found = [figure for page in pages for figure in figures_of(page).values()]
    assert len(found) >= 7
    for figure in found:
        assert _is_taken(figure.spec)
        for axis in ("xaxis", "yaxis"):
            assert figure.spec["layout"][axis]["title"]["text"], figure.id


def _is_taken(spec: dict) -> bool:
    """Let plotly check names and types; colours have names of ours, so it is given real ones."""
    text = re.sub(r'"@\w+"', '"#123456"', scripted(spec))
    plotly.graph_objects.Figure(json.loads(text))
    return True


# Bins


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=60))
@example([1.5, -1.8e-193])
@example([1e12, 999999999999.9999])
def test_bins_hold_all_values_and_are_few(values):
    bins = bins_of(values)
    assert 1 <= bins.count <= 32
    for value in values:
        low, high = bins.span(bins.of(value))
        assert low - abs(bins.width) * 1e-6 <= value <= high + abs(bins.width) * 1e-6


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_bins_of_any_float_have_no_error(values):
    bins = bins_of(values)
    assert all(0 <= bins.of(value) < bins.count for value in values)
    assert bins.width > 0


@given(st.lists(st.decimals(-50, 50, places=2).map(float), min_size=1, max_size=60))
@example([0.1, 0.3, 0.5])
@example([0.1, 0.6, 1.0])
@example([-0.04, 0.3, 4.8])
def test_every_value_lies_within_the_ends_of_its_bin(values):
    """A click on a bar keeps the rows between its ends, which are those that it counts."""
    bins = bins_of(values)
    for value in values:
        low, high = bins.span(bins.of(value))
        assert low <= value < high


@pytest.mark.parametrize(
    ("values", "start", "width", "count"),
    [
        ([0.0, 1.0, 2.0, 3.0], 0.0, 1.0, 4),
        ([5.0], 5.0, 1.0, 1),
        ([0.0, 60.0], 0.0, 2.0, 31),
        ([0.0, 0.3], 0.0, 0.01, 31),
    ],
)
def test_bins_are_round(values, start, width, count):
    bins = bins_of(values)
    assert (bins.start, bins.width, bins.count) == (start, pytest.approx(width), count)


@pytest.mark.parametrize(("count", "size"), [(100, 1), (101, 2), (2000, 20), (10_000, 100), (100_001, 2000)])
def test_blocks_have_round_sizes(count, size):
    assert block_size(count, 100) == size


@pytest.mark.parametrize(
    ("start", "end", "value", "share"),
    [(-1e308, 1e308, 0.0, 50.0), (-1.7e308, 1.7e308, 8.5e307, 75.0), (0.0, 4.0, 1.0, 25.0), (2.0, 2.0, 2.0, 50.0)],
)
def test_place_on_an_axis_is_a_share_of_any_span(start, end, value, share):
    meter = Meter(name="", value="", text="", start=start, end=end, ends=("", ""))
    assert meter.share(value) == pytest.approx(share)


def test_bars_count_the_rows_that_a_click_leaves(tmp_path):
    """Rows keep the number by which a bar picks them only where the bar counts them."""
    made = [row(at, seed=at, return_=at / 10, success=True, start_hash=f"{at:016x}") for at in range(30)]
    made += [errored(30, return_=0.45), row(31, return_=math.nan)]
    page = page_of(run_folder(tmp_path / "run", made))
    (bars,) = figures_of(page)["returns"].spec["data"]
    table = tables_of(page)["episode-table"]
    for (low, high), count in zip(bars["customdata"], bars["y"], strict=True):
        assert sum(low <= row.marks.get("return", math.nan) < high for row in table.rows) == count


def test_control_says_how_many_pairs_it_leaves_out(tmp_path):
    found = PairedDifference(pairs=3, policy=2.0, control=1.0, difference=1.0, interval=None, left_out=2)
    made = opened(read_run(run_folder(tmp_path / "run", rows([True]))))
    control = ControlResult(name="zero", episodes=5, errors=2, success=None, returns=found)
    made.evaluation.controls = (control,)
    (table,) = control_blocks(made.evaluation)
    assert [cell.text for cell in table.rows[0].cells] == ["zero", "return", "3, 2 left out", "2", "1", "+1"]


# What is left out


def test_returns_that_are_no_number_do_not_hide_the_worst(tmp_path):
    """They have no place in an order; neither have their differences."""
    rng = np.random.default_rng(1)
    values = rng.permutation(6000).astype(float).tolist()
    values[::7] = [math.nan] * len(values[::7])
    made = [row(at, seed=at, return_=value, start_hash=f"{at:016x}") for at, value in enumerate(values)]
    chosen, _ = choose(made, (), most=400)
    worst = sorted((value, at) for at, value in enumerate(values) if not math.isnan(value))[:100]
    assert {at for _, at in worst} <= {one.index for one in chosen}
    base = read_run(run_folder(tmp_path / "base", made))
    new = read_run(run_folder(tmp_path / "new", [msgspec.structs.replace(one, return_=0.0) for one in made]))
    page = pair_page(opened(base), opened(new), compare(base, new, Judging()), tmp_path, divergence=None, made="")
    greatest = sorted(((value, at) for at, value in enumerate(values) if not math.isnan(value)), reverse=True)[
        :500
    ]
    assert {f"p{at}" for _, at in greatest} <= {entry.key for entry in page.entries}


def test_points_are_drawn_only_where_all_have_details(tmp_path):
    """Otherwise a click on some of them would do nothing."""
    made = [
        row(at, seed=at, return_=math.inf if at < 600 else 1.0, success=True, start_hash=f"{at:016x}")
        for at in range(2500)
    ]
    folders = [run_folder(tmp_path / name, made) for name in ("base", "new")]
    base, new = map(read_run, folders)
    pages = [
        page_of(folders[0]),
        pair_page(opened(base), opened(new), compare(base, new, Judging()), folders[1], divergence=None, made=""),
    ]
    for page, name in zip(pages, ("by-seed", "differences"), strict=True):
        figure = figures_of(page)[name]
        assert figure.picks != "entry"
        assert "too many for a" in figure.caption
    assert "Left out: 600 without a finite return." in figures_of(pages[0])["by-seed"].caption


def test_every_flip_that_is_listed_can_be_opened(tmp_path):
    """Flips of one kind come first here, and fill what is listed of both."""
    values = [True] * 600 + [False] * 2400
    base = read_run(run_folder(tmp_path / "base", rows(values)))
    new = read_run(
        run_folder(tmp_path / "new", rows([not value for value in values[:600]] + [False] * 1900 + [True] * 500))
    )
    page = pair_page(opened(base), opened(new), compare(base, new, Judging()), tmp_path, divergence=None, made="")
    flips = tables_of(page)["flip-table"]
    assert {row.entry for row in flips.rows} <= {entry.key for entry in page.entries}
    assert flips.note == f"{1100 - len(flips.rows):,} more flips are left out."


@pytest.mark.parametrize("value", [9e307, 9.5e307, 8e306])
def test_pairs_as_far_apart_as_floats_go_have_a_page(value, tmp_path):
    made = {name: rows([True] * 3, return_=sign * value) for name, sign in (("base", -0.9), ("new", 0.95))}
    base, new = (read_run(run_folder(tmp_path / name, rows_)) for name, rows_ in made.items())
    page = pair_page(opened(base), opened(new), compare(base, new, Judging()), tmp_path, divergence=None, made="")
    meter = page.top[0].items[1]
    assert meter.point == pytest.approx(1.85 * value)
    assert math.isfinite(meter.end)
    assert meter.end >= meter.point
    assert 50 < meter.share(meter.point) <= 100


def test_of_many_episodes_the_filmed_the_errored_the_worst_and_the_first_are_listed():
    made = [row(at, return_=float(-(at % 1000))) for at in range(9_000)]
    made[8_000] = errored(8_000)
    chosen, note = choose(made, {"ep-008501"}, most=400)
    indices = {one.index for one in chosen}
    assert len(indices) == 400
    assert {0, 100, 8_000, 8_500} <= indices
    worst = sorted(made, key=lambda one: (one.return_, one.index))[:100]
    assert {one.index for one in worst} <= indices
    assert note.startswith("Of 9,000 episodes 400 are listed: the first ")
    assert "1 with a video, 1 that errored, 100 of the lowest return" in note
    assert indices == {one.index for one in choose(made, {"ep-008501"}, most=400)[0]}


@pytest.mark.slow
def test_hundred_thousand_episodes_make_a_page_of_a_few_megabytes(tmp_path):
    made = [row(at, seed=at, success=at % 2 == 0, start_hash=f"{at:016x}") for at in range(100_000)]
    page = run_html(read_run(run_folder(tmp_path / "run", made)), tmp_path)
    assert len(page) < 9_000_000
    text = page.decode()
    assert text.count("data-entry=") == 2000
    assert "Of 100,000 episodes 2,000 are listed" in text
    assert "50.0 % of 100,000 episodes succeeded (50,000 of 100,000;" in text


def test_values_that_are_not_finite_are_left_out_and_counted(tmp_path):
    made = [row(0, return_=math.inf), row(1, return_=math.nan), row(2, return_=3.0), errored(3, return_=1e9)]
    figures = figures_of(page_of(run_folder(tmp_path / "run", made)))
    assert (
        figures["returns"].caption
        == "1 finished episode in bins of 1. Left out: 1 that errored and 2 without a finite value."
    )
    assert [trace["y"] for trace in figures["by-seed"].spec["data"]] == [[3.0], [1e9]]


def test_killed_run_has_a_page_that_says_so(tmp_path):
    folder = run_folder(tmp_path / "run", rows([True, False]), status="running", seeds=[0, 1, 2, 3])
    with (folder / "episodes.jsonl").open("ab") as file:
        file.write(b'{"index": 2, "see')
    text = run_html(read_run(folder), folder).decode()
    assert "the last line of episodes.jsonl is half written and left out" in text
    assert "no summary.json: it goes on, or was killed; 2 of 4 episodes are added up here" in text
    assert "Times are not known: the run has no summary.json." in text
    assert 'class="verdict caution">running<' in text
    assert "2 episodes of 4 planned were played" in text


def test_run_without_videos_says_how_to_get_them(tmp_path):
    text = run_html(read_run(run_folder(tmp_path / "run", rows([True]))), tmp_path).decode()
    assert "No episode was filmed; `rlmesh eval --record video` does so." in text
    assert "<video" not in text.partition("<script")[0]


# Videos and steps


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


# Text of users


def pages_of_evil(tmp_path: Path) -> dict[str, str]:
    folders = [evil_folder(tmp_path / name) for name in ("one", "two", "three")]
    runs = [read_run(folder) for folder in folders]
    return {
        "run": run_html(runs[0], tmp_path).decode(),
        "pair": pair_html(compare(runs[0], runs[1], Judging()), tmp_path, [EVIL]).decode(),
        "several": several_html(runs, tmp_path).decode(),
    }


def test_names_full_of_markup_are_text(tmp_path):
    for kind, page in pages_of_evil(tmp_path).items():
        read = Reader(page)
        assert {"img", "b", "iframe"} & set(read.tags) <= {"b"}, kind
        assert read.tags.count("script") == 4, kind
        assert read.handlers == [], kind
        assert "<b>bold</b><img src=x onerror=alert(1)></script>" in "".join(read.text), kind
        assert "\u202e" not in page.replace("\\u202e", ""), kind
        data = data_of(page)  # the first </script> after it is its own
        assert data["entries"], kind


def test_page_links_to_nothing_but_itself(tmp_path):
    for kind, page in pages_of_evil(tmp_path).items():
        read = Reader(page)
        links = read.links
        assert links, kind
        assert len(read.ids) == len(set(read.ids)), kind
        assert {link[1:] for link in links if link.startswith("#")} <= set(read.ids), kind
        assert [link for link in links if not link.startswith(("#", "data:"))] == [], kind


def test_labels_of_plots_are_not_read_as_markup(tmp_path):
    figures = figures_of(page_of(evil_folder(tmp_path / "run")))
    assert figures["actuators"].spec["data"][0]["y"][0].startswith("&lt;b&gt;bold")
    assert plotted("a & <b>b</b>\nc") == "a &amp; &lt;b&gt;b&lt;/b&gt; c"


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "\u2028", "a\ud800b", "\x00", "&lt;"])
def test_data_cannot_end_its_script(text):
    made = scripted({"name": text, text: [text]})
    assert not set("<>&\u2028\u2029\x00") & set(made)
    made.encode()
    assert len(json.loads(made)) == 2


def test_what_is_not_finite_is_null_in_data():
    assert scripted([math.nan, math.inf, 1.0]) == "[null,null,1.0]"


# Two runs, and more


def test_pair_page_says_what_compare_says(tmp_path):
    base = read_run(run_folder(tmp_path / "base", rows([True] * 30 + [False] * 20)))
    new = read_run(run_folder(tmp_path / "new", rows([True] * 28 + [False] * 18 + [True] * 4)))
    comparison = compare(base, new, Judging())
    page = pair_page(opened(base), opened(new), comparison, tmp_path, divergence=None, made="")
    rate = comparison.metrics[0]
    assert page.claim.startswith("NEW is not worse than BASE by 5 points or more at alpha 0.05")
    meter = page.top[0].items[0]
    assert meter.point == rate.difference == pytest.approx(0.04)
    assert rate.interval is not None
    assert (meter.low, meter.high) == (rate.interval.low, rate.interval.high)
    assert [round(value, 2) for value, _ in meter.marks] == [0, -0.05]
    text = pair_html(comparison, tmp_path, None).decode()
    assert "NEW alone succeeded in 4 of 50 pairs, BASE alone in 2." in text
    bars = {trace["name"]: trace for trace in figures_of(page)["differences"].spec["data"]}
    assert bars["NEW alone succeeded"]["x"] == [46, 47, 48, 49]
    assert bars["BASE alone succeeded"]["y"] == [-1.0, -1.0]


def test_axis_of_no_difference_at_all_is_one_wide(tmp_path):
    base, new = (read_run(run_folder(tmp_path / name, rows([None] * 3))) for name in ("base", "new"))
    page = pair_page(opened(base), opened(new), compare(base, new, Judging()), tmp_path, divergence=None, made="")
    (meter,) = page.top[0].items
    assert (meter.start, meter.point, meter.end) == (-2, 0, 2)
    assert meter.ends == ("NEW worse -2", "2 NEW better")


def test_pairs_that_errored_have_no_difference(tmp_path):
    base = read_run(run_folder(tmp_path / "base", rows([True, True, False])))
    broken = errored(1, seed=1, start_hash=f"{1:016x}")
    made = rows([True, True, False])
    new = read_run(run_folder(tmp_path / "new", [made[0], broken, made[2]]))
    page = pair_page(
        opened(base), opened(new), compare(base, new, Judging()), tmp_path, divergence=["seed 1: x"], made=""
    )
    (table,) = (
        block for section in page.sections for block in section.blocks if getattr(block, "id", "") == "pairs"
    )
    assert [cells.cells[3].text for cells in table.rows] == ["0", "-", "0"]
    assert table.rows[1].cells[6].text == "errored, or not reported in one"


def test_several_runs_have_their_intervals_beside_one_another(tmp_path):
    runs = [read_run(run_folder(tmp_path / name, rows([True] * 3 + [False]))) for name in ("a", "b", "c")]
    html = several_html(runs, tmp_path).decode()
    data = data_of(html)
    # Of one policy, so that only their names tell them apart.
    assert all(f">{run.name}</td>" in html for run in runs)
    rates = next(figure for figure in data["figures"] if figure["id"] == "rates")
    assert rates["data"][0]["x"] == [75.0] * 3
    # Clopper and Pearson for 3 of 4, from tables.
    assert rates["data"][0]["error_x"]["arrayminus"][0] == pytest.approx(75 - 19.412, abs=1e-3)
    assert rates["data"][0]["error_x"]["array"][0] == pytest.approx(99.369 - 75, abs=1e-3)
    assert set(data["entries"]) == {f"r{run}-{at}" for run in range(3) for at in range(4)}


def test_page_of_a_played_run_is_the_same_each_time(tmp_path):
    folder = golden_copy(tmp_path)
    assert page_of(folder) == page_of(folder)


# Looks


def palettes() -> dict[str, dict[str, str]]:
    """Return the colours of the style sheet: light, dark, and those of paper."""
    css = (ROOT / "rlmesh_cli" / "pages" / "look" / "page.css").read_text(encoding="utf-8")
    blocks = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block)) for block in re.findall(r"\{([^{}]*)\}", css)]
    light, dark, printed = (block for block in blocks if "paper" in block)
    return {"light": light, "dark": dark, "print": {"focus": light["focus"], **printed}}


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_colours_can_be_read(scheme):
    palette = palettes()[scheme]
    for name in ("ink", "muted", "success", "failure"):
        for ground in ("paper", "raised"):
            assert contrast(palette[name], palette[ground]) >= 4.5, (name, ground)
    for name in ("unknown", "error", "bar", "faint", "focus"):
        assert contrast(palette[name], palette["paper"]) >= 2.95, name


def test_every_colour_that_a_plot_names_is_in_every_palette(tmp_path):
    pages = pages_of_evil(tmp_path)
    figures = [json.dumps(data_of(page)["figures"]) for page in pages.values()]
    named = {name for text in figures for name in re.findall(r'"@(\w+)"', text)}
    assert {"success", "failure", "bar", "ink"} <= named
    for palette in palettes().values():
        assert named <= set(palette)


def test_a_linked_video_of_a_run_from_elsewhere_draws_no_file_in(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"not for you")
    run = tmp_path / "run"
    (run / "videos").mkdir(parents=True)
    (run / "videos" / "ep-000001.mp4").symlink_to(secret)
    (run / "videos" / "ep-000002.mp4").write_bytes(b"seen")
    footage = clips.footage_of(StoredRun(folder=run, record={"seeds": []}, rows=[]))
    assert list(footage.videos) == ["ep-000002"]
