"""What a page of two runs or more says."""

from __future__ import annotations

import pytest
from cli_toys import errored
from pages_toys import data_of, figures_of, page_of, run_folder
from stored import golden_copy, rows, stored

from rlmesh_cli.comparing import Judging, compare
from rlmesh_cli.pages.making import pair_html, several_html
from rlmesh_cli.pages.opened import opened
from rlmesh_cli.pages.pair_page import pair_page
from rlmesh_cli.pages.several_page import several_page
from rlmesh_cli.run_reader import read_run


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


def test_pair_page_says_what_the_runs_differ_in(tmp_path):
    made, gains = rows([True, False]), {"base": 1, "new": -1}
    runs = [
        read_run(run_folder(tmp_path / name, made, route__policy__params={"gain": gain}))
        for name, gain in gains.items()
    ]
    for new, cells in ((runs[1], [["policy.params.gain", "1", "-1"]]), (runs[0], [])):
        comparison = compare(runs[0], new, Judging())
        page = pair_page(opened(runs[0]), opened(new), comparison, tmp_path, divergence=None, made="")
        (section,) = (one for one in page.sections if one.id == "runs")
        tables = [block for block in section.blocks if getattr(block, "id", "") == "differ-table"]
        assert [[cell.text for cell in one.cells] for table in tables for one in table.rows] == cells
        is_said = "The runs differ in nothing that is recorded." in pair_html(comparison, tmp_path, None).decode()
        assert is_said == (not cells)


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


@pytest.mark.parametrize(
    ("base", "new", "who"),
    [
        ([True, False], [None, None], "NEW reported none"),
        ([None, None], [True, False], "BASE reported none"),
        ([None, None], [None, None], "BASE and NEW reported none"),
        ([True, None], [None, True], "no pair reported it on both sides"),
    ],
)
def test_run_that_reported_no_success_is_named_where_nothing_can_flip(base, new, who, tmp_path):
    runs = stored(rows(base, return_=1.0)), stored(rows(new, return_=1.0), name="new")
    comparison = compare(*runs, Judging(metrics=("mean_return",)))
    page = pair_page(*map(opened, runs), comparison, tmp_path, divergence=None, made="")
    flips = next(section for section in page.sections if section.id == "flips-section")
    assert [line.text for line in flips.blocks[0].items] == [
        f"Success was not measured, so nothing can flip: {who}."
    ]


def test_returns_that_are_all_alike_have_no_interval_in_the_table_either(tmp_path):
    runs = [stored(rows([True] * 4, return_=4.0), name="alike"), stored(rows([True, False] * 2), name="apart")]
    page = several_page([opened(run) for run in runs], tmp_path, made="")
    # One of 16 draws of four is all of one kind, above 2.5 %.
    table = page.top[0]
    at = [column.name for column in table.columns].index("interval of the mean")
    assert [row.cells[at].text for row in table.rows] == ["none: all are alike", "0 to 1 (95 %)"]


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
