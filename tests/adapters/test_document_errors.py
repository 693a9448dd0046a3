"""What cannot be meant is refused where it stands, with its path and the right words."""

from __future__ import annotations

from typing import Any

import pytest

from rlmesh_adapters.documents.actions import Action, Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.documents.spec import Concat, Image, ModelSpec, State, Text
from rlmesh_adapters.documents.statistics import Statistics
from rlmesh_adapters.documents.tags import EnvTags, Field, ImageTag, Split, StateTag, TextTag

IMAGE: dict[str, Any] = {"type": "image", "role": "r"}
ACTION: dict[str, Any] = {"components": []}
A_LARGE_COUNT = 2**24


def refused(read: Any, document: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        read(document)
    return caught.value


def tag_error(leaf: Any) -> DocumentError:
    return refused(read_tags, {"observation": leaf, "action": ACTION})


def input_error(leaf: Any) -> DocumentError:
    return refused(read_spec, {"input": leaf, "output": ACTION})


def actuator_error(**fields: Any) -> DocumentError:
    drives = [{"dim": 1}, {"role": "x/a", "dim": 1, **fields}]
    return refused(read_spec, {"input": {}, "output": {"components": drives}})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3.0, "must be a non-negative integer, got 3"),
        (True, "must be a non-negative integer, got True"),
        (-1, "must be a non-negative integer, got -1"),
        ("3", "must be a non-negative integer, got '3'"),
        (None, "must be a non-negative integer, got None"),
        (2.5, "must be a non-negative integer, got 2.5"),
        (A_LARGE_COUNT + 1, "must be from 1 to 16777216, got 16777217"),
        (10**40, "must be from 1 to 16777216, got 1"),
        (0, "must be from 1 to 16777216, got 0"),
    ],
)
def test_a_dim_is_a_count_of_at_least_one(value: Any, words: str) -> None:
    """W26: a dim of 0 is refused in documents as in Python; the reference's codec accepts it in actuators."""
    for error, place in (
        (actuator_error(dim=value), "output.components[1].dim"),
        (tag_error({"a": {"type": "split", "fields": [{"dim": value}]}}), "observation.a.fields[0].dim"),
    ):
        assert words in error.cause
        assert error.where == place
    with pytest.raises(DocumentError, match="dim"):
        Actuator("x/a", value)


@pytest.mark.parametrize("field", ["height", "width", "channels", "lead_dims"])
def test_counts_of_images_have_a_largest(field: str) -> None:
    error = input_error({"cam": {**IMAGE, field: A_LARGE_COUNT + 1}})
    assert (error.where, error.cause) == (f"input.cam.{field}", "must be from 0 to 16777216, got 16777217")
    assert input_error({**IMAGE, field: 3.0}).cause == "must be a non-negative integer, got 3"
    read_spec({"input": {**IMAGE, field: A_LARGE_COUNT}, "output": ACTION})


@pytest.mark.parametrize("stack", [0, 65])
def test_a_stack_has_1_to_64_frames(stack: int) -> None:
    assert input_error({**IMAGE, "stack": stack}).cause == f"must be from 1 to 64, got {stack}"
    for fine in (1, 64):
        read_spec({"input": {**IMAGE, "stack": fine}, "output": ACTION})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3, "range must be a pair of numbers [min, max], got 3"),
        ([1], "range must be a pair of numbers [min, max], got [1]"),
        ([0, 1, 2], "range must be a pair of numbers [min, max], got [0, 1, 2]"),
        ("01", "range must be a pair of numbers [min, max], got '01'"),
        ([1, 0], "range [min, max] must have min <= max, got [1, 0]"),
        ([float("nan"), 1], "must be a finite number, got nan"),
        ([0, float("inf")], "must be a finite number, got inf"),
        ([0, 10**400], "must be a finite number, got a larger one"),
        ([False, 1], "must be a number, got a bool, False"),
        (["0", 1], "must be a number, got text, '0'"),
        ([None, 1], "must be a number, got null"),
        ([[0, 0], [1]], "range has 2 lower and 1 upper ends"),
        ([[0, 2], [1, 1]], "range [min, max] must have min <= max, got [2, 1]"),
        ([[], []], "must be a list of numbers, got []"),
        ([0, [1, 1]], "must be a list of numbers, got 0"),
    ],
)
def test_a_range_is_two_finite_numbers_in_order(value: Any, words: str) -> None:
    for error, place in (
        (actuator_error(range=value), "output.components[1].range"),
        (tag_error([{"type": "state", "role": "r", "range": value}]), "observation[0].range"),
        (input_error(state_of(range=value)), "input.components[0].range"),
    ):
        assert (error.cause, error.where) == (words, place)


