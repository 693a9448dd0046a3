"""Pictures: lines of letters, held against the numbers they stand for."""

from __future__ import annotations

import io
import math
import random
import re

import pytest
from cli_toys import errored, evaluation, row
from rich.console import Console

from rlmesh_cli.pictures import can_show_blocks, cells_of, histogram, means, standing_out, strip, trace_rows
from rlmesh_cli.run_pictures import print_pictures


@pytest.fixture(autouse=True)
def locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("NO_COLOR", "1")


def parsed(lines: list[str]) -> list[tuple[float, float, bool, int, str]]:
    """Return (low, high, whether high is left out, count, bar) of each line of a histogram."""
    found = []
    for line in lines:
        match = re.fullmatch(r" *(\S+?)(?: to (<?)(\S+))?  +([\d,]+)(?:  (.+))?", line)
        assert match, line
        low = float(match[1])
        found.append((low, float(match[3] or low), bool(match[2]), int(match[4].replace(",", "")), match[5] or ""))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_bins_hold_what_their_edges_say(seed):
    chance = random.Random(seed)
    is_whole = seed % 2 == 0
    scale = 10.0 ** chance.randint(-1, 5)
    values = [chance.gauss(chance.uniform(-3, 3), 1) * scale for _ in range(200)]
    if is_whole:
        values = [float(round(value * 100)) for value in values]
    bins = parsed(histogram(values, 80, has_blocks=True))
    assert 2 <= len(bins) <= 6
    assert sum(count for *_, count, _ in bins) == 200
    for low, high, is_open, count, _ in bins:
        inside = [value for value in values if low <= value < high or (not is_open and value == high)]
        assert len(inside) == count
        if is_whole:
            assert low.is_integer()
            assert high.is_integer()


def test_bins_far_from_zero_hold_what_their_edges_say():
    bins = parsed(histogram([1e10 + number + 0.5 for number in range(6)], 80, has_blocks=True))
    assert [count for *_, count, _ in bins] == [1] * 6
    assert [(low - 1e10, high - 1e10) for low, high, *_ in bins] == [(at, at + 1) for at in range(6)]


def test_few_whole_numbers_have_a_line_each():
    assert histogram([3.0, 4.0, 4.0, 4.0, 6.0], 80, has_blocks=False) == [
        " 3  1  " + "#" * 17,
        " 4  3  " + "#" * 50,
        " 5  0",
        " 6  1  " + "#" * 17,
    ]


def test_what_is_there_is_seen_and_the_rest_is_in_proportion():
    values = [0.0] * 4000 + [1.0] * 1000 + [2.0]
    bars = [bar for *_, bar in parsed(histogram(values, 80, has_blocks=True))]
    assert bars == ["█" * 50, "█" * 12 + "▌", "▏"]


@pytest.mark.parametrize(
    "values",
    [
        *([], [1.0], [2.0, 2.0], [-1e308, 1e308], [0.0, math.nextafter(0, 1)], [1.0, math.nextafter(1, 2)]),
        [0.0, 3e-323],
    ],
)
def test_nothing_is_drawn_of_what_has_no_bins(values):
    assert histogram(values, 80, has_blocks=True) == []


@pytest.mark.parametrize("values", [[1e12, 1e12 + 1], [1e-12, 5e-12], [-1e300, 1e300], [1.0, 1.0 + 1e-9]])
def test_edges_of_odd_numbers_can_be_told_apart(values):
    edges = [(low, high) for low, high, *_ in parsed(histogram(values, 80, has_blocks=True))]
    assert len(set(edges)) == len(edges) >= 2
    assert all(low < high for low, high in edges)


def test_marks_are_told_apart_by_shape():
    outcomes = [True, False, None, "error"]
    assert strip(outcomes, 80, has_blocks=True) == (1, ["█·?×"])
    assert strip(outcomes, 80, has_blocks=False) == (1, ["#.?x"])


