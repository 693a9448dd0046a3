"""Gates: bars that a run must meet."""

from __future__ import annotations

import math

import pytest
from cli_toys import errored, mended, row
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from rlmesh_adapters.errors import RouteError
from rlmesh_cli.estimating import Estimator
from rlmesh_cli.gates import check_bounds, info_metrics, judge, parse_gate
from rlmesh_cli.outcomes import SuccessRule
from rlmesh_cli.stats import summarise


@pytest.mark.parametrize(
    ("text", "metric", "op", "bound"),
    [
        ("success_rate >= 0.9", "success_rate", ">=", 0.9),
        ("success_rate>=90%", "success_rate", ">=", 0.9),
        ("  mean_return  >  -1e2 ", "mean_return", ">", -100.0),
        ("errors == 0", "errors", "==", 0.0),
        ("arm.speed != 3", "arm.speed", "!=", 3.0),
        ("dist < .5", "dist", "<", 0.5),
        ("task/score-v2 <= 33.5%", "task/score-v2", "<=", 0.335),
        # 57.6 / 100 is 0.5760000000000001: 72 of 125 would miss it.
        ("success_rate >= 57.6%", "success_rate", ">=", 72 / 125),
        ("success_rate >= 56.6%", "success_rate", ">=", 283 / 500),
        ("_x >= +7", "_x", ">=", 7.0),
    ],
)
def test_gate_is_metric_comparison_and_number(text, metric, op, bound):
    gate = parse_gate(text)
    assert (gate.metric, gate.op, gate.bound) == (metric, op, pytest.approx(bound))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 100))
def test_percent_is_the_fraction_it_stands_for(percent):
    assert parse_gate(f"success_rate >= {percent}%").bound == percent / 100


@settings(max_examples=50, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_gate_is_written_as_it_can_be_read_again(bound):
    gate = parse_gate(f"mean_return >= {bound!r}")
    assert gate.bound == bound
    assert parse_gate(str(gate)) == gate


@pytest.mark.parametrize(
    "text",
    [
        *("", "success_rate", ">= 0.9", "success_rate >=", "success_rate = 0.9", "success_rate => 0.9"),
        *("success_rate > = 0.9", "success_rate >= 0.9 0.8", "0.9 <= success_rate", "success rate >= 0.9"),
        *("success_rate >= nan", "success_rate >= inf", "success_rate >= x", "success_rate >= %", "a >= 1e999"),
        *("success_rate >== 0.9", "success_rate >= 0,9", "[red]x[/red] >= 1"),
    ],
)
def test_what_is_no_gate_is_refused(text):
    with pytest.raises(RouteError, match="is not a") as caught:
        parse_gate(text)
    mended(caught.value)
    assert text in str(caught.value)


def verdict(text, rows, metrics=()):
    return judge(parse_gate(text), summarise(rows, planned=len(rows), rule=SuccessRule(), metrics=metrics))


ROWS = [
    row(0, return_=10.0, success=True, metrics={"v": 1.0}),
    row(1, return_=20.0, success=False, metrics={"v": None}),
    errored(2),
    row(3, return_=60.0, success=True, metrics={"v": 4.0}),
]


@pytest.mark.parametrize(
    ("text", "value", "passed"),
    [
        ("success_rate >= 0.5", 2 / 4, True),
        ("success_rate > 50%", 2 / 4, False),
        ("mean_return >= 30", 30.0, True),
        ("mean_return != 30", 30.0, False),
        ("errors == 1", 1.0, True),
        ("errors <= 0", 1.0, False),
        ("errors < 2", 1.0, True),
        ("v == 2.5", 2.5, True),
        ("w >= 0", None, False),
        ("w != 0", None, False),
    ],
)
def test_verdict_is_arithmetic_on_the_rows(text, value, passed):
    found = verdict(text, ROWS, metrics=("v", "w"))
    assert (found.value, found.passed) == (value, passed)
    assert found.metric == text.split()[0]


@pytest.mark.parametrize(
    "text", ["success_rate >= 0", "success_rate <= 1", "mean_return > -1e300", "mean_return < 0"]
)
def test_what_was_not_measured_is_never_a_pass(text):
    found = verdict(text, [errored(0)])
    assert (found.value, found.passed) == (None, False)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.data())
def test_bar_at_exactly_the_rate_is_met(total, data):
    wins = data.draw(st.integers(0, total))
    rows = [row(index, success=index < wins) for index in range(total)]
    assert verdict(f"success_rate >= {wins / total!r}", rows).passed
    assert not verdict(f"success_rate >= {math.nextafter(wins / total, 2)!r}", rows).passed


def test_metrics_that_no_run_has_by_itself_are_read_from_infos():
    gates = tuple(
        map(parse_gate, ["errors == 0", "arm.speed > 1", "mean_return > 1", "success_rate > 0", "v < 1"])
    )
    assert info_metrics(gates) == ("arm.speed", "v")


@pytest.mark.parametrize("gate", ["mean_return >= 1", "mean_return > -1", "mean_return != 3"])
def test_a_mean_that_is_not_finite_passes_no_bar(gate):
    rows = [row(0, return_=math.inf), row(1, return_=1.0)]
    verdict = judge(parse_gate(gate), summarise(rows, planned=2, rule=SuccessRule(), metrics=()))
    assert (verdict.value, verdict.passed) == (math.inf, False)