def state_of(**fields: Any) -> dict[str, Any]:
    return {"type": "state", "components": [{"role": "r", **fields}]}


def test_a_range_may_have_two_equal_ends() -> None:
    assert State("r", range=[2, 2]).range == (2.0, 2.0)


def test_a_clip_is_one_pair_for_all_numbers() -> None:
    error = refused(read_tags, {"observation": {}, "action": {"components": [], "clip": [[0, 0], [1, 1]]}})
    assert error.where == "action.clip"
    assert "must be a number, got a list" in error.cause


@pytest.mark.parametrize(
    ("leaf", "where", "words"),
    [
        ({"cam": {"type": 3}}, "observation.cam.type", "may not name a dict child (observation tree)"),
        ({"cam": 3}, "observation.cam", "the observation tree holds a number, 3, expected a leaf"),
        ({"cam": None}, "observation.cam", "holds null"),
        ({"a": {0: IMAGE}}, "observation.a", "has the key 0, expected text"),
        ({"a": [{"type": "image"}]}, "observation.a[0]", "an image tag needs `role`"),
        ({**IMAGE, "layout": "HWC"}, "observation.layout", "must be one of hwc, chw, got 'HWC'"),
        ({**IMAGE, "layout": ["hwc"]}, "observation.layout", "must be one of hwc, chw, got ['hwc']"),
        ({**IMAGE, "upside_down": 1}, "observation.upside_down", "must be true or false, got a number, 1"),
        ({**IMAGE, "role": ""}, "observation.role", "is empty"),
        ({**IMAGE, "role": 3}, "observation.role", "must be text, got a number, 3"),
        ({**IMAGE, "channel_order": "brg"}, "observation.channel_order", "must be one of rgb, bgr"),
        ({**IMAGE, "flip": "both"}, "observation.flip", "must be one of vertical, horizontal"),
        ({"type": "split", "fields": []}, "observation.fields", "at least one field"),
        ({"type": "split"}, "observation", "a split needs `fields`"),
        ({"type": "split", "fields": [{"role": "r"}]}, "observation.fields[0]", "a field needs `dim`"),
        (
            {"type": "split", "fields": [{"dim": 1, "range": [0, 1]}]},
            "observation.fields[0]",
            "a field without a role has no encoding and no range",
        ),
        (
            {"type": "split", "fields": [{"role": "r", "dim": 1}, {"role": "r", "dim": 2}]},
            "observation.fields",
            'field role "r" stands twice',
        ),
        ({"type": "state", "role": "r", "encoding": []}, "observation.encoding", "a list of names, got []"),
        ({"type": "state", "role": "r", "encoding": [3]}, "observation.encoding", "must be text"),
    ],
)
def test_env_tags_that_cannot_be_meant(leaf: Any, where: str, words: str) -> None:
    error = tag_error(leaf)
    assert error.where == where
    assert words in error.cause


