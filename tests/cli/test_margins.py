"""Margins: how they are written, and what they come to."""

from __future__ import annotations

import pytest
from cli_toys import mended

from rlmesh_cli.margins import MarginError, Margins, parse_margins


@pytest.mark.parametrize("texts", [(), ("5%",), ("0.05",), ("5 %",)])
def test_five_percent_are_points_of_success_and_a_share_of_the_mean_of_base(texts):
    margins = parse_margins(texts)
    assert margins.of("success_rate", 0.7) == 0.05
    assert margins.of("mean_return", 200.0) == pytest.approx(10.0)
    assert margins.of("mean_return", -200.0) == pytest.approx(10.0)
    assert margins.of("mean_return", 0.0) == 0.0


@pytest.mark.parametrize("text", ["return=10", "mean_return=10", "mean_return = 10.0"])
def test_number_for_one_metric_is_in_its_own_unit(text):
    margins = parse_margins([text, "success=2%", "2 %"])
    assert margins.of("mean_return", 400.0) == 10.0
    assert margins.of("success_rate", 0.9) == 0.02
    assert margins.of("speed", 3.0) == pytest.approx(0.06)


def test_percent_for_one_metric_is_a_share_of_it():
    assert parse_margins(["speed=10%"]).of("speed", 5.0) == pytest.approx(0.5)


def test_margins_that_are_not_given_are_five_percent():
    assert parse_margins([]) == Margins()


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["much"], "`much` is not a margin"),
        ([""], "`` is not a margin"),
        (["nan"], "`nan` is not a margin"),
        (["inf%"], "`inf%` is not a margin"),
        (["return=x"], "`return=x` is not a margin"),
        (["0"], "a margin of 0 leaves no room"),
        (["-5%"], "a margin of -5% leaves no room"),
        (["return=-1"], "a margin of return=-1 leaves no room"),
        (["5"], "a margin of 5 is 500 %, which every run would pass"),
        (["100%"], "a margin of 100% is 100 %"),
        (["success=5"], "a margin of success=5 is 500 %"),
        (["5%", "3%"], "the margin is given twice: 5%, 3%"),
        (["return=1", "mean_return=2"], "the margin of mean_return is given twice"),
    ],
)
def test_margin_that_cannot_be_meant_is_named(texts, words):
    with pytest.raises(MarginError) as caught:
        parse_margins(texts)
    assert words in mended(caught.value).cause
    assert caught.value.where == "--margin"
