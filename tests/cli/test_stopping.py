"""Stopping early: what the rule says, in which order it looks, and that peeking costs nothing."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from cli_toys import errored, mended, row
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.errors import RouteError
from rlmesh_cli.gates import parse_gate
from rlmesh_cli.judgement.sequences import BettingSequence
from rlmesh_cli.stopping import PairedBar, StoppingRule, Until, parse_until, rule_of

GATE = parse_gate("success_rate >= 0.9")


def rows_of(outcomes):
    return [row(index, success=bool(outcome)) for index, outcome in enumerate(outcomes)]


def rule(text="decided", gates=(GATE,), paired=None):
    return StoppingRule(parse_until(text), gates, confidence=0.95, paired=paired)


@pytest.mark.parametrize(("text", "width"), [("width<0.1", 0.1), ("width < 10%", 0.1), (" decided ", None)])
def test_rules_are_read(text, width):
    assert parse_until(text) == Until(width)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("soon", "`soon` is no stopping rule"),
        ("width<", "`width<` is no stopping rule"),
        ("width>0.1", "is no stopping rule"),
        ("width<thin", "`thin` is not a width"),
        ("width<0", "cannot be 0 wide"),
        ("width<1.5", "cannot be 1.5 wide"),
        ("width<nan", "cannot be nan wide"),
    ],
)
def test_what_is_no_rule_is_refused(text, words):
    with pytest.raises(RouteError) as caught:
        parse_until(text)
    assert words in str(caught.value)
    mended(caught.value)


@pytest.mark.parametrize("gate", ["mean_return >= 3", "errors == 0", "success_rate == 1", "speed > 1"])
def test_bars_without_known_bounds_cannot_be_decided_early(gate):
    with pytest.raises(RouteError, match="cannot be decided early") as caught:
        rule(gates=(GATE, parse_gate(gate)))
    mended(caught.value)
    rule("width<0.1", gates=(parse_gate(gate),))  # a width has no bar to decide


def test_nothing_to_decide_is_refused():
    with pytest.raises(RouteError, match="there is nothing to decide"):
        rule(gates=())


def test_a_width_stops_where_the_sequence_is_that_narrow():
    outcomes = [True] * 200
    sequence = BettingSequence(0.95)
    while sequence.high - sequence.low >= 0.2:
        sequence.add(1.0)
    made = rule("width<0.2", gates=())
    made.take(rows_of(outcomes))
    assert made.stop_at == sequence.n
    assert made.interval is not None
    assert made.interval.high - made.interval.low < 0.2


@pytest.mark.parametrize(("misses", "count", "bounds"), [(6, 706, (0.105, 0.205)), (13, 267, (0.04, 0.14))])
def test_an_interval_of_exactly_the_width_is_not_narrower(misses, count, bounds):
    outcomes = ([True] + [False] * misses) * 200
    made = rule("width<0.1", gates=())
    made.take(rows_of(outcomes[:count]))
    assert made.interval is not None
    assert (made.interval.low, made.interval.high, made.stop_at) == (*bounds, None)
    made.take([row(index, success=outcomes[index]) for index in range(count, len(outcomes))])
    assert made.stop_at is not None
    assert made.stop_at > count


@settings(max_examples=60, deadline=None)
@given(outcomes=st.lists(st.booleans(), min_size=1, max_size=60), data=st.data())
def test_the_order_in_which_episodes_end_changes_nothing(outcomes, data):
    """Short episodes end first; the rule waits for those before them."""
    shuffled = data.draw(st.permutations(rows_of(outcomes)))
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=len(outcomes), max_size=len(outcomes)))
    one, other = rule("width<0.6", gates=()), rule("width<0.6", gates=())
    one.take(rows_of(outcomes))
    left = iter(shuffled)
    for size in sizes:
        other.take(list(itertools.islice(left, size)))
    assert (one.stop_at, one.interval) == (other.stop_at, other.interval)


def test_a_gap_in_the_plan_is_waited_for():
    made = rule("width<0.9", gates=())
    made.take(rows_of([True] * 100)[1:])
    assert made.stop_at is None
    made.take(rows_of([True]))
    assert made.stop_at is not None


def test_errors_count_as_failures_and_silence_does_not_count():
    rows = [row(0, success=True), row(1), errored(2), row(3, success=False)]
    sequence = BettingSequence(0.9)
    for value in (1.0, 0.0, 0.0):
        sequence.add(value)
    assert rule_of(rows, 0.9).interval == sequence.interval
    assert rule_of([row(0)], 0.9).interval is None
    # What comes after a missing one is not looked at.
    assert rule_of([*rows, row(5, success=True)], 0.9).interval == sequence.interval


@pytest.mark.parametrize(("share", "decision"), [(1.0, True), (0.2, False)])
def test_a_bar_is_decided_once_no_rate_in_the_bounds_says_otherwise(share, decision):
    chance = random.Random(1)
    made = rule()
    made.take(rows_of([chance.random() < share for _ in range(400)]))
    assert made.stop_at is not None
    assert made.stop_at < 400
    assert made.decision(GATE) is decision


def test_a_rate_at_the_bar_is_open_to_the_end():
    made = rule()
    made.take(rows_of([index % 10 > 0 for index in range(200)]))
    assert (made.stop_at, made.decision(GATE)) == (None, None)


def bar_of(known, *, margin=0.05) -> PairedBar:
    """Return a bar of a run whose episodes had these successes, by index."""
    rows = {index: row(index, success=success) for index, success in known.items()}
    return PairedBar(rows=rows, margin=margin, alpha=0.05)


def false_alarms(share: float, *, runs: int, length: int, discordance: float, seed: int) -> tuple[float, float]:
    """Return how often two equal policies are called worse, and how often a better one not worse, with peeking.

    Both succeed with chance `share`; `discordance` is the share of pairs that differ, half of them each way.
    """
    rng = np.random.default_rng(seed)
    worse = settled = 0
    for _ in range(runs):
        kinds = rng.random(length)
        base = np.where(kinds < discordance / 2, 1, np.where(kinds < discordance, 0, rng.random(length) < share))
        new = np.where(kinds < discordance / 2, 0, np.where(kinds < discordance, 1, base))
        known = {index: bool(success) for index, success in enumerate(base)}
        made = rule(gates=(), paired=bar_of(known))
        made.take(rows_of(new))
        worse += made.paired_verdict == "worse"
        settled += made.paired_verdict == "not_worse"
    return worse / runs, settled / runs


def test_equal_policies_are_called_worse_in_at_most_alpha_with_a_look_after_every_pair():
    worse, _ = false_alarms(0.8, runs=150, length=120, discordance=0.3, seed=3)
    # Five percent, and three standard errors of 150 draws.
    assert worse <= 0.05 + 3 * (0.05 * 0.95 / 150) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("share", "discordance"), [(0.7, 0.4), (0.9, 0.15)])
def test_two_thousand_equal_pairs_of_runs_with_peeking(share, discordance):
    worse, _ = false_alarms(share, runs=2_000, length=200, discordance=discordance, seed=5)
    assert worse <= 0.05


def test_a_policy_that_does_the_same_is_shown_to_be_not_worse():
    known = dict.fromkeys(range(2_000), True)
    made = rule(gates=(), paired=bar_of(known))
    made.take(rows_of([True] * 2_000))
    assert made.paired_verdict == "not_worse"
    assert made.stop_at is not None
    assert made.stop_at < 2_000


def test_episodes_that_only_repeat_others_are_looked_at_once():
    outcomes = [row(index, success=True, start_hash=f"{index % 2:016x}") for index in range(40)]
    made = rule("width<0.2", gates=())
    made.take(outcomes)
    two = BettingSequence(0.95)
    two.add(1.0)
    two.add(1.0)
    assert (made.stop_at, made.interval) == (None, two.interval)
    # Another course from a start that was seen: then chance comes after it, and all of them count.
    made.take([row(40, success=True, start_hash="0" * 16, trace_hash="f" * 16)])
    everyone = BettingSequence(0.95)
    for _ in range(41):
        everyone.add(1.0)
    assert made.interval == everyone.interval


def test_bounds_reach_to_the_rate_where_starts_come_unequally_often():
    """Nine of ten episodes begin alike and succeed; each of the others fails, and counts as much as these."""
    made = rule("decided", gates=(parse_gate("success_rate <= 0.6"),))
    made.take(
        [
            row(index, success=index % 10 > 0, start_hash="often" if index % 10 else str(index))
            for index in range(1_000)
        ]
    )
    assert made.stop_at is None
    assert made.interval.low < 0.1
    assert made.interval.high == 0.9
    base = {
        index: row(index, success=index % 10 > 0, start_hash="often" if index % 10 else str(index))
        for index in range(1_000)
    }
    worse = rule(gates=(), paired=PairedBar(rows=base, margin=0.05, alpha=0.05))
    worse.take([row(at, success=at % 10 == 0, start_hash=base[at].start_hash) for at in range(1_000)])
    assert worse.difference.low == pytest.approx(-0.8)
    assert (worse.paired_verdict, worse.stop_at) == ("inconclusive", None)


def test_a_difference_at_exactly_the_margin_does_not_lie_above_it():
    made = rule(gates=(), paired=bar_of(dict.fromkeys(range(100), True), margin=0.08))
    made.take(rows_of([True] * 48))
    assert made.difference is not None
    assert (made.difference.low, made.paired_verdict) == (-0.08, "inconclusive")
    made.take([row(48, success=True)])
    assert (made.paired_verdict, made.stop_at) == ("not_worse", 49)


def test_what_new_did_not_finish_is_lost_on_the_way_to_not_worse_and_nothing_on_the_way_to_worse():
    known = dict.fromkeys(range(400), True)
    bar = bar_of(known, margin=0.1)
    made = rule(gates=(), paired=bar)
    made.take([errored(index) if index % 2 else row(index, success=True) for index in range(400)])
    assert (made.paired_verdict, made.stop_at) == ("inconclusive", None)


def test_a_pair_repeats_another_one_only_where_both_of_its_episodes_do():
    """One start; BASE acts by chance, NEW does the same every time."""
    chance = {
        index: row(index, success=index % 3 == 0, start_hash="0" * 16, trace_hash=f"{index % 7:016x}")
        for index in range(300)
    }
    made = rule(gates=(), paired=PairedBar(rows=chance, margin=0.05, alpha=0.05))
    made.take([row(index, success=True, start_hash="0" * 16, trace_hash="f" * 16) for index in range(300)])
    assert made.paired_verdict == "not_worse"
    assert made.stop_at is not None
    # Where BASE repeats itself too, there is one pair, which shows nothing.
    same = {index: row(index, success=False, start_hash="0" * 16, trace_hash="e" * 16) for index in range(300)}
    made = rule(gates=(), paired=PairedBar(rows=same, margin=0.05, alpha=0.05))
    made.take([row(index, success=True, start_hash="0" * 16, trace_hash="f" * 16) for index in range(300)])
    assert (made.paired_verdict, made.stop_at) == ("inconclusive", None)