@pytest.mark.parametrize(
    ("leaf", "where", "words"),
    [
        ({"a": {"type": None}}, "input.a.type", "may not name a dict child (model input tree)"),
        ({"a": {"type": "state"}}, "input.a", "a state needs `components`"),
        ({"type": "state", "components": []}, "input.components", "at least one component"),
        ({"type": "state", "components": "r"}, "input.components", "must be a list"),
        ({"type": "state", "components": [3]}, "input.components[0]", "must be a mapping, got a number, 3"),
        ({"type": "state", "components": [{}]}, "input.components[0]", "a state component needs `role`"),
        (state_of(dim=1, index=0), "input.components[0]", "dim and index exclude one another"),
        (state_of(encoding=[]), "input.components[0].encoding", "a list of names, got []"),
        (
            state_of(range=[0, 1], normalize={"kind": "min_max", "min": [0], "max": [1]}),
            "input.components[0]",
            "range and normalize exclude one another",
        ),
        (
            state_of(encoding={"base": "rot6d"}),
            "input.components[0].encoding",
            "a custom encoding needs `from_base` or `to_base`",
        ),
        (
            state_of(encoding={"base": "rot6", "to_base": "m:f"}),
            "input.components[0].encoding.base",
            "must be one of quat_xyzw, quat_wxyz, axis_angle, rot6d, rot6d_rowmajor, euler_xyz",
        ),
        ({**state_of(), "reshape": [-1, -1]}, "input.reshape", "more than one -1"),
        ({**state_of(), "reshape": [-2]}, "input.reshape", "has the axis -2"),
        ({**state_of(), "reshape": [2.0]}, "input.reshape", "has the axis 2"),
        ({**state_of(), "reshape": 2}, "input.reshape", "must be a list of axes, got 2"),
        ({**state_of(), "container": "tuple"}, "input.container", "must be one of array, list"),
        ({"type": "text", "role": "r", "fill": 3}, "input.fill", "must be text, got a number, 3"),
        ({"type": "custom", "transform": 3}, "input.transform", "must be text, got a number, 3"),
        ({**IMAGE, "fit": []}, "input.fit", "a list of names, got []"),
        ({**IMAGE, "fill": 256}, "input.fill", "must be from 0 to 255, got 256"),
        ({**IMAGE, "fill": -1}, "input.fill", "must be a non-negative integer, got -1"),
        ({**IMAGE, "normalize": 1}, "input.normalize", "range must be a pair of numbers [min, max], got 1"),
        ({**IMAGE, "normalize": [1, 0]}, "input.normalize", "must have min <= max"),
        ({**IMAGE, "precision": "float32"}, "input.precision", "must be one of uint8, float"),
        ({**IMAGE, "mean": [0.5]}, "input.mean", "mean and std need one number a channel each"),
        ({**IMAGE, "mean": [1, 2], "std": [1]}, "input.mean", "mean and std need one number a channel each"),
        ({**IMAGE, "mean": [1], "std": [0]}, "input.std", "std has a 0"),
    ],
)
def test_model_inputs_that_cannot_be_meant(leaf: Any, where: str, words: str) -> None:
    error = input_error(leaf)
    assert error.where == where
    assert words in error.cause


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"encoding": "quat"}, ".encoding", "must be one of quat_xyzw, quat_wxyz"),
        ({"encoding": ["rot6d"]}, ".encoding", "an actuator has one encoding, got a list"),
        ({"role": None, "range": [0, 1]}, "", "a role-less actuator has only `dim` and `fill`, got `range`"),
        ({"role": None, "binary": True, "scale": 2}, "", "got `binary`, `scale`"),
        ({"role": None, "optional": True}, "", "a role-less actuator"),
        ({"fill": 0.5}, "", 'actuator "x/a" has a fill of 0.5, but is not optional'),
        ({"fill": float("nan")}, ".fill", "must be a finite number"),
        ({"fill": None}, ".fill", "must be a number, got null"),
        ({"scale": float("inf")}, ".scale", "must be a finite number, got inf"),
        ({"threshold": "half"}, ".threshold", "must be a number, got text, 'half'"),
        ({"range": [[0, 0], [1, 1]]}, ".range", "range has 2 ends a side for 1 dims"),
        ({"select": "softmax"}, ".select", "must be one of argmax, index, threshold"),
        ({"mode": "relative"}, ".mode", "must be one of absolute, delta"),
    ],
)
def test_actuators_that_cannot_be_meant(fields: dict[str, Any], where: str, words: str) -> None:
    error = actuator_error(**fields)
    assert error.where == f"output.components[1]{where}"
    assert words in error.cause


def test_the_reference_s_role_less_actuator_with_a_range() -> None:
    """Section 16: `{"dim": 2, "range": [-1, 1]}` is a parse error that mentions role-less."""
    drives = [{"dim": 2, "range": [-1, 1]}]
    assert "role-less" in refused(read_tags, {"observation": {}, "action": {"components": drives}}).cause


def test_an_action_role_stands_once() -> None:
    drives = [{"role": "x/a", "dim": 1}, {"role": "x/b", "dim": 1}, {"role": "x/a", "dim": 2}]
    error = refused(read_tags, {"observation": {}, "action": {"components": drives}})
    assert (error.cause, error.where) == ('action role "x/a" stands twice', "action.components")
    with pytest.raises(DocumentError, match='action role "x/a" stands twice'):
        Action(Actuator("x/a", 1), Actuator("x/a", 1))


