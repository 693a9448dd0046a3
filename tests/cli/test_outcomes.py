"""Outcomes: what an episode's infos say of success and metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_cli.outcomes import InfoReader, Outcome, SuccessRule
from rlmesh_envs.info_forms import FormedInfos, InfoForm


def told(infos, rule=None, metrics=(), reset=None) -> Outcome:
    """Return what an episode of these infos has reported."""
    reader, outcome = InfoReader(rule or SuccessRule(), metrics), Outcome()
    if reset is not None:
        reader.read_reset(reset, outcome)
    for info in infos:
        reader.read(info, outcome)
    return outcome


def judged(infos, total=0.0, **rule):
    return told(infos, SuccessRule(**rule)).judge(SuccessRule(**rule), total)


@pytest.mark.parametrize(
    ("infos", "final", "any_"),
    [
        ([{}, {}], None, None),
        ([{"is_success": False}, {"is_success": True}, {"is_success": False}], False, True),
        ([{"is_success": True}, {}], True, True),
        ([{"is_success": False}, {}], False, False),
        ([{"is_success": np.bool_(True)}], True, True),
        ([{"is_success": np.array([True])}], True, True),
        ([{"is_success": np.array(0.0)}], False, False),
        ([{"is_success": 1.0}, {"is_success": 0}], False, True),
        ([{"is_success": math.nan}], None, None),
        ([{"is_success": None}], None, None),
        ([{"is_success": "yes"}], None, None),
        ([{"is_success": np.array([True, False])}], None, None),
        ([{"is_success": True}, {"is_success": math.nan}], True, True),
        ([{"success": True}], True, True),
        ([{"success": True, "is_success": False}], False, False),
        ([{"success": True, "is_success": None}], True, True),
    ],
)
def test_final_is_the_last_value_reported_and_any_whether_one_was_true(infos, final, any_):
    outcome = told(infos)
    assert (outcome.final, outcome.any) == (final, any_)
    assert judged(infos)[0] is final
    assert judged(infos, when="any")[0] is any_


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.booleans(), max_size=8))
def test_flags_are_taken_as_a_plain_loop_takes_them(flags):
    outcome = told([{} if flag is None else {"is_success": flag} for flag in flags])
    known = [flag for flag in flags if flag is not None]
    assert outcome.final == (known[-1] if known else None)
    assert outcome.any == (any(known) if known else None)


def test_key_that_was_read_is_named():
    assert judged([{"success": True}]) == (True, "success")
    assert judged([{"success": True, "is_success": False}]) == (False, "is_success")
    assert judged([{}]) == (None, None)
    assert judged([{"won": 1}], keys=("won",)) == (True, "won")
    assert judged([{"is_success": True}], keys=("won",)) == (None, None)


def test_dots_lead_into_nested_infos_unless_the_key_is_there_itself():
    assert judged([{"task": {"won": True}}], keys=("task.won",)) == (True, "task.won")
    assert judged([{"task.won": False, "task": {"won": True}}], keys=("task.won",)) == (False, "task.won")
    assert judged([{"task": {"lost": True}}], keys=("task.won",)) == (None, None)
    assert judged([{"task": 5}], keys=("task.won",)) == (None, None)


@pytest.mark.parametrize(("total", "is_enough"), [(4.9, False), (5.0, True), (5.1, True), (-5.0, False)])
def test_a_bound_on_the_return_includes_the_bound(total, is_enough):
    assert judged([{"is_success": not is_enough}], total, return_at_least=5.0) == (is_enough, "return_at_least")


def test_success_at_reset_is_kept_apart():
    outcome = told([{"is_success": False}], reset={"is_success": True})
    assert (outcome.at_reset, outcome.final, outcome.any) == (True, False, False)
    assert told([], reset={"success": 0}).at_reset is False
    assert told([], reset={"other": 1}).at_reset is None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (SuccessRule(), "is_success or success, last value"),
        (SuccessRule(keys=("won",), when="any"), "won, any step"),
        (SuccessRule(return_at_least=475.0), "return >= 475"),
        (SuccessRule(return_at_least=-0.5), "return >= -0.5"),
        (SuccessRule(return_at_least=1234567.0), "return >= 1234567"),
    ],
)
def test_rule_is_told_in_words_without_rounding(rule, words):
    assert rule.describe() == words


@pytest.mark.parametrize(
    ("infos", "value"),
    [
        ([{"speed": 1}, {"speed": np.float32(2.5)}], 2.5),
        ([{"speed": 1.5}, {}], 1.5),
        ([{"speed": True}], 1.0),
        ([{"speed": np.array([[3]])}], 3.0),
        ([{}], None),
        ([{"speed": "fast"}], None),
        ([{"speed": [1, 2]}], None),
        ([{"speed": math.nan}], math.nan),
        ([{"speed": np.float32(math.nan)}], math.nan),
        ([{"speed": math.inf}], math.inf),
        ([{"speed": [-math.inf]}], -math.inf),
        ([{"speed": 1.5}, {"speed": math.nan}], math.nan),
        ([{"speed": math.inf}, {"speed": 1.5}], 1.5),
        ([{"speed": math.inf}, {}], math.inf),
        ([{"speed": 1.5}, {"speed": None}], 1.5),
    ],
)
def test_metric_is_the_last_number_reported(infos, value):
    assert told(infos, metrics=("speed",)).numbers(("speed",)) == {"speed": value}


def test_nested_metric_outlives_an_info_without_it():
    infos = [{"arm": {"speed": 2}}, {"arm": {"height": 1}}, {"arm": None}]
    assert told(infos, metrics=("arm.speed",)).numbers(("arm.speed",)) == {"arm.speed": 2.0}


def test_metric_is_kept_though_the_environment_uses_its_info_again():
    reader, outcome, info = InfoReader(SuccessRule(), ("speed",)), Outcome(), {}
    info["speed"] = 2.0
    reader.read(info, outcome)
    info.clear()
    reader.read(info, outcome)
    assert outcome.numbers(("speed",)) == {"speed": 2.0}


def test_every_metric_has_an_entry():
    assert told([{"a": 1}], metrics=("a", "b")).numbers(("a", "b")) == {"a": 1.0, "b": None}


@pytest.mark.parametrize(
    ("keys", "rule", "metrics", "is_ignored"),
    [
        (("x", "y"), SuccessRule(), (), True),
        (("x", "success"), SuccessRule(), (), False),
        (("x", "y"), SuccessRule(), ("y",), False),
        (("x", "y"), SuccessRule(keys=("y.done",)), (), False),
        (("x", "y.z"), SuccessRule(), ("y.z",), False),
        (("x", "z"), SuccessRule(return_at_least=1.0), ("y",), True),
    ],
)
def test_infos_are_left_alone_only_where_their_form_has_nothing_to_say(keys, rule, metrics, is_ignored):
    reader = InfoReader(rule, metrics)
    for _ in range(2):
        infos = FormedInfos(InfoForm(keys, (float, bool), False), np.array([[0.5, 1.0], [1.5, 0.0]]))
        assert reader.ignores(infos) is is_ignored
        assert list(infos) == [dict(zip(keys, row, strict=True)) for row in ((0.5, True), (1.5, False))]
    assert not reader.ignores([{"x": 1.0}])


@pytest.mark.parametrize("value", ["yes", 0.7, math.nan, np.array([True, False]), [True, True], object()])
def test_a_report_of_success_that_cannot_be_read_is_told_once_with_its_count(value):
    book = AdvisoryBook()
    reader, outcome = InfoReader(SuccessRule(), (), book), Outcome()
    for _ in range(3):
        reader.read({"is_success": value}, outcome)
    assert outcome.final is None
    (told,) = book
    assert (told.code, told.severity, told.count) == ("success-unreadable", "caution", 3)
    assert told.message.startswith("`is_success` of the infos is ")
    assert told.message.endswith(", which is neither true nor false: it does not count")


@pytest.mark.parametrize("value", ["high", np.array([1.0, 2.0])], ids=repr)
def test_a_metric_that_cannot_be_read_is_told_by_its_name(value):
    book = AdvisoryBook()
    reader, outcome = InfoReader(SuccessRule(), ("score", "speed"), book), Outcome()
    reader.read({"score": value, "speed": 2.0}, outcome)
    assert outcome.reported == {"speed": 2.0}
    (told,) = book
    assert (told.code, told.count) == ("metric-unreadable", 1)
    assert told.message.startswith("`score` of the infos is ")
    assert told.message.endswith(", which is no finite number: it does not count")


@pytest.mark.parametrize("value", [math.inf, np.float32(-math.inf), np.array([math.nan])], ids=repr)
@pytest.mark.parametrize(
    "wrap", [lambda value: {"a.b": value}, lambda value: {"a": {"b": value}}], ids=["flat", "nested"]
)
def test_a_metric_that_is_not_finite_is_told_and_kept(value, wrap):
    book = AdvisoryBook()
    reader, outcome = InfoReader(SuccessRule(), ("a.b",), book), Outcome()
    reader.read(wrap(value), outcome)
    number = float(np.ravel(value)[0])
    assert str(outcome.reported["a.b"]) == str(number)
    (told,) = book
    assert (told.code, told.severity, told.count, told.subject) == ("metric-unreadable", "caution", 1, "a.b")
    assert told.message == (
        f"`a.b` of the infos is {number}, which is no finite number: where an episode ends with it, no gate passes"
    )


@pytest.mark.parametrize("info", [{}, {"is_success": None}, {"is_success": True}, {"is_success": np.float32(0)}])
def test_what_is_readable_or_not_there_needs_no_word(info):
    book = AdvisoryBook()
    InfoReader(SuccessRule(), ("score",), book).read(info, Outcome())
    assert not list(book)