def test_many_episodes_are_folded_into_levels():
    """Cells of 5 of 400 episodes, whose shares of successes rise from 0 to 1 twice."""
    outcomes = [at % 5 < (at // 5) % 6 for at in range(400)]
    fold, rows = strip(outcomes, 50, has_blocks=False)
    assert (fold, rows) == (5, [("." + "2468#") * 6 + ".246", "8#" + (".2468#") * 6 + ".2"])
    assert strip(outcomes, 50, has_blocks=True)[1][0].startswith("·▂▄▅▇█·")


def test_cell_of_many_without_a_report_and_with_errors():
    group: list[bool | str | None] = [None] * 10
    fold, rows = strip(group * 10 + [True] * 5 + ["error"] * 5 + [None] * 10, 10, has_blocks=False)
    assert (fold, "".join(rows)) == (10, "??????????5?")


@pytest.mark.parametrize("count", [1, 20, 21, 999, 100_000])
def test_strip_has_two_rows_at_most(count):
    fold, rows = strip([True, False] * (count // 2) + [True] * (count % 2), 10, has_blocks=True)
    assert len(rows) <= 2
    assert max(map(len, rows)) <= 10
    assert sum(map(len, rows)) == math.ceil(count / fold)


def test_trace_rises_over_its_lines():
    assert trace_rows([0, 1, 2, 3, 4], 2, has_blocks=True, ends=(0, 4)) == ["  ▁▅█", "▁▅███"]
    assert trace_rows([0.0, math.nan, 1.0], 1, has_blocks=False, ends=(0, 1)) == ["_?#"]
    assert trace_rows([-1e308, 0, 1e308], 1, has_blocks=True, ends=(-1e308, 1e308)) == ["▁▅█"]


def test_cells_hold_every_step_once():
    for count, width in ((10, 3), (3, 10), (0, 5), (1000, 77)):
        cells = cells_of(list(range(count)), width)
        assert [value for cell in cells for value in cell] == list(range(count))
        assert len({len(cell) for cell in cells}) <= 2


def test_single_reward_is_seen_in_its_cell():
    rewards = [0.0] * 57 + [1.0] + [0.0] * 42
    assert standing_out(rewards, 10) == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    assert means([0.0, 1.0] * 10, 5) == [0.5] * 5


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_reward_that_is_not_finite_is_seen_in_its_cell(odd):
    shown = standing_out([0.0, odd, 9.0, 0.0, 0.0, 9.0], 2)
    assert not math.isfinite(shown[0])
    assert shown[1] == 9.0


@pytest.mark.parametrize(
    ("encoding", "environment", "are_blocks"),
    [
        ("utf-8", {}, True),
        ("UTF-8", {"LANG": "de_DE.UTF-8"}, True),
        ("ascii", {}, False),
        ("latin-1", {}, False),
        (None, {}, False),
        ("utf-8", {"LANG": "C"}, False),
        ("utf-8", {"LANG": "C", "LC_ALL": "C.UTF-8"}, True),
        ("utf-8", {"LANG": "C.UTF-8", "LC_ALL": "POSIX"}, False),
    ],
)
def test_blocks_are_shown_where_they_can_be(encoding, environment, are_blocks, monkeypatch):
    for name in ("LC_ALL", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = type("Stream", (io.StringIO,), {"encoding": encoding})()
    assert can_show_blocks(stream) is are_blocks


def pictures(rows, width: int = 80) -> str:
    stream = io.StringIO()
    print_pictures(Console(file=stream, width=width), evaluation(rows))
    return stream.getvalue()


def test_one_constant_return_is_a_sentence():
    assert pictures([row(index, return_=500.0) for index in range(30)]) == "returns\n all 30 are 500\n\n"


def test_what_says_nothing_is_left_out():
    assert pictures([row(0, success=True)]) == ""
    assert pictures([errored(0), errored(1)]) == ""
    assert "success" not in pictures([row(index, success=None) for index in range(9)] + [errored(9)])
    assert "success" not in pictures([row(index, success=True) for index in range(9)])
    assert "success" in pictures([row(index, success=True) for index in range(9)] + [errored(9)])


def test_returns_that_are_not_finite_are_counted_apart():
    text = pictures([row(index, return_=math.inf if index == 4 else float(index)) for index in range(6)])
    assert text.startswith("returns of 5 episodes, without 1 that are not finite\n 0  1  #")


def test_episodes_without_a_seed_are_named_by_index():
    rows = [row(index, seed=None, success=index % 2 == 0) for index in range(100)]
    lines = pictures(rows).splitlines()[-3:-1]
    assert [re.split(" {2,}#", line)[0] for line in lines] == ["  episode 0", " episode 50"]


def test_pictures_are_small():
    rows = [row(index, success=index % 3 == 0, return_=index / 7) for index in range(5000)]
    assert len(pictures(rows).splitlines()) <= 12
