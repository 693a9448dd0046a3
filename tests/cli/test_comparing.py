"""Comparing: pairs, numbers and verdicts, against counts by hand and against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cli_toys import errored, mended, row
from scipy import stats
from stored import rows, stored

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.comparing import Comparison, Judging, compare
from rlmesh_cli.margins import parse_margins
from rlmesh_cli.metric_judging import MetricComparison
from rlmesh_cli.pairing import pair_runs

#: Two runs of twenty pairs, as letters: success or failure.
BASE = [letter == "s" for letter in "ssssssssssssssffffff"]
NEW = [letter == "s" for letter in "sssssssfffffsssssfff"]


def judged(base, new, **judging) -> Comparison:
    return compare(stored(base), stored(new), Judging(**judging))


def metric(comparison: Comparison, name: str) -> MetricComparison:
    return next(one for one in comparison.metrics if one.metric == name)


def refusal(base, new, **judging) -> str:
    with pytest.raises(HarnessError) as caught:
        judged(base, new, **judging)
    return str(mended(caught.value))


def with_returns(values, **changes):
    return [
        row(at, seed=at, start_hash=str(at), return_=value, trace_hash=f"{value}", **changes)
        for at, value in enumerate(values)
    ]


def test_counts_are_those_counted_by_hand():
    found = metric(judged(rows(BASE), rows(NEW)), "success_rate")
    assert [flip.seed for flip in found.gained or ()] == [14, 15, 16]
    assert [flip.seed for flip in found.lost or ()] == [7, 8, 9, 10, 11]
    assert (found.pairs, found.base, found.new) == (20, 14 / 20, 12 / 20)
    assert found.difference == pytest.approx(-2 / 20)
    assert found.bounds is None


def test_p_values_are_those_of_the_binomial_test():
    found = metric(judged(rows(BASE), rows(NEW)), "success_rate")
    assert found.p == pytest.approx(stats.binomtest(3, 8).pvalue)
    assert found.p_worse == pytest.approx(stats.binomtest(5, 8, alternative="greater").pvalue)


def test_p_values_of_means_are_those_of_a_permutation_test():
    base, new = [5.0, 4.0, 7.0, 6.0, 5.5, 3.0, 8.0, 6.5], [4.0, 4.5, 5.0, 5.5, 4.0, 3.5, 6.0, 6.0]
    found = metric(judged(with_returns(base), with_returns(new)), "mean_return")

    def by_signs(alternative):
        return stats.permutation_test(
            (np.array(new), np.array(base)),
            lambda x, y, axis: np.mean(x - y, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=math.inf,
            alternative=alternative,
        ).pvalue

    assert found.p == pytest.approx(by_signs("two-sided"))
    assert found.p_worse == pytest.approx(by_signs("less"))


def test_interval_is_the_one_whose_lower_end_the_margin_is_held_against():
    found = metric(judged(rows(BASE), rows(NEW), alpha=0.1), "success_rate")
    assert found.interval is not None
    assert found.interval.confidence == pytest.approx(0.8)
    assert found.interval.low < found.difference < found.interval.high


@pytest.mark.parametrize(
    ("gained", "lost", "both", "margin", "verdict"),
    [
        (3, 3, 200, "10%", "not_worse"),
        (0, 0, 20, "5%", "inconclusive"),
        (0, 0, 60, "5%", "not_worse"),
        (1, 12, 37, "5%", "worse"),
        (2, 4, 44, "5%", "inconclusive"),
        # Worse for certain, but by less than may pass.
        (0, 6, 994, "5%", "not_worse"),
    ],
)
def test_verdict_of_success(gained, lost, both, margin, verdict):
    base = rows([False] * gained + [True] * lost + [True] * both)
    new = rows([True] * gained + [False] * lost + [True] * both, trace_hash="other")
    comparison = judged(base, new, margins=parse_margins([margin]))
    assert comparison.verdict == verdict
    found = metric(comparison, "success_rate")
    assert found.interval is not None
    assert (found.interval.low > -float(margin.strip("%")) / 100) == (verdict == "not_worse")


def test_verdict_of_returns():
    generator = np.random.default_rng(0)
    base = generator.normal(100, 5, 60)
    same, less = base + generator.normal(0, 5, 60), base + generator.normal(-20, 5, 60)
    wild = base + generator.normal(0, 60, 60)
    verdicts = [judged(with_returns(base), with_returns(new)).verdict for new in (same, less, wild)]
    assert verdicts == ["not_worse", "worse", "inconclusive"]


def test_few_pairs_without_any_difference_show_nothing():
    base, new = with_returns([1.0] * 4), with_returns([1.0] * 4, length=2)
    assert judged(base, new).verdict == "inconclusive"
    base, new = with_returns([1.0] * 5), with_returns([1.0] * 5, length=2)
    assert judged(base, new).verdict == "not_worse"


def test_one_pair_has_no_interval_of_a_mean():
    found = judged(with_returns([1.0]), with_returns([2.0])).metrics[0]
    assert (found.interval, found.detectable, found.pairs_needed, found.verdict) == (
        None,
        None,
        None,
        "inconclusive",
    )


def test_runs_that_did_the_same_are_not_worse_however_few():
    for made in (rows([True]), rows([False, True]), with_returns([0.0, 0.0])):
        comparison = judged(made, made)
        assert comparison.is_identical
        assert comparison.verdict == "not_worse"


def test_the_same_actions_with_another_length_or_end_are_not_identical():
    assert not judged(with_returns([1.0]), with_returns([1.0], length=4)).is_identical
    assert not judged(with_returns([1.0]), with_returns([1.0], end="truncated")).is_identical


def test_the_same_actions_from_another_start_or_to_another_success_are_not_identical():
    """An environment that ignores its seed may pay the same for the same actions, whatever it shows."""
    base = [row(at, seed=at, start_hash=f"b{at}", success=True) for at in range(4)]
    elsewhere = [row(at, seed=at, start_hash=f"n{at}", success=True) for at in range(4)]
    lost = [row(at, seed=at, start_hash=f"b{at}", success=at > 0) for at in range(4)]
    assert judged(base, base).is_identical
    for new in (elsewhere, lost):
        comparison = judged(base, new)
        assert (comparison.is_identical, comparison.verdict) == (False, "inconclusive")


@pytest.mark.parametrize("other", [{}, {"message": "KeyError: 'arm'"}])
def test_pair_that_errored_on_both_sides_is_not_the_same(other):
    """Nineteen of twenty pairs were never finished, by one fault or by two: the last one decides nothing."""
    base = [errored(at, seed=at) if at else row(at, seed=at, success=True) for at in range(20)]
    new = [errored(at, seed=at, **other) if at else row(at, seed=at, success=True) for at in range(20)]
    for metrics in ((), ("mean_return",)):
        comparison = judged(base, new, metrics=metrics)
        assert (comparison.is_identical, comparison.verdict) == (False, "inconclusive")


def test_claim_over_pairs_that_errored_on_both_sides_counts_the_others_alone():
    base = [errored(at, seed=at) if at < 5 else row(at, seed=at, success=True) for at in range(85)]
    comparison = judged(base, base)
    assert (comparison.is_identical, comparison.verdict) == (False, "not_worse")
    found = metric(comparison, "success_rate")
    assert (found.pairs, found.errored) == (80, 5)


def test_pairs_that_errored_by_another_fault_repeat_none():
    """The same steps from one start end in a fault of the environment, or of the policy: chance is behind that."""
    base = [errored(at, f"RuntimeError: fault {at % 2}", seed=at, start_hash="one") for at in range(8)]
    base[0] = row(0, seed=0)
    pairs = pair_runs(stored(base), stored(base))
    assert (pairs.repeats, len(pairs.pairs)) == (0, 8)


def test_episodes_that_end_in_another_success_repeat_none():
    base = [row(at, seed=at, start_hash="one", success=at < 4) for at in range(8)]
    comparison = judged(base, base)
    assert (comparison.pairs.repeats, len(comparison.pairs.pairs)) == (0, 8)


def test_seed_that_comes_twice_is_paired_by_occurrence():
    base = [row(at, seed=seed, return_=value) for at, (seed, value) in enumerate([(5, 1.0), (6, 2.0), (5, 3.0)])]
    new = [row(at, seed=seed, return_=value) for at, (seed, value) in enumerate([(5, 10.0), (5, 30.0), (7, 9.0)])]
    pairs = pair_runs(stored(base), stored(new))
    assert [(pair.base.return_, pair.new.return_) for pair in pairs.pairs] == [(1.0, 10.0), (3.0, 30.0)]
    assert (pairs.base_only, pairs.new_only) == ([6], [7])


def test_pairs_that_repeat_one_another_step_by_step_count_once():
    def of(wins):
        return [
            row(at, seed=at, start_hash=str(at % 3), trace_hash=f"{at % 3}{wins[at % 3]}", success=wins[at % 3])
            for at in range(9)
        ]

    base, new = of([True, True, False]), of([True, False, False])
    comparison = judged(base, new)
    assert comparison.pairs.repeats == 6
    success = metric(comparison, "success_rate")
    assert (success.pairs, success.effective) == (9, 3)
    assert [flip.seed for flip in success.lost or ()] == [1, 4, 7]
    once = metric(judged(base[:3], new[:3]), "success_rate")
    assert (success.base, success.new, success.difference) == (once.base, once.new, once.difference)
    assert (success.p, success.p_worse, success.interval) == (once.p, once.p_worse, once.interval)
    assert success.detectable == once.detectable
    # One of nine goes on otherwise from the same start: chance comes after it, and all nine count.
    chance = [*new[:8], row(8, seed=8, start_hash="2", trace_hash="else", success=True)]
    assert judged(base, chance).pairs.repeats == 0


@pytest.mark.parametrize("name", ["success_rate", "mean_return"])
def test_starts_that_come_unequally_often_pass_no_collapse(name):
    """BASE wins the 96 of 100 episodes that begin alike, and NEW the four others."""

    def of(wins):
        starts = ["often" if at % 25 else str(at) for at in range(100)]
        return [
            row(
                at,
                seed=at,
                start_hash=start,
                trace_hash=f"{start}{wins}",
                success=(start == "often") == wins,
                return_=float((start == "often") == wins),
            )
            for at, start in enumerate(starts)
        ]

    found = metric(judged(of(True), of(False), metrics=(name,)), name)
    assert (found.pairs, found.effective) == (100, 1)
    assert (found.base, found.new, found.difference) == (0.96, 0.04, pytest.approx(-0.92))
    assert found.verdict == "inconclusive"
    if found.interval is not None:
        assert found.interval.low <= -0.92 <= found.interval.high


def test_order_of_the_seeds_changes_nothing():
    base, new = rows(BASE), rows(NEW)
    turned = [row(at, seed=one.seed, success=one.success, return_=one.return_) for at, one in enumerate(new[::-1])]
    assert metric(judged(base, turned), "success_rate").p == metric(judged(base, new), "success_rate").p


def test_without_a_common_seed_nothing_is_compared():
    said = refusal(rows([True, False]), rows([True, False], first_seed=50))
    assert "no seed in common: BASE played 2 from 0 to 1, NEW 2 from 50 to 51" in said
    assert "played seed 0, NEW seed 50" in refusal(rows([True]), rows([True], first_seed=50))


def test_runs_without_seeds_are_paired_in_order_if_that_is_allowed():
    base = [row(at, seed=None, return_=float(at)) for at in range(3)]
    new = [row(at, seed=None, return_=float(at)) for at in range(4)]
    unseeded = stored(base, seeded=False), stored(new, seeded=False)
    comparison = compare(*unseeded, Judging(allowed=("seeded",)))
    assert [(pair.base.index, pair.new.index) for pair in comparison.pairs.pairs] == [(0, 0), (1, 1), (2, 2)]
    assert not comparison.pairs.is_by_seed


def test_pairs_without_a_result_are_left_out_counted_and_bounded():
    base = [*rows([True, True, False, None]), errored(4, seed=4), *rows([True] * 7)[5:]]
    new = [*rows([True, False, True, True, True]), errored(5, seed=5), *rows([True] * 7)[6:]]
    found = metric(judged(base, new), "success_rate")
    # Pairs 0, 1, 2 and 6 count; in 3 BASE reported nothing, in 4 BASE errored, in 5 NEW did.
    assert (found.pairs, found.errored, found.unreported) == (4, 2, 1)
    assert (found.base, found.new, found.difference) == (0.75, 0.75, 0.0)
    # Pairs 3 and 4: NEW won, BASE is open: 0 to +1 each. Pair 5: BASE won, NEW is open: -1 to 0.
    assert found.bounds == (-1 / 7, 2 / 7)
    returns = metric(judged(base, new), "mean_return")
    assert (returns.pairs, returns.errored, returns.unreported, returns.bounds) == (5, 2, 0, None)


def test_returns_that_are_not_finite_are_left_out():
    base = with_returns([1.0, math.nan, 1e308, 2.0])
    new = with_returns([1.0, 1.0, -1e308, 2.0])
    found = metric(judged(base, new), "mean_return")
    assert (found.pairs, found.errored, found.unreported) == (2, 0, 2)


def test_a_loss_from_one_rare_start_is_not_cut_away():
    """Six starts come twenty times, six come once; NEW loses 700 in one of these."""

    def of(loss):
        starts = [start for start in range(12) for _ in range(20 if start < 6 else 1)]
        paid = {start: 100.0 + start for start in range(12)}
        paid[11] -= loss
        return [
            row(at, seed=at, start_hash=str(start), trace_hash=f"{start} {loss}", return_=paid[start])
            for at, start in enumerate(starts)
        ]

    comparison = judged(of(0), of(700), metrics=("mean_return",), margins=parse_margins(["return=6"]))
    found = metric(comparison, "mean_return")
    assert (found.verdict, found.difference) == ("inconclusive", pytest.approx(-700 / 126))
    assert found.interval.low < -100


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["mean_return", "speed"])
def test_a_new_run_is_not_shown_to_be_as_good_where_it_alone_is_no_finite_number(name, value):
    def of(last):
        values = [at % 7 + 1.0 for at in range(40)] + [last]
        return [row(at, seed=at, return_=one, metrics={"speed": one}) for at, one in enumerate(values)]

    assert metric(judged(of(1.0), of(1.0), metrics=(name,)), name).verdict == "not_worse"
    found = metric(judged(of(1.0), of(value), metrics=(name,)), name)
    assert (found.pairs, found.unreported, found.verdict) == (40, 1, "inconclusive")
    # Where BASE is none either, there is nothing that it could be worse than.
    assert metric(judged(of(value), of(1.0), metrics=(name,)), name).verdict == "not_worse"


def test_numbers_of_any_size_are_judged():
    base, new = with_returns([1e200, 2e200, 3e200]), with_returns([2e200, 2e200, 1e200])
    assert judged(base, new).verdict == "inconclusive"
    margins = parse_margins(["return=1e-200"])
    assert judged(base, new, margins=margins).metrics[0].pairs_needed is None


def test_success_is_judged_where_it_was_reported_and_the_return_is_shown():
    comparison = judged(rows(BASE), rows(NEW))
    assert [(one.metric, one.verdict is not None) for one in comparison.metrics] == [
        ("success_rate", True),
        ("mean_return", False),
    ]
    comparison = judged(with_returns([1.0, 2.0]), with_returns([2.0, 1.0]))
    assert [one.metric for one in comparison.metrics] == ["mean_return"]


def test_success_that_one_side_did_not_report_is_not_judged():
    # Silence is not taken for a reason to judge something else.
    assert "success was not measured: NEW reported none" in refusal(rows([True, False]), rows([None, None]))
    assert "success was not measured: NEW reported none" in refusal(
        rows([True, False]), rows([None, None]), metrics=("success",)
    )
    said = refusal(rows([True, None]), rows([None, True]), metrics=("success_rate",))
    assert "success was not measured: no pair reported it on both sides" in said
    assert "judge mean_return, or run with --success KEY" in said


def test_info_metric_is_judged_if_it_is_asked_for():
    base = [row(at, seed=at, metrics={"speed": 1.0 + at / 100, "only_base": 1.0}) for at in range(30)]
    new = [row(at, seed=at, metrics={"speed": 0.5 + at / 70, "gap": None}) for at in range(30)]
    comparison = judged(base, new, metrics=("speed",))
    assert [(one.metric, one.verdict) for one in comparison.metrics] == [("speed", "worse"), ("mean_return", None)]
    said = refusal(base, new, metrics=("sped",))
    assert "there is no metric `sped` in both runs; did you mean speed?" in said
    assert "name one of mean_return, speed" in said
    assert "there is no metric `only_base`" in refusal(base, new, metrics=("only_base",))
    assert "there is no metric `gap`" in refusal(base, new, metrics=("gap",))


def test_p_values_of_several_metrics_are_raised_by_holm():
    generator = np.random.default_rng(3)
    base = [row(at, seed=at, success=True, return_=1.0 + generator.normal()) for at in range(40)]
    new = [row(at, seed=at, success=at > 5, return_=0.7 + generator.normal()) for at in range(40)]
    comparison = judged(base, new, metrics=("success", "return"))
    raw = [one.p_worse for one in comparison.judged]
    adjusted = [one.p_worse_adjusted for one in comparison.judged]
    low, high = sorted(raw)
    assert sorted(adjusted) == pytest.approx([2 * low, max(high, 2 * low)])
    assert judged(base, new, metrics=("success", "return")).judged[0].metric == "success_rate"


@pytest.mark.parametrize(
    ("verdicts", "overall"),
    [("nn", "not_worse"), ("ni", "inconclusive"), ("nw", "worse"), ("iw", "worse"), ("ii", "inconclusive")],
)
def test_overall_verdict(verdicts, overall):
    levels = {"n": 0.0, "w": -20.0}
    generator = np.random.default_rng(1)

    def new_values(kind):
        return generator.normal(0, 60, 60) if kind == "i" else generator.normal(levels[kind], 4, 60)

    first, second = map(new_values, verdicts)
    base = [row(at, seed=at, return_=100.0, metrics={"m": 100.0}) for at in range(60)]
    new = [
        row(at, seed=at, return_=100.0 + first[at], metrics={"m": 100.0 + second[at]}, trace_hash="x")
        for at in range(60)
    ]
    comparison = judged(base, new, metrics=("return", "m"))
    assert [one.verdict for one in comparison.judged] == [
        {"n": "not_worse", "w": "worse", "i": "inconclusive"}[kind] for kind in verdicts
    ]
    assert comparison.verdict == overall


@pytest.mark.parametrize("alpha", [0.0, 0.5, -0.1, 1.0, math.nan])
def test_alpha_that_cannot_be_meant_is_named(alpha):
    assert "  at    --alpha" in refusal(rows(BASE), rows(NEW), alpha=alpha)


def test_margin_that_is_a_share_of_nothing_is_named():
    said = refusal(with_returns([0.0, 0.0]), with_returns([1.0, 0.0]))
    assert "the margin of mean_return is a share of what BASE has, which is 0" in said
    assert "return=10" in said


def test_margin_of_what_is_not_judged_is_named():
    said = refusal(rows(BASE), rows(NEW), margins=parse_margins(["return=10"]))
    assert "a margin of `mean_return`, but judged is success_rate" in said


def test_runs_in_which_everything_errored_are_refused():
    broken = [errored(at, seed=at) for at in range(3)]
    said = refusal(rows([True] * 3), broken)
    assert "in none of the 3 pairs both episodes have a result: 3 of them errored" in said


def test_run_that_failed_is_refused():
    with pytest.raises(HarnessError, match="run new failed") as caught:
        compare(stored(rows(BASE)), stored(rows(NEW), name="new", status="failed"), Judging())
    mended(caught.value)


def test_run_without_rows_is_refused():
    for base, new in (([], rows([True])), (rows([True]), [])):
        assert "holds no finished episode" in refusal(base, new)


@pytest.mark.parametrize("rate", [0.7, 0.9])
def test_two_runs_of_one_policy_are_called_worse_no_more_often_than_alpha(rate):
    generator = np.random.default_rng(11)
    base, new = (generator.random((2, 2000, 50)) < rate).astype(int)
    gained, lost = ((new > base).sum(1)), ((base > new).sum(1))
    counts, times = np.unique(np.stack([gained, lost], 1), axis=0, return_counts=True)
    worse = 0
    for (plus, minus), often in zip(counts.tolist(), times.tolist(), strict=True):
        both = 50 - plus - minus
        verdict = judged(
            rows([False] * plus + [True] * minus + [True] * both),
            rows([True] * plus + [False] * minus + [True] * both, trace_hash="x"),
        ).verdict
        worse += often * (verdict == "worse")
    assert worse / 2000 <= 0.05
    assert worse > 0
