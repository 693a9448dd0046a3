"""Documents that nobody vouches for: how large, how deep, and what a number may be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlmesh_adapters.documents.filling import fill_statistics
from rlmesh_adapters.documents.reading import parse_json, read_spec, read_tags
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.documents.spec import Concat, ModelSpec
from rlmesh_adapters.errors import HarnessError

FOUR_MIB = 4 * 2**20
TAGS = '{"observation": {"type": "text", "role": "r"}, "action": {"components": [%s]}}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "key `a` stands twice"),
        ('{"a": {"b": {}, "b": {}}}', "key `b` stands twice"),
        ("[NaN]", "NaN is not a number that a document may hold"),
        ("[Infinity]", "Infinity is not a number that a document may hold"),
        ("[-Infinity]", "-Infinity is not a number that a document may hold"),
        ("[1e400]", "1e400 is larger than a number can be"),
        ("[-1e400]", "-1e400 is larger than a number can be"),
        ("[" + "9" * 5000 + "]", "a number has 5,000 digits"),
        ("{} {}", "not JSON: Extra data, line 1 column 4"),
        ("{'a': 1}", "not JSON"),
        ("", "not JSON"),
        (b"\xff{}", "no UTF-8"),
        ("[" * 100_000, "more than 128 levels"),
    ],
)
def test_text_that_is_no_document(text: str | bytes, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        parse_json(text)
    assert words in caught.value.cause


def test_text_is_read_as_it_stands() -> None:
    text = '{"a": [1, -2.5, 1e3, true, null, "é"], "b": {"a": {}}}'
    assert parse_json(text) == {"a": [1, -2.5, 1000.0, True, None, "é"], "b": {"a": {}}}
    assert parse_json(text.encode()) == parse_json(text)


def test_text_may_have_4_mib_and_no_byte_more() -> None:
    """Counted as UTF-8: an é takes two bytes."""
    assert len(parse_json('"' + "a" * (FOUR_MIB - 2) + '"')) == FOUR_MIB - 2
    for text in ('"' + "a" * (FOUR_MIB - 1) + '"', '"' + "é" * (FOUR_MIB // 2) + '"'):
        with pytest.raises(DocumentError, match="bytes, at most 4,194,304 are read"):
            read_tags(text)


def nested(levels: int, kind: type) -> Any:
    """Return a tree of so many levels of dicts or lists around a leaf."""
    tree: Any = {"type": "text", "role": "r"}
    for _ in range(levels):
        tree = {"a": tree} if kind is dict else [tree]
    return {"observation": tree, "action": {"components": []}}


@pytest.mark.parametrize("kind", [dict, list])
def test_trees_may_not_have_200_levels(kind: type) -> None:
    for given in (nested(200, kind), json.dumps(nested(200, kind))):
        with pytest.raises(DocumentError, match="more than 128 levels inside one another"):
            read_tags(given)
    read_tags(nested(100, kind))


def test_a_document_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = loop
    with pytest.raises(DocumentError, match="more than 128 levels"):
        read_tags({"observation": loop, "action": {"components": []}})


def test_unknown_leaves_may_not_be_deep_either() -> None:
    deep = nested(200, list)["observation"]
    with pytest.raises(DocumentError, match="more than 128 levels"):
        read_tags({"observation": {"type": "foreign", "data": deep}, "action": {"components": []}})


def test_a_document_has_at_most_100_000_values() -> None:
    with pytest.raises(DocumentError, match="more than 100,000 values"):
        read_tags({"observation": [{}] * 100_000, "action": {"components": []}})


@pytest.mark.parametrize(
    ("actuator", "words"),
    [
        ('{"dim": 3.0}', "must be a non-negative integer, got 3"),
        ('{"dim": 1e2}', "must be a non-negative integer, got 100"),
        ('{"dim": true}', "must be a non-negative integer, got True"),
        ('{"dim": -0.5}', "must be a non-negative integer, got -0.5"),
        ('{"dim": 16777217}', "must be from 1 to 16777216, got 16777217"),
        ('{"dim": 1, "fill": ' + "9" * 399 + "}", "must be a finite number, got a larger one"),
        ('{"dim": 1, "role": "x/a", "range": [0, 1e309]}', "1e309 is larger than a number can be"),
    ],
)
def test_numbers_of_json_text(actuator: str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_tags(TAGS % actuator)
    assert words in caught.value.cause


def test_a_to_dict_that_raises_is_the_document_s_fault() -> None:
    class Broken:
        def to_dict(self) -> Any:
            raise KeyError("observation")

    with pytest.raises(DocumentError, match=r"to_dict\(\) of Broken raised KeyError: 'observation'"):
        read_tags(Broken())


def test_a_document_error_is_the_user_s_to_mend() -> None:
    with pytest.raises(HarnessError) as caught:
        read_tags({"observation": {"cam": {"type": "image", "role": "r", "layout": "hcw"}}, "action": {}})
    assert str(caught.value) == (
        "must be one of hwc, chw, got 'hcw'\n  at    observation.cam.layout\n  mend  did you mean `hwc`?"
    )


STATISTICS = {"arm": {"state": {"mean": [1.0], "std": [2.0], "q01": [-1.0], "q99": [3.0]}}}


def spec_with(part: dict[str, Any], drive: dict[str, Any] | None = None) -> ModelSpec:
    """Return a spec whose state (at low[0]) and actuator are normalised as told."""
    state = {"type": "state", "components": ["x/t", {"role": "x/s", "normalize": part}], "dtype": "float64"}
    actuator = {"role": "x/a", "dim": 1, "normalize": drive}
    return read_spec({"input": {"low": [state]}, "output": {"components": [actuator]}})


def in_file(kind: str, key: str | None = "arm.state") -> dict[str, Any]:
    return {"kind": kind, "file": "stats.json", "key": key}


def test_statistics_of_a_file_are_put_into_the_spec() -> None:
    """Kinds pick their own two of what the file holds; a file is not needed any more afterwards."""
    asked = []

    def read(name: str) -> Any:
        asked.append(name)
        return STATISTICS

    filled = fill_statistics(spec_with(in_file("mean_std"), in_file("quantile")), read)
    inline = {"kind": "mean_std", "mean": [1.0], "std": [2.0]}
    assert filled == spec_with(inline, {"kind": "quantile", "q01": [-1.0], "q99": [3.0]})
    assert asked == ["stats.json", "stats.json"]


def test_statistics_may_stand_at_the_top_of_their_file() -> None:
    filled = fill_statistics(spec_with(in_file("mean_std", None)), lambda name: STATISTICS["arm"]["state"])
    leaf = filled.input["low"][0]
    assert isinstance(leaf, Concat)
    assert leaf.to_dict()["components"][1]["normalize"] == {"kind": "mean_std", "mean": [1.0], "std": [2.0]}
    assert leaf.dtype == "float64"


@pytest.mark.parametrize(
    ("held", "key", "mean"),
    [
        ({"observation.state": 1.0}, "observation.state", 1.0),
        ({"a.b": {"c": 2.0}}, "a.b.c", 2.0),
        ({"a": {"b.c": 3.0}}, "a.b.c", 3.0),
        ({"a": {"b": {"c": 4.0}}}, "a.b.c", 4.0),
        # The longest name comes first; where it leads nowhere, a shorter one may.
        ({"a": {"b": {"c": 5.0}}, "a.b": {"c": 6.0}, "a.b.c": 7.0}, "a.b.c", 7.0),
        ({"a": {"b": {"c": 5.0}}, "a.b": {"c": 6.0}}, "a.b.c", 6.0),
        ({"a": {"b": {"c": 5.0}}, "a.b": {"d": 6.0}}, "a.b.c", 5.0),
        ({"a": {"b": {"c": 5.0}}, "a.b": 6.0}, "a.b.c", 5.0),
        ({"a.": {"b": 8.0}}, "a..b", 8.0),
    ],
)
def test_a_key_may_have_dots_in_its_names(held: dict[str, Any], key: str, mean: float) -> None:
    def whole(value: Any) -> Any:
        if isinstance(value, float):
            return {"mean": [value], "std": [2.0]}
        return {name: whole(part) for name, part in value.items()}

    filled = fill_statistics(spec_with(in_file("mean_std", key)), lambda name: whole(held))
    assert filled == spec_with({"kind": "mean_std", "mean": [mean], "std": [2.0]})


@pytest.mark.parametrize(
    ("held", "key", "words"),
    [
        ({"observation.state": {}}, "observation.stat", "no `observation.stat`; it has: observation.state"),
        ({"a.b": {"x": {}}, "a": {"y": {}}}, "a.b.c", "no `a.b.c`; under `a.b` it has: x"),
        ({"a": {"b": {"c": {"z": {}}}}, "a.b": {"y": {}}}, "a.b.c.d", "under `a.b.c` it has: z"),
        ({"a": {}}, "a.a", "under `a` it has: nothing"),
        ({"a": {"a": {"x": {}}}}, "a.a.a", "under `a.a` it has: x"),
        ({"a": {"x": {}}}, "a.", "no `a.`; under `a` it has: x"),
        ([1], "a", "`stats.json` must be a mapping, got a list"),
    ],
)
def test_a_key_that_leads_nowhere_says_what_is_there(held: Any, key: str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        fill_statistics(spec_with(in_file("mean_std", key)), lambda name: held)
    assert words in caught.value.cause


@pytest.mark.parametrize(
    ("part", "words", "where"),
    [
        (in_file("min_max"), "min_max needs `min`, which `stats.json` does not have under `arm.state`", ".file"),
        (in_file("min_max"), "it has: mean, std, q01, q99", ".file"),
        (in_file("mean_std", "arm.action"), "`stats.json` has no `arm.action`; under `arm` it has: state", ".key"),
        (in_file("mean_std", "leg.state"), "`stats.json` has no `leg.state`; it has: arm", ".key"),
        (in_file("mean_std", "arm.state.mean.x"), "no `arm.state.mean.x`; `arm.state.mean` is a list", ".key"),
        (in_file("mean_std", "arm.state.mean"), "`arm.state.mean` must be a mapping, got a list", ""),
    ],
)
def test_statistics_that_a_file_lacks_are_named(part: dict[str, Any], words: str, where: str) -> None:
    """K38: never another kind's statistics in their place, and never none."""
    with pytest.raises(DocumentError) as caught:
        fill_statistics(spec_with(part), lambda name: STATISTICS)
    assert words in caught.value.cause
    assert caught.value.where == f"input.low[0].components[1].normalize{where}"


def test_numbers_of_a_file_are_checked_like_those_of_a_document() -> None:
    broken = {"mean": [float("nan")], "std": [1.0]}
    with pytest.raises(DocumentError, match="must be a finite number") as caught:
        fill_statistics(
            spec_with({"kind": "mean_std", "mean": [0], "std": [1]}, in_file("mean_std", None)),
            lambda name: broken,
        )
    assert caught.value.where.startswith("output.components[0].normalize")