def held(text: str, rows, *, cautions: int = 0, on: str = "lower", estimator=None):
    summary = summarise(
        rows,
        planned=len(rows),
        rule=SuccessRule(),
        metrics=("speed",),
        estimator=estimator or Estimator(wants_iqm=True),
    )
    return judge(parse_gate(text), summary, cautions=cautions, on=on)


FORTY_OF_FIFTY = [row(index, success=index < 40, return_=float(index)) for index in range(50)]


@pytest.mark.parametrize(
    ("text", "held_end", "passed"),
    [
        # SciPy's exact 95 % interval of 40 of 50 is 0.6628 to 0.8997.
        ("success_rate >= 0.66", "lower", True),
        ("success_rate >= 0.67", "lower", False),
        ("success_rate <= 0.89", "upper", False),
        ("success_rate < 0.91", "upper", True),
        ("mean_return > 0", "lower", True),
        ("mean_return >= 24.5", "lower", False),
        ("iqm_return <= 24.5", "upper", False),
        ("errors <= 0", "value", True),
        ("distinct_starts >= 50", "value", True),
    ],
)
def test_the_worse_end_of_the_interval_is_held_against_a_bar(text, held_end, passed):
    verdict = held(text, FORTY_OF_FIFTY)
    assert (verdict.held, verdict.passed) == (held_end, passed)


def test_ends_are_those_of_scipy():
    expected = binomtest(40, 50).proportion_ci(method="exact")
    assert held("success_rate >= 0.5", FORTY_OF_FIFTY).value == pytest.approx(expected.low, abs=1e-9)
    wilson = held("success_rate >= 0.5", FORTY_OF_FIFTY, estimator=Estimator(method="wilson", confidence=0.9))
    expected = binomtest(40, 50).proportion_ci(confidence_level=0.9, method="wilson")
    assert wilson.value == pytest.approx(expected.low, abs=1e-9)


def test_one_episode_has_no_interval_of_its_mean():
    verdict = held("mean_return >= 0", [row(0)])
    assert (verdict.value, verdict.passed) == (None, False)


def test_counts_of_a_run_are_metrics():
    rows = [row(index, start_hash=f"{index % 3:016x}", trace_hash=f"{index:016x}") for index in range(9)]
    assert held("distinct_starts == 3", rows, on="value").passed
    assert held("cautions < 2", rows, cautions=1, on="value").passed
    assert not held("cautions == 0", rows, cautions=1, on="value").passed
    assert held("iqm_return == 4.5", rows, on="value").passed  # of 0.5 to 8.5 the middle five


@pytest.mark.parametrize("text", ["success_rate == 1", "mean_return != 3"])
def test_a_bar_of_one_value_has_no_worse_end(text):
    with pytest.raises(RouteError, match="asks for one value") as caught:
        check_bounds((parse_gate(text),), "lower")
    mended(caught.value)
    check_bounds((parse_gate(text), parse_gate("errors == 0")), "value")
    check_bounds((parse_gate("errors == 0"),), "lower")


@pytest.mark.parametrize(
    "text",
    [
        *("success_rate >= 90", "success_rate > 1", "success_rate < 0", "success_rate >= 101%"),
        *("success_rate == 1.5", "success_rate == -0.1", "success_rate == 101%"),
    ],
)
def test_bar_that_no_rate_can_meet_is_refused_before_the_run(text):
    with pytest.raises(RouteError, match="a rate is from 0 to 1") as caught:
        check_bounds((parse_gate(text),), "value")
    assert ("90 % is 0.9" in mended(caught.value).mend) is (text == "success_rate >= 90")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "success_rate >= 1",
            "success_rate > 0",
            "success_rate <= 0",
            "success_rate == 0.5",
            "success_rate == 0",
        ),
        *("success_rate == 100%", "success_rate != 0", "success_rate != 1", "success_rate != 2"),
    ],
)
def test_bar_that_some_rate_meets_is_not_refused(text):
    check_bounds((parse_gate(text),), "value")


@pytest.mark.parametrize(
    ("text", "cause", "mend"),
    [
        (
            "mean_return >= 90%",
            "`mean_return >= 90%` would be mean_return >= 0.9: only a rate is a share of 1",
            "write the return itself, such as 450; for a share of an earlier run's: "
            "--baseline RUN --margin return=10%",
        ),
        (
            "iqm_return > 12.5%",
            "`iqm_return > 12.5%` would be iqm_return > 0.125: only a rate is a share of 1",
            "write the number itself, without %",
        ),
        (
            "errors <= 7%",
            "`errors <= 7%` would be errors <= 0.07: only a rate is a share of 1",
            "write the number itself, without %",
        ),
        (
            "coverage >= 95%",
            "`coverage >= 95%` would be coverage >= 0.95: only a rate is a share of 1",
            "write `coverage >= 0.95` if coverage is from 0 to 1, else the number itself, without %",
        ),
    ],
)
def test_share_of_what_is_no_rate_is_refused_before_the_run(text, cause, mend):
    with pytest.raises(RouteError) as caught:
        check_bounds((parse_gate(text),), "value")
    assert (caught.value.cause, caught.value.where, caught.value.mend) == (cause, "gates", mend)


@pytest.mark.parametrize(
    "text", ["success_rate >= 90%", "is_success >= 90%", "success > 0%", "mean_return >= 0.9"]
)
def test_share_of_a_rate_is_not_refused(text):
    check_bounds((parse_gate(text),), "value")
