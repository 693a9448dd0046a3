"""Records: strict JSON, no NaN, no numpy, no key lost."""

from __future__ import annotations

import datetime
import enum
import json
import math
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_cli.records import restored, strict_json, to_plain


def refuse(literal: str) -> NoReturn:
    raise AssertionError(f"not JSON: {literal}")


def written(value: Any) -> Any:
    """Return what a strict reader gets of a record."""
    return json.loads(strict_json(value), parse_constant=refuse)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Pair(msgspec.Struct):
    left: Any
    right: Any = None


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.int64(-1), -1),
        (np.uint8(200), 200),
        (np.float32(1.5), 1.5),
        (np.float16(0.5), 0.5),
        (np.longdouble(2), 2.0),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.array(1.5), 1.5),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.zeros((0, 3)), []),
        (np.asfortranarray(np.arange(4.0).reshape(2, 2)), [[0.0, 1.0], [2.0, 3.0]]),
        (np.array([1, "a"], object), [1, "a"]),
        (np.array(["a", "b"]), ["a", "b"]),
        ((1, [2, (3,)]), [1, [2, [3]]]),
        ({3, 1}, [1, 3]),
        (frozenset("ba"), ["a", "b"]),
        (Path("/a/b"), "/a/b"),
        (2**70, 2**70),
        (True, True),
        (None, None),
        ("é\n\0", "é\n\0"),
        (Level.HIGH, 3),
        (Pair(np.float32(2), {"a": (1,)}), {"left": 2.0, "right": {"a": [1]}}),
        ({np.int64(1): "a", 2.5: "b", None: "c"}, {"1": "a", "2.5": "b", "None": "c"}),
    ],
)
def test_value_stays_what_it_is(value, plain):
    assert written({"value": value}) == {"value": plain}
    assert written([value]) == [plain]


@pytest.mark.parametrize(
    "value",
    [
        object(),
        Colour.RED,
        1 + 2j,
        np.complex64(1),
        np.array([1j]),
        b"x",
        np.bytes_(b"x"),
        datetime.date(2020, 1, 1),
        int,
    ],
)
def test_value_that_json_has_no_word_for_becomes_text(value):
    (text,) = np.array(written([value])).ravel().tolist()
    assert isinstance(text, str)
    assert text


def test_text_that_is_no_unicode_can_be_written():
    """File names and arguments that are not UTF-8 come with lone surrogates."""
    assert written({"argv": ["caf\udce9"]})["argv"][0].startswith("caf")


def test_whatever_is_not_finite_is_null_and_its_path_is_named():
    record = {
        "a": math.nan,
        "b": [1.0, {"c": -math.inf}],
        "d": np.array([[0.0, np.inf]], np.float32),
        "e": Pair(np.float64("nan"), 2.5),
        "f": 1.0,
    }
    plain = written(record)
    assert plain.pop("nonfinite") == ["a", "b[1].c", "d[0][1]", "e.left"]
    assert plain.pop("infinite") == {"b[1].c": "-inf", "d[0][1]": "inf"}
    assert plain == {
        "a": None,
        "b": [1.0, {"c": None}],
        "d": [[0.0, None]],
        "e": {"left": None, "right": 2.5},
        "f": 1.0,
    }


def test_finite_record_has_no_flag():
    assert written({"a": 1.0, "b": [2]}) == {"a": 1.0, "b": [2]}


@pytest.mark.parametrize("value", [[math.nan], math.inf, (1, [math.nan])])
def test_what_cannot_carry_the_flag_is_refused(value):
    with pytest.raises(ValueError, match="not finite"):
        strict_json(value)


def test_flags_are_read_back_as_the_numbers_they_stand_for():
    told = {"a": None, "b": [1.0, None, {"c": None}], "d": None}
    flags = {"nonfinite": ["a", "b[1]", "b[2].c"], "infinite": {"b[1]": "-inf", "b[2].c": "inf"}}
    back = restored({**told, **flags})
    assert math.isnan(back["a"])
    assert back["b"] == [1.0, -math.inf, {"c": math.inf}]
    assert back["d"] is None
    assert restored(told) == told


def test_records_that_hold_a_nan_at_one_place_are_equal():
    """Two runs of one environment whose argument is nan are of one protocol."""
    told = {"kwargs": {"gravity": None}, "nonfinite": ["kwargs.gravity"]}
    assert restored(told) == restored(told)


@pytest.mark.parametrize(
    "flags", [{"nonfinite": 5}, {"nonfinite": ["a"], "infinite": ["a"]}, {"infinite": {"a": "infinite"}}]
)
def test_flags_that_were_edited_are_refused(flags):
    with pytest.raises(msgspec.ValidationError, match=r"\$\.(non)?(in)?finite"):
        restored({"a": None, **flags})


def test_flag_hides_no_key_of_the_record():
    with pytest.raises(ValueError, match="the key `infinite` is taken"):
        strict_json({"infinite": "mine", "x": -math.inf})
    record = {"nonfinite": "mine", "x": math.nan}
    try:
        told = strict_json(record).decode()
    except ValueError as error:
        told = str(error)
    assert "mine" in told or "`nonfinite`" in told
    assert written({"nonfinite": "mine"}) == {"nonfinite": "mine"}


@pytest.mark.parametrize(
    "value",
    [
        {0: 1, "0": 2},
        {np.int64(-1): 3, "-1": 9},
        {"deep": [{None: 1, "None": 2}]},
        {1.0: "a", np.float32(1.0): "b", "1.0": "c"},
        {True: 1, "True": 1},
    ],
)
def test_keys_that_are_written_alike_are_refused(value):
    with pytest.raises(ValueError, match="written alike"):
        strict_json(value)


def test_place_of_colliding_keys_is_named():
    with pytest.raises(ValueError, match=r"'0' in env\.kwargs"):
        strict_json({"env": {"kwargs": {0: 1, "0": 2}}})


def test_record_itself_is_not_changed():
    record = {"a": [math.nan], "b": {"c": np.zeros(1)}}
    strict_json(record)
    assert math.isnan(record["a"][0])
    assert list(record) == ["a", "b"]


def test_record_is_one_line():
    assert b"\n" not in strict_json({"a": "x\ny", "b": [1, 2]})


_LEAVES = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5)
_RECORDS = st.dictionaries(
    st.text(max_size=4).filter(lambda key: key != "nonfinite"),
    st.recursive(
        _LEAVES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_size=4,
)


def without_nonfinite(value: Any) -> tuple[Any, int]:
    """Return a record with null for NaN and infinities, and how many there were."""
    if isinstance(value, dict):
        parts = {key: without_nonfinite(part) for key, part in value.items()}
        return {key: part for key, (part, _) in parts.items()}, sum(count for _, count in parts.values())
    if isinstance(value, list):
        listed = [without_nonfinite(part) for part in value]
        return [part for part, _ in listed], sum(count for _, count in listed)
    is_bad = isinstance(value, float) and not math.isfinite(value)
    return (None, 1) if is_bad else (value, 0)


@settings(max_examples=80, deadline=None)
@given(_RECORDS)
def test_every_record_comes_back_but_for_what_is_not_finite(record):
    plain = written(record)
    back = restored(plain)
    flagged, _ = plain.pop("nonfinite", []), plain.pop("infinite", {})
    assert repr({name: back[name] for name in plain}) == repr(record)
    expected, count = without_nonfinite(record)
    assert plain == expected
    assert len(flagged) == count


def test_plain_values_come_with_the_paths():
    assert to_plain({"a": (np.nan, 1)}) == ({"a": [None, 1]}, ["a[0]"])
