"""Faults that were found by hunting in how documents are read and written, each as the fact that it broke."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
import pytest
from adapter_routes import DRIVE, NUMBER_TAG, image, state, tag

from rlmesh_adapters.documents.actions import Action, Actuator
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.documents.spec import Image, State
from rlmesh_adapters.documents.statistics import Statistics
from rlmesh_adapters.documents.tags import EnvTags, Field, ImageTag, StateTag

NO_ACTION: dict[str, Any] = {"components": []}
VERY_LARGE = 10**5000


def tags_of(observation: Any, **action: Any) -> EnvTags:
    return read_tags({"observation": observation, "action": {**NO_ACTION, **action}})


def refused(read: Any, *arguments: Any, **options: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read(*arguments, **options)
    return caught.value


def test_names_in_order_of_preference_are_written_as_a_list() -> None:
    """A tuple is written by JSON and refused by YAML's safe writer."""
    spec = read_spec({"input": image(fit=["crop", "pad"]), "output": NO_ACTION})
    assert spec.to_dict()["input"]["fit"] == ["crop", "pad"]
    assert tags_of(tag("r", encoding=["rot6d", "x"])).to_dict()["observation"]["encoding"] == ["rot6d", "x"]
    both = read_spec({"input": state({"role": "r", "encoding": ["rot6d", "x"]}), "output": NO_ACTION})
    assert both.to_dict()["input"]["components"][0]["encoding"] == ["rot6d", "x"]


@pytest.mark.parametrize("fields", [{"dim": 1}, "dim", 3, None])
def test_fields_that_are_no_list_are_told_where_they_stand(fields: Any) -> None:
    error = refused(tags_of, {"type": "split", "fields": fields})
    assert (error.where, "must be a list of at least one field" in error.cause) == ("observation.fields", True)


def test_a_type_is_no_field_of_what_is_no_leaf() -> None:
    """It was dropped without a word; an actuator keeps what it does not know, to be refused when it is used."""
    assert refused(tags_of, {}, type="x").where == "action.type"
    assert refused(read_tags, {"type": "x", "observation": {}, "action": NO_ACTION}).where == "type"
    component = {"type": "state", "role": "r"}
    assert refused(read_spec, {"input": state(component), "output": NO_ACTION}).where == "input.components[0].type"
    written = tags_of({}, components=[{**DRIVE, "type": "motor"}]).to_dict()
    assert written["action"]["components"][0]["type"] == "motor"


@pytest.mark.parametrize("leaf", [NUMBER_TAG, image(), {"type": "text", "role": "r"}])
def test_the_type_of_a_leaf_is_its_own(leaf: Any) -> None:
    assert tags_of(leaf).to_dict()["observation"]["type"] == leaf["type"]


@pytest.mark.parametrize("size", ["abc", 3.0, (1, 2, 3), (), (1,)])
def test_a_size_is_one_number_or_two(size: Any) -> None:
    assert refused(Image, "r", size=size).where in ("size", "height")


@pytest.mark.parametrize("size", [6, (6, 6), [6, 6], np.int64(6)])
def test_a_size_is_a_height_and_a_width(size: Any) -> None:
    assert Image("r", size=size) == Image("r", height=6, width=6)


@pytest.mark.parametrize("key", [3, 1.5, None, VERY_LARGE], ids=["whole", "fraction", "null", "very large"])
@pytest.mark.parametrize("side", ["observation", "input"])
def test_the_keys_of_an_unknown_leaf_are_text(key: Any, side: str) -> None:
    """They could be read and not be sorted when they were written."""
    read, other = (read_tags, "action") if side == "observation" else (read_spec, "output")
    error = refused(read, {side: {"type": "audio", key: 1, "role": "x"}, other: NO_ACTION})
    assert (error.where, "expected text" in error.cause) == (side, True)


