"""Changes: paths and values of what differs."""

from __future__ import annotations

import pytest

from rlmesh_cli.changes import changes_of


def said(one, other) -> list[str]:
    return [f"{change.path}: {' | '.join(change.texts)}" for change in changes_of("x", one, other)]


def spec(std: float) -> dict:
    image = {"type": "image", "key": "a key of the environment that is long", "resize": [224, 224]}
    return {"input": {"image": image, "pos": {"normalize": {"mean": [0.0], "std": [std]}}}}


@pytest.mark.parametrize(
    ("one", "other", "lines"),
    [
        (1, 1, []),
        (1, 8, ["x: 1 | 8"]),
        (None, "all", ["x: none | all"]),
        ("", "a\nb", ["x: '' | 'a\\nb'"]),
        ("a" * 64, "b" * 64, ["x: aaaaaaaaaaaa.. | bbbbbbbbbbbb.."]),
        (spec(2.5), spec(0.25), ["x.input.pos.normalize.std: [2.5] | [0.25]"]),
        ({"a": 1}, {"a": 1, "b": None}, ["x.b: not there | none"]),
        ({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 4}, ["x.a.b: 1 | 3", "x.c: 2 | 4"]),
        (
            [["pi.pt", "one"]],
            [["pi.pt", "two"], ["v.pt", "one"]],
            ["x[pi.pt]: one | two", "x[v.pt]: not there | one"],
        ),
        ([], [["pi.pt", "one"]], ["x[pi.pt]: not there | one"]),
        (
            [["a", "1"], ["b", "2"]],
            [["b", "2"], ["a", "1"]],
            ["x[0]: ['a', '1'] | ['b', '2']", "x[1]: ['b', '2'] | ['a', '1']"],
        ),
        ([], ["speed"], ["x: [] | ['speed']"]),
        ([*range(8)], [*range(5, 17)], ["x: 8 from 0 to 7 | 12 from 5 to 16"]),
        ([*range(9)], [0, 1, 2, 33, 4, 5, 6, 7, 8], ["x[3]: 3 | 33"]),
        ([{"name": "A"}], [{"name": "B"}], ["x[0].name: A | B"]),
        ([{"name": "A"}, {"name": "B"}], [{"name": "B"}], ["x[0:]: [{'name': 'A'}] | []"]),
    ],
)
def test_what_differs_is_named_by_its_path(one, other, lines):
    assert said(one, other) == lines


def test_long_texts_are_shown_where_they_part():
    one, other = f"{'a' * 200} step 1 of it{'z' * 90}", f"{'a' * 200} step 2 of it"
    (line,) = said(one, other)
    assert line.startswith("x: ...aaaaaa step 1 of itzzz")
    assert line.endswith("zzz... | ...aaaaaa step 2 of it")


def test_a_long_value_against_nothing_is_cut_at_its_end():
    (line,) = said(None, spec(1.0))
    assert line.startswith("x: none | {'input': {'image': ")
    assert line.endswith("...")
    assert len(line) < 80