def test_actuators_without_a_role_may_stand_often() -> None:
    assert len(Action(Actuator(dim=1), Actuator(dim=1)).components) == 2


@pytest.mark.parametrize(
    ("read", "document", "where", "mend"),
    [
        (read_tags, {"observations": {}, "action": ACTION}, "observations", "`observation`"),
        (read_spec, {"input": {}, "outputs": ACTION}, "outputs", "`output`"),
        (read_tags, {"observation": {}, "action": {**ACTION, "clips": 1}}, "action.clips", "`clip`"),
        (
            read_tags,
            {"observation": {"type": "split", "field": []}, "action": ACTION},
            "observation.field",
            "`fields`",
        ),
        (
            read_tags,
            {"observation": {"type": "split", "fields": [{"dim": 1, "rnage": 1}]}, "action": ACTION},
            "observation.fields[0].rnage",
            "`range`",
        ),
        (read_spec, {"input": state_of(indx=1), "output": ACTION}, "input.components[0].indx", "`index`"),
        (
            read_spec,
            {"input": state_of(encoding={"base": "rot6d", "tobase": "m:f"}), "output": ACTION},
            "input.components[0].encoding.tobase",
            "`to_base`",
        ),
        (
            read_spec,
            {"input": state_of(normalize={"kind": "min_max", "mn": [0]}), "output": ACTION},
            "input.components[0].normalize.mn",
            "`min`",
        ),
    ],
)
def test_closed_objects_name_the_field_that_was_meant(read: Any, document: Any, where: str, mend: str) -> None:
    error = refused(read, document)
    assert error.where == where
    assert "unknown field" in error.cause
    assert mend in error.mend


@pytest.mark.parametrize("value", [None, 3, [], True])
def test_a_document_is_a_mapping(value: Any) -> None:
    assert "env tags must be a mapping" in refused(read_tags, value).cause
    assert "a model spec must be a mapping" in refused(read_spec, value).cause


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: EnvTags({"a": Image("r")}, Action()), "an image cannot stand in an observation"),
        (lambda: ModelSpec({"a": StateTag("r")}, Action()), "a state tag cannot stand in a model's input"),
        (lambda: ModelSpec([TextTag("r")], Action()), "a text tag cannot stand"),
        (lambda: EnvTags([Text("r")], Action()), "a text cannot stand in an observation"),
        (lambda: Split(), "at least one field"),
        (lambda: Concat(), "at least one component"),
        (lambda: Split(Field("r", 1), Field("r", 1)), 'field role "r" stands twice'),
        (lambda: ImageTag("r", layout="nhwc"), "must be one of hwc, chw"),
        (lambda: Image("r", size=True), "must be a non-negative integer"),
        (lambda: State("r", dim=1, index=1), "exclude one another"),
        (lambda: CustomEncoding("rot6d"), "needs `from_base` or `to_base`"),
        (lambda: Actuator("x/a", 1, fill=1), "is not optional"),
    ],
)
def test_python_obeys_the_rules_of_documents(build: Any, words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        build()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "minmax"}, "must be one of mean_std, min_max, quantile"),
        ({"kind": "min_max", "q01": [0], "q99": [1]}, "min_max needs `min`, which is missing; given: q01, q99"),
        ({"kind": "mean_std", "mean": [0]}, "mean_std needs `std`, which is missing; given: mean"),
        ({"kind": "quantile"}, "quantile needs `q01`, which is missing; given: nothing"),
        ({"kind": "min_max", "min": [0, 0], "max": [1]}, "`min` has 2 numbers, `max` 1"),
        ({"kind": "min_max", "min": [2], "max": [1]}, r"`min`\[0\] is 2, more than `max`\[0\], 1"),
        ({"kind": "mean_std", "mean": [0], "std": [-1]}, r"`std`\[0\] is -1, less than 0"),
        ({"kind": "mean_std", "mean": [], "std": []}, "must be a list of numbers"),
        ({"kind": "mean_std", "mean": [float("nan")], "std": [1]}, "must be a finite number"),
    ],
)
def test_statistics_are_whole(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(DocumentError, match=words):
        Statistics(**fields)
