"""Confidence sequences: bounds that hold at every look."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_cli.judgement.sequences import BettingSequence

values_in_range = st.lists(st.floats(0, 1), max_size=40)


def fed(values, confidence=0.95, resolution=1_000):
    sequence = BettingSequence(confidence, resolution=resolution)
    for value in values:
        sequence.add(value)
    return sequence


def rejected(values, mean, confidence=0.95):
    """Tell by the paper, one mean at a time, whether it was ever out: too low, too high."""
    enough = 2 / (1 - confidence)
    high_capital = low_capital = 1.0
    too_low = too_high = False
    for t, value in enumerate(values, start=1):
        before = np.array(values[: t - 1])
        guesses = (0.5 + np.cumsum(before)) / (np.arange(t - 1) + 2)
        variance = (0.25 + np.sum((before - guesses) ** 2)) / t
        bet = math.sqrt(2 * math.log(enough) / (variance * t * math.log(t + 1)))
        high_capital *= 1 + min(bet, 0.75 / mean if mean else math.inf) * (value - mean)
        low_capital *= 1 - min(bet, 0.75 / (1 - mean) if mean < 1 else math.inf) * (value - mean)
        too_low |= high_capital >= enough
        too_high |= low_capital >= enough
    return too_low, too_high


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_bounds_are_the_means_that_the_paper_rejects(rate, confidence):
    values = (np.random.default_rng(3).random(60) < rate).astype(float).tolist()
    sequence = fed(values, confidence, resolution=50)
    grid = np.linspace(0, 1, 51)
    verdicts = [rejected(values, mean, confidence) for mean in grid]
    low = max((mean for mean, (too_low, _) in zip(grid, verdicts, strict=True) if too_low), default=0.0)
    high = min((mean for mean, (_, too_high) in zip(grid, verdicts, strict=True) if too_high), default=1.0)
    assert (sequence.low, sequence.high) == pytest.approx((low, high))
    assert low > 0 or high < 1


@pytest.mark.parametrize(("misses", "count", "bounds"), [(3, 1733, (0.206, 0.306)), (6, 706, (0.105, 0.205))])
def test_bounds_are_numbers_of_the_grid_as_they_are_written(misses, count, bounds):
    values = ([1.0] + [0.0] * misses) * (count // misses)
    found = fed(values[:count])
    assert (found.low, found.high) == bounds


def test_nothing_is_known_before_a_value():
    sequence = BettingSequence(0.9)
    assert (sequence.n, sequence.low, sequence.high) == (0, 0.0, 1.0)
    interval = sequence.interval
    assert (interval.low, interval.high, interval.confidence, interval.method) == (0.0, 1.0, 0.9, "betting")


@settings(max_examples=30, deadline=None)
@given(values_in_range)
def test_bounds_never_go_back(values):
    sequence = BettingSequence(resolution=100)
    low, high = 0.0, 1.0
    for count, value in enumerate(values, start=1):
        sequence.add(value)
        assert low <= sequence.low <= sequence.high <= high
        low, high = sequence.low, sequence.high
        assert sequence.n == count


@settings(max_examples=30, deadline=None)
@given(values_in_range)
def test_values_seen_from_1_have_mirrored_bounds(values):
    values = [round(value * 64) / 64 for value in values]
    one, other = fed(values, resolution=64), fed([1 - value for value in values], resolution=64)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-12)


def test_finer_grid_lies_within_a_coarser_one():
    values = (np.random.default_rng(4).random(200) < 0.7).astype(float).tolist()
    coarse, fine = fed(values, resolution=10), fed(values, resolution=1_000)
    assert coarse.low <= fine.low < fine.high <= coarse.high
    assert fine.low - coarse.low <= 0.1 + 1e-9
    assert coarse.high - fine.high <= 0.1 + 1e-9


def test_many_values_leave_a_narrow_interval():
    sequence = fed((np.random.default_rng(5).random(3_000) < 0.8).astype(float).tolist())
    assert sequence.low <= 0.8 <= sequence.high
    assert sequence.high - sequence.low < 0.08


def test_mean_that_moves_leaves_the_last_bounds_that_had_a_mean_between_them():
    sequence = fed([0.0] * 300 + [1.0] * 3_000)
    assert 0.0 <= sequence.low <= sequence.high <= 0.05
    assert sequence.n == 3_300


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf])
def test_value_out_of_range_is_refused_and_not_counted(value):
    sequence = fed([0.5])
    with pytest.raises(ValueError, match=rf"^values must be in \[0, 1\], not {value}$"):
        sequence.add(value)
    assert sequence.n == 1


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match=r"^confidence must be above 0 and below 1, not 1.0$"):
        BettingSequence(1.0)
    with pytest.raises(ValueError, match=r"^resolution must be at least 1, not 0$"):
        BettingSequence(resolution=0)


def share_that_ever_excludes(rate, sequences):
    """Return the share of sequences of 300 values whose bounds ever leave the rate outside."""
    generator = np.random.default_rng(6)
    excluded = 0
    for values in (generator.random((sequences, 300)) < rate).astype(float).tolist():
        # Bounds never go back, so that the last look says whether any did.
        last = fed(values, resolution=100)
        excluded += not last.low <= rate <= last.high
    return excluded / sequences


@pytest.mark.parametrize("rate", [0.5, 0.9, 0.98])
def test_rate_is_seldom_excluded_at_any_look(rate):
    assert share_that_ever_excludes(rate, 100) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 100)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.9, 0.98])
def test_rate_is_excluded_no_more_often_than_said(rate):
    assert share_that_ever_excludes(rate, 2_000) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2_000)
