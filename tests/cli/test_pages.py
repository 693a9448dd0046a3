"""What a page of one run says: its numbers are those of the run, and what it leaves out is told."""

from __future__ import annotations

import json
import math
import re

import msgspec
import numpy as np
import plotly.graph_objects
import pytest
from cli_toys import errored, play, row
from pages_toys import figures_of, page_of, run_folder, tables_of
from stored import rows

from rlmesh_cli.comparing import Judging, compare
from rlmesh_cli.pages.labels import scripted
from rlmesh_cli.pages.listing import choose
from rlmesh_cli.pages.making import run_html
from rlmesh_cli.pages.opened import opened
from rlmesh_cli.pages.pair_page import pair_page
from rlmesh_cli.run_reader import read_run


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
            "Success is not known, as none of 2 episodes was finished; 2 episodes errored, without a return.",
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
    edges = [low for low, *_ in bars["success"]["customdata"]] + [bars["success"]["customdata"][-1][1]]
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
    assert "no summary.json: it was killed; 2 of 4 episodes are added up here" in text
    assert "Times are not known: the run has no summary.json." in text
    assert 'class="verdict caution">killed<' in text
    assert "2 episodes of 4 planned were played" in text


def test_run_without_videos_says_how_to_get_them(tmp_path):
    text = run_html(read_run(run_folder(tmp_path / "run", rows([True]))), tmp_path).decode()
    assert "No episode was filmed; `rlmesh eval --record video` does so." in text
    assert "<video" not in text.partition("<script")[0]
