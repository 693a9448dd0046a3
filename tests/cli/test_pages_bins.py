"""Bins of histograms and places on axes, over any floats."""

from __future__ import annotations

import math

import pytest
from cli_toys import errored, row
from hypothesis import example, given
from hypothesis import strategies as st
from pages_toys import figures_of, page_of, run_folder, tables_of
from stored import rows

from rlmesh_cli.control_results import ControlResult, PairedDifference
from rlmesh_cli.pages.bins import bins_of, block_size
from rlmesh_cli.pages.facts import Meter
from rlmesh_cli.pages.opened import opened
from rlmesh_cli.pages.run_page import control_blocks
from rlmesh_cli.run_reader import read_run


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
    for (low, high, outcome), count in zip(bars["customdata"], bars["y"], strict=True):
        assert outcome == "success"
        assert sum(low <= row.marks.get("return", math.nan) < high for row in table.rows) == count


def test_control_says_how_many_pairs_it_leaves_out(tmp_path):
    found = PairedDifference(pairs=3, policy=2.0, control=1.0, difference=1.0, interval=None, left_out=2)
    made = opened(read_run(run_folder(tmp_path / "run", rows([True]))))
    control = ControlResult(name="zero", episodes=5, errors=2, success=None, returns=found)
    made.evaluation.controls = (control,)
    (table,) = control_blocks(made.evaluation)
    assert [cell.text for cell in table.rows[0].cells] == ["zero", "return", "3, 2 left out", "2", "1", "+1"]
