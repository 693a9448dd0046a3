"""Merged infos taken apart: what a lane did not report stays absent."""

from __future__ import annotations

from collections import namedtuple
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from env_fakes import Tape
from gymnasium.vector import VectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_envs.infos import own_info, read_flag, read_number, split_infos

#: Lane 0 finished with success, lane 1 without, lane 2 goes on: as three versions of gymnasium say it.
LAYOUTS = {
    "0.29": {
        "final_info": np.array(
            [{"is_success": True, "episode": {"r": 5.0}}, {"is_success": False, "episode": {"r": 2.0}}, None],
            object,
        ),
        "_final_info": np.array([True, True, False]),
        "final_observation": np.array([np.zeros(2), np.ones(2), None], object),
        "_final_observation": np.array([True, True, False]),
    },
    "0.29-lists": {
        "final_info": [{"is_success": np.True_}, {"is_success": np.False_}, None],
        "final_observation": [[5.0], [2.0], None],
    },
    "1.x-same-step": {
        "final_info": {
            "is_success": np.array([True, False, False]),
            "_is_success": np.array([True, True, False]),
        },
        "_final_info": np.array([True, True, False]),
        "final_obs": np.array([np.zeros(2), np.ones(2), None], object),
        "_final_obs": np.array([True, True, False]),
    },
    "1.x-next-step": {
        "is_success": np.array([True, False, False]),
        "_is_success": np.array([True, True, False]),
    },
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_success_failure_and_no_report(name):
    lanes = split_infos(LAYOUTS[name], 3)
    assert [read_flag(lane.get("final_info", lane), "is_success") for lane in lanes] == [True, False, None]
    assert [read_number(lane.get("final_info", lane), "is_success") for lane in lanes] == [1.0, 0.0, None]


def test_a_filled_in_zero_or_false_is_no_report():
    merged = {"score": np.array([0.0, 7.0]), "_score": np.array([False, True]), "late": np.array([False, False])}
    merged["_late"] = np.array([True, False])
    assert split_infos(merged, 2) == [{"late": False}, {"score": 7.0}]


def test_a_value_without_a_mask_belongs_to_its_lane_or_to_all():
    merged = {"each": np.array([1, 2]), "all": "word", "pair": (3, 4), "shape": np.zeros((3, 1)), "flag": True}
    first, second = split_infos(merged, 2)
    assert (first["each"], first["all"], first["pair"], first["flag"]) == (1, "word", 3, True)
    assert (second["each"], second["all"], second["pair"], second["flag"]) == (2, "word", 4, True)
    assert first["shape"].shape == second["shape"].shape == (3, 1)


def test_an_empty_info_gives_each_lane_an_empty_dict_of_its_own():
    lanes = split_infos({}, 3)
    assert lanes == [{}, {}, {}]
    assert lanes[0] is not lanes[1]


def test_a_key_with_an_underscore_of_its_own_is_kept():
    merged = VectorEnvInfos(2).merge([{"_private": 3}, {}])
    assert split_infos(merged, 2) == [{"_private": 3}, {}]


def test_keys_that_are_no_text_are_kept():
    merged = VectorEnvInfos(2).merge([{0: 5, "a": {1: 2.5}}, {}])
    assert split_infos(merged, 2) == [{0: 5, "a": {1: 2.5}}, {}]


class VectorEnvInfos(VectorEnv[Any, Any, Any]):
    """Merges infos by gymnasium's own rule."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs

    def merge(self, lanes: list[dict[Any, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for lane, info in enumerate(lanes):
            merged = self._add_info(merged, info, lane)
        return merged


_REPORT = st.fixed_dictionaries(
    {},
    optional={
        "is_success": st.booleans(),
        "score": st.floats(-9, 9),
        "count": st.integers(-9, 9),
        "word": st.text(max_size=3),
        "nothing_false": st.just(np.False_),
        "pose": st.lists(st.integers(-3, 3), min_size=2, max_size=2).map(lambda pose: np.array(pose, np.float32)),
        "episode": st.fixed_dictionaries(
            {"r": st.floats(-9, 9)},
            optional={"l": st.integers(0, 9), "deep": st.fixed_dictionaries({"x": st.just(0)})},
        ),
    },
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(lanes=st.lists(_REPORT, min_size=1, max_size=5))
def test_taking_apart_undoes_gymnasiums_merging(lanes):
    assert _plain(split_infos(VectorEnvInfos(len(lanes)).merge(lanes), len(lanes))) == _plain(lanes)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


@pytest.mark.parametrize(
    ("value", "flag", "number"),
    [
        (True, True, 1.0),
        (False, False, 0.0),
        (np.True_, True, 1.0),
        (np.array(False), False, 0.0),
        (np.array([[True]]), True, 1.0),
        (1, True, 1.0),
        (0.0, False, 0.0),
        (0.25, None, 0.25),
        (np.float16(0.5), None, 0.5),
        ([1], True, 1.0),
        (-1, None, -1.0),
        (None, None, None),
        (np.nan, None, np.nan),
        (-np.inf, None, -np.inf),
        (np.float32(np.inf), None, np.inf),
        ("True", None, None),
        ("1", None, None),
        (np.str_("1"), None, None),
        (np.array("1"), None, None),
        (b"1", None, None),
        ("", None, None),
        ([], None, None),
        ([True, False], None, None),
        (np.zeros((0, 2)), None, None),
        ([[1], [2, 3]], None, None),
        ({}, None, None),
        ({"x": 1}, None, None),
        (1j, None, None),
        (object(), None, None),
        (np.array([None]), None, None),
        pytest.param(10**400, None, None, id="huge"),
    ],
)
def test_a_value_is_read_only_if_it_is_one_number(value, flag, number):
    assert read_flag({"key": value}, "key") is flag
    read = read_number({"key": value}, "key")
    assert read == number or (read != read and number != number)
    assert read is None or type(read) is float


def test_an_object_that_refuses_to_be_an_array_is_no_value():
    class Gradient:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("call detach first")

    assert read_flag({"key": Gradient()}, "key") is None
    assert read_number({"key": Gradient()}, "key") is None


@pytest.mark.parametrize("info", [{}, {"a": 1}, {"a": {"c": 1}}, {"a": {"b": None}}, {"a": None}, {"b": True}])
def test_a_path_that_is_not_there_is_absent(info):
    assert read_flag(info, "a.b") is None
    assert read_number(info, "a.b") is None


def test_dots_lead_into_nested_dicts_unless_the_key_itself_is_there():
    nested = {"a": {"b": {"c": np.True_}}, "x.y": 3, "x": {"y": 4}}
    assert read_flag(nested, "a.b.c") is True
    assert read_number(nested, "a.b.c") == 1.0
    assert read_number(nested, "x.y") == 3.0
    assert read_flag({"x.y": False, "x": {"y": True}}, "x.y") is False


def test_reading_is_not_fooled_by_an_environment_that_reports_nothing():
    tape = Tape(1)
    tape.reset(seed=9)
    assert read_flag(tape.step(0)[4], "is_success") is None


def test_own_info_is_equal_and_shares_nothing_that_could_be_written_into():
    inner = {"flag": True, "list": [np.zeros(2), ({"deep": np.ones(())},)]}
    info = {"one": 1, "text": "a", "inner": inner}
    own = own_info(info)
    inner["list"][0][:] = 7
    inner["list"][1][0]["deep"][...] = 7
    inner["flag"] = False
    inner["list"].append(3)
    assert repr(own) == repr(
        {"one": 1, "text": "a", "inner": {"flag": True, "list": [np.zeros(2), ({"deep": np.ones(())},)]}}
    )


def test_own_info_keeps_objects_and_kinds_of_mappings_and_pairs_with_names():
    class Locked(dict):
        pass

    pair, tag = namedtuple("Pair", "a b")(1, 2), object()
    own = own_info({"tag": tag, "pair": pair, "locked": Locked(a=[1])})
    assert own["tag"] is tag
    assert own["pair"] is pair
    assert own["locked"] == {"a": [1]}
    mapping = MappingProxyType({"a": 1})
    assert own_info(mapping) is mapping


def test_own_info_of_one_that_holds_itself_holds_itself():
    info: dict[str, Any] = {"list": []}
    info["list"].append(info)
    own = own_info(info)
    assert own is not info
    assert own["list"][0]["list"] is own["list"]


def test_own_info_copies_what_stands_in_arrays_of_objects():
    inner: list[Any] = [1]
    array = np.empty(2, object)
    array[:] = [inner, "text"]
    own = own_info({"array": array})
    inner.append(2)
    assert own["array"].tolist() == [[1], "text"]


def test_own_info_leaves_what_cannot_be_copied():
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    own = own_info({"deep": deep, "list": [1]})
    assert own["deep"] is deep
    assert own["list"] == [1]