@pytest.mark.parametrize(
    ("observation", "where"),
    [
        ({"type": "split", "fields": [{"role": None, "dim": VERY_LARGE}]}, "observation.fields[0].dim"),
        ({"type": "split", "fields": [{"role": None, "dim": -VERY_LARGE}]}, "observation.fields[0].dim"),
        (VERY_LARGE, "observation"),
        ({VERY_LARGE: 1}, "observation"),
        ({"type": "image", "role": VERY_LARGE}, "observation.role"),
        ({"type": "image", "role": "r", "layout": VERY_LARGE}, "observation.layout"),
    ],
    ids=["dim", "negative dim", "leaf", "key", "role", "layout"],
)
def test_numbers_that_python_does_not_write_out_are_refused_in_words(observation: Any, where: str) -> None:
    error = refused(tags_of, observation)
    assert (error.where, "a very large number" in error.cause) == (where, True)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (lambda: Field("r", np.int64(3)), lambda: Field("r", 3)),
        (lambda: StateTag("r", range=(np.float32(0), np.float32(1))), lambda: StateTag("r", range=(0, 1))),
        (lambda: StateTag("r", range=np.array([0, 1])), lambda: StateTag("r", range=(0, 1))),
        (lambda: StateTag("r", range=(np.zeros(2), np.ones(2))), lambda: StateTag("r", range=([0, 0], [1, 1]))),
        (lambda: State("r", index=np.uint8(2)), lambda: State("r", index=2)),
        (lambda: Actuator("x/a", scale=np.float64(2)), lambda: Actuator("x/a", scale=2)),
        (lambda: Image("r", normalize=np.array([-1, 1])), lambda: Image("r", normalize=(-1, 1))),
        (
            lambda: Statistics(kind="mean_std", mean=np.zeros(2), std=[np.float32(1)] * 2),
            lambda: Statistics(kind="mean_std", mean=[0, 0], std=[1, 1]),
        ),
    ],
)
def test_numbers_of_numpy_are_numbers(made: Any, wanted: Any) -> None:
    """Statistics and bounds come out of arrays; what is kept can be written as JSON."""
    assert made() == wanted()
    assert json.dumps(made().to_dict()) == json.dumps(wanted().to_dict())


@pytest.mark.parametrize("value", [np.float64("nan"), np.array([[0, 1]]), np.array("a")])
def test_what_is_no_number_is_none_of_numpy_s_either(value: Any) -> None:
    assert refused(Actuator, "x/a", scale=value).where == "scale"


@pytest.mark.parametrize("fill", [127.6, 127.0, "127", True])
def test_the_fill_of_an_image_is_a_whole_number(fill: Any) -> None:
    """127.6 became 127, of a camera that holds bytes."""
    error = refused(read_spec, {"input": image(optional=True, fill=fill), "output": NO_ACTION})
    assert (error.where, "must be a non-negative integer" in error.cause) == ("input.fill", True)


@pytest.mark.parametrize("std", [1e-46, -1e-31, 9e-31])
def test_a_deviation_that_is_next_to_nothing_is_refused(std: float) -> None:
    """In float32 it is 0, and the image was of NaN."""
    error = refused(Image, "r", dtype="float32", mean=[0, 0], std=[1, std])
    assert (error.where, "below 1e-30" in error.cause) == ("std", True)


def test_tags_with_a_range_of_an_image_are_read_as_they_were_written() -> None:
    tags = EnvTags({"a": ImageTag("r", range=(0, 1))}, Action())
    assert read_tags(tags.to_dict()) == tags


def test_trees_written_in_python_may_not_be_too_deep_either() -> None:
    deep: Any = {"type": "text", "role": "r"}
    for _ in range(5000):
        deep = [deep]
    loop = dict[str, Any]()
    loop["a"] = loop
    for tree in (deep, loop):
        assert "levels" in refused(EnvTags, tree, Action()).cause


def test_a_list_that_holds_itself_very_often_is_refused_soon() -> None:
    """It took ten seconds and two gigabytes, for each level was written out."""
    loop: list[Any] = []
    loop.extend([loop] * 99_000)
    started = time.monotonic()
    assert "more than 100,000 values" in refused(tags_of, loop).cause
    assert time.monotonic() - started < 5
