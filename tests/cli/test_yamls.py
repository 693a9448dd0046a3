"""YAML for routes: numbers are numbers, a key stands once, every value knows its line."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import yaml
from cli_toys import mended
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.errors import RouteError
from rlmesh_cli.yamls import flow_text, parse_document, parse_scalar, read_document


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("-1e-2", -0.01),
        ("1e6", 1000000.0),
        ("1.0e6", 1000000.0),
        ("1.0e-3", 0.001),
        ("-5e-4", -0.0005),
        ("5.", 5.0),
        (".5", 0.5),
        ("inf", math.inf),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("7", 7),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("yes", "yes"),
        ("off", "off"),
        ("'7'", "7"),
        ('"null"', "null"),
        ("CartPole-v1", "CartPole-v1"),
        ("2020-01-01", "2020-01-01"),
        ("12:30:45", "12:30:45"),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("[1, 2e0]", [1, 2.0]),
        ("{a: 1}", {"a": 1}),
    ],
)
def test_scalar_is_what_it_looks_like(text, value):
    read = parse_scalar(text)
    assert read == value
    assert type(read) is type(value)


def test_nan_is_a_number():
    assert math.isnan(parse_scalar(".nan"))


def test_leading_zeros_do_not_make_a_whole_number_a_fraction():
    """YAML 1.2 reads 007 as the whole number 7."""
    assert repr(parse_scalar("007")) == "7"


@pytest.mark.parametrize("text", ["", "  "])
def test_no_text_is_no_null(text):
    assert parse_scalar(text) == text


@settings(max_examples=100, deadline=None)
@given(st.floats(allow_nan=False))
def test_every_float_is_read_as_it_is_written(number):
    read = parse_scalar(repr(number))
    assert type(read) is float
    assert math.copysign(1, read) == math.copysign(1, number)
    assert read == number


_TEXT = st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=8)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(_VALUES)
def test_json_is_read_as_json(value):
    assert parse_scalar(json.dumps(value, ensure_ascii=False)) == value


def test_every_value_knows_its_line():
    document = parse_document("env:\n  id: X\n  wrappers:\n    - A\n    - name: B\nseed: 1\n", "r.yaml")
    assert document.lines == {
        (): 1,
        ("env",): 1,
        ("env", "id"): 2,
        ("env", "wrappers"): 3,
        ("env", "wrappers", 0): 4,
        ("env", "wrappers", 1): 5,
        ("env", "wrappers", 1, "name"): 5,
        ("seed",): 6,
    }


def test_empty_document_is_an_empty_mapping():
    assert parse_document("# nothing\n", "r.yaml").value == {}


REFUSED = {
    "key twice": ("a: 1\nb:\n  c: 1\n  'c': 2\n", "key `b.c` stands twice, first in line 3", "r.yaml:4: b.c"),
    "alias": ("a: &x 1\nb: *x\n", "alias `*x`", "r.yaml:2"),
    "merge": ("a: &x {b: 1}\nc:\n  <<: *x\n", "alias `*x`", "r.yaml:3"),
    "none": ("a:\n  b: None\n", "`None` is not a YAML value", "r.yaml:2"),
    "list as key": ("a: 1\n? [b]\n: 2\n", "a key must be a word", "r.yaml:2"),
    "tab": ("a:\n\t- b\n", "cannot start any token", "r.yaml:2"),
    "open bracket": ("a: [1,\n\n2\n", "not YAML", "r.yaml:4"),
    "two documents": ("a: 1\n---\nb: 1\n", "another document", "r.yaml:2"),
    "zero byte": ("a: \0\n", "#x0000", "r.yaml"),
    "many values": ("a: [" + "1," * 25_000 + "]", "20,000 values", "r.yaml"),
    "deep lists": ("a: " + "[" * 700 + "]" * 700, "not YAML", "r.yaml"),
    "deep mappings": ("{a: " * 900 + "1" + "}" * 900, "not YAML", "r.yaml"),
    "bomb": ("a: &a [x]\n" + "".join(f"a{n}: &a{n} [*a, *a]\n" for n in range(50)), "alias", "r.yaml:2"),
    "number too long": ("a: 1\nseed: " + "9" * 5000, "", "r.yaml"),
    "python object": ("a: !!python/object/apply:os.getcwd []\n", "tag", "r.yaml:1"),
    "unknown tag": ("a: 1\nb: !mine 5\n", "tag", "r.yaml:2"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_meant_is_refused_with_place_and_mend(what):
    text, words, place = REFUSED[what]
    with pytest.raises(RouteError) as caught:
        parse_document(text, "r.yaml")
    assert words in mended(caught.value).cause
    assert caught.value.where.startswith(place)


@pytest.mark.parametrize(("text", "value"), [("!!str 5", "5"), ("!!float 5", 5.0), ("!!int '5'", 5)])
def test_a_tag_that_names_a_type_is_obeyed_or_refused(text, value):
    try:
        told = repr(parse_scalar(text))
    except RouteError as error:
        told = error.cause
    assert told == repr(value) or "tag" in told


UNREADABLE = {
    "missing": (None, "no such route file"),
    "binary": (bytes(range(256)), "cannot be read"),
    "huge": (b"a: " + b"x" * 1_000_001, "more than 1,000,000 bytes"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_file_that_cannot_be_read_is_named(what, tmp_path: Path):
    content, words = UNREADABLE[what]
    path = tmp_path / "my route.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RouteError) as caught:
        read_document(path)
    assert words in mended(caught.value).cause
    assert "my route.yaml" in str(caught.value)


def test_folder_is_no_route(tmp_path: Path):
    with pytest.raises(RouteError, match="is a folder") as caught:
        read_document(tmp_path)
    mended(caught.value)


def test_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path):
    path = tmp_path / "r.yaml"
    path.write_bytes("a: 1\nb: é\n".replace("\n", "\r\n").encode("utf-8-sig"))
    document = read_document(path)
    assert document.value == {"a": 1, "b": "é"}
    assert document.lines[("b",)] == 2


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab: #'\"\n\\-{}é", max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN)
@settings(max_examples=300)
def test_what_is_written_in_one_line_is_read_as_it_was(value):
    text = flow_text({"key": value})
    assert "\n" not in text
    assert text.isascii()
    assert parse_document(text, "text").value == {"key": value}


@pytest.mark.parametrize(
    "word", ["no", "Yes", "null", "None", "~", "1e3", "0x1", "1_000", "true", "nan", ".inf", "", "-", "#"]
)
def test_text_that_looks_like_something_else_stays_text_for_every_reader(word):
    assert parse_document(flow_text([word]), "text").value == [word]
    assert yaml.safe_load(flow_text([word])) == [word]
