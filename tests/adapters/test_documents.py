from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmesh_adapters.documents.actions import Action, Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.documents.spec import Concat, Custom, Image, ModelSpec, State, Text
from rlmesh_adapters.documents.statistics import Statistics
from rlmesh_adapters.documents.tags import EnvTags, Field, ImageTag, Split, StateTag, TextTag

ACTION: dict[str, Any] = {"components": [], "clip": None}
IMAGE = {"type": "image", "role": "image/primary", "height": None, "width": None, "layout": "hwc"}
IMAGE |= {"dtype": "uint8", "normalize": False, "lead_dims": 0, "upside_down": False, "resample": "bilinear"}
FIELD = {"role": None, "dim": 2, "encoding": None, "range": None}
ACTUATOR = {"dim": 1, "encoding": None, "range": None, "binary": False}


def env_leaf(leaf: Any) -> Any:
    """Return what becomes of one env tag that is read and written."""
    return read_tags({"observation": leaf, "action": ACTION}).to_dict()["observation"]


def model_leaf(leaf: Any) -> Any:
    return read_spec({"input": leaf, "output": ACTION}).to_dict()["input"]


def component(actuator: Any) -> Any:
    document = {"observation": {}, "action": {"components": [actuator]}}
    return read_tags(document).to_dict()["action"]["components"][0]


@pytest.mark.parametrize(
    ("short", "canonical"),
    [
        ({"type": "image", "role": "r"}, {"type": "image", "role": "r", "layout": "hwc", "upside_down": False}),
        ({"type": "state", "role": "r"}, {"type": "state", "role": "r", "encoding": None, "range": None}),
        ({"type": "text", "role": "r"}, {"type": "text", "role": "r"}),
        ({"type": "split", "fields": [{"dim": 2}]}, {"type": "split", "fields": [FIELD]}),
        ([], []),
        ({}, {}),
    ],
)
def test_env_leaves_are_written_with_the_fields_that_the_reference_always_emits(
    short: Any, canonical: Any
) -> None:
    assert env_leaf(short) == canonical


@pytest.mark.parametrize(
    ("short", "canonical"),
    [
        ({"type": "image", "role": "image/primary"}, IMAGE),
        (
            {"type": "state", "components": ["r"]},
            {"type": "state", "components": ["r"], "dtype": "float32"},
        ),
        ({"type": "text", "role": "r"}, {"type": "text", "role": "r", "container": "str", "fill": None}),
        ({"type": "custom", "transform": "m:f"}, {"type": "custom", "transform": "m:f"}),
    ],
)
def test_model_leaves_are_written_with_the_fields_that_the_reference_always_emits(
    short: Any, canonical: Any
) -> None:
    assert model_leaf(short) == canonical


@pytest.mark.parametrize(
    ("field", "default"),
    [
        ("channels", None),
        ("allow_upscale", False),
        ("fit", None),
        ("optional", False),
        ("fill", None),
        ("stack", 1),
        ("channel_order", None),
        ("flip", None),
        ("precision", "uint8"),
        ("mean", None),
    ],
)
def test_a_default_that_is_written_out_is_dropped_again(field: str, default: Any) -> None:
    assert model_leaf({**IMAGE, field: default}) == IMAGE


@pytest.mark.parametrize(
    ("leaf", "fields"),
    [
        (IMAGE, {"channels": 3, "allow_upscale": True, "fit": "crop", "stack": 4, "normalize": True}),
        (IMAGE, {"optional": True, "fill": 128, "normalize": [-1.0, 1.0], "dtype": "float32"}),
        (IMAGE, {"channel_order": "bgr", "flip": "vertical", "precision": "float", "mean": [0.5], "std": [2.0]}),
        (
            {"type": "state", "components": ["r"], "dtype": "float64"},
            {"pad_to": 8, "reshape": [2, -1], "container": "list", "stack": 2},
        ),
        ({"type": "text", "role": "r"}, {"container": "list", "fill": ""}),
    ],
)
def test_what_differs_from_its_default_is_written(leaf: dict[str, Any], fields: dict[str, Any]) -> None:
    assert model_leaf({**leaf, **fields}) == {**leaf, **fields}


@pytest.mark.parametrize(
    ("part", "written"),
    [
        ("r", "r"),
        ({"role": "r"}, "r"),
        ({"role": "r", "optional": False}, "r"),
        ({"role": "r", "dim": 3}, {"role": "r", "dim": 3}),
        ({"role": "r", "index": 0}, {"role": "r", "index": 0}),
        ({"role": "r", "encoding": ["rot6d"]}, {"role": "r", "encoding": "rot6d"}),
        ({"role": "r", "range": [[0, 1], [2, 3]]}, {"role": "r", "range": [[0.0, 1.0], [2.0, 3.0]]}),
        (
            {"role": "r", "encoding": {"base": "rot6d", "from_base": "m:f", "name": "custom"}},
            {"role": "r", "encoding": {"base": "rot6d", "from_base": "m:f"}},
        ),
        (
            {"role": "r", "normalize": {"kind": "min_max", "min": [0], "max": [2]}, "keep_sign": True},
            {"role": "r", "normalize": {"kind": "min_max", "min": [0.0], "max": [2.0]}, "keep_sign": True},
        ),
    ],
)
def test_a_component_that_is_a_role_alone_is_written_as_text(part: Any, written: Any) -> None:
    assert model_leaf({"type": "state", "components": [part]})["components"] == [written]


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({}, {}),
        ({"role": "x/a"}, {"role": "x/a"}),
        ({"fill": 0.0}, {}),
        ({"fill": 2}, {"fill": 2.0}),
        ({"role": "x/a", "fill": -1, "optional": True}, {"role": "x/a", "fill": -1.0, "optional": True}),
        (
            {"role": "x/a", "scale": 2, "threshold": 0, "invert": True, "binary": True, "clip": True},
            {"role": "x/a", "scale": 2.0, "threshold": 0.0, "invert": True, "binary": True, "clip": True},
        ),
        (
            {"role": "x/a", "mode": "absolute", "reference": "x/s", "select": None, "keep_sign": False},
            {"role": "x/a", "mode": "absolute", "reference": "x/s"},
        ),
    ],
)
def test_an_actuator_is_written_in_canonical_form(fields: dict[str, Any], written: dict[str, Any]) -> None:
    assert component({"dim": 1, **fields}) == {**ACTUATOR, **written}


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("rot6d", "rot6d"),
        (["rot6d"], "rot6d"),
        (["rot6d", "rot6d"], "rot6d"),
        (["rot6d", "rot10d", "rot6d", "quat_xyzw"], ["rot6d", "rot10d", "quat_xyzw"]),
        (None, None),
    ],
)
def test_an_accept_set_keeps_each_name_once_in_order(given: Any, written: Any) -> None:
    """Names that nobody knows are kept as well."""
    tag = json.loads(json.dumps(env_leaf({"type": "state", "role": "r", "encoding": given})))
    image = json.loads(json.dumps(model_leaf({**IMAGE, "fit": given})))
    assert (tag["encoding"], image.get("fit")) == (written, written)


def test_unknown_fields_of_leaves_are_kept_and_written_sorted_behind_the_others() -> None:
    unknown = {"zoom": 1, "x-note": {"b": [1], "a": None}, "ext.vendor": "v", "blur": [2, 3]}
    for write, leaf in (
        (env_leaf, {"type": "image", "role": "r"}),
        (env_leaf, {"type": "state", "role": "r"}),
        (env_leaf, {"type": "text", "role": "r"}),
        (model_leaf, {"type": "image", "role": "r"}),
        (model_leaf, {"type": "state", "components": ["r"]}),
        (model_leaf, {"type": "text", "role": "r"}),
        (model_leaf, {"type": "custom", "transform": "m:f"}),
        (component, {"role": "x/a", "dim": 1}),
    ):
        written = write({**leaf, **unknown})
        assert list(written)[-4:] == ["blur", "ext.vendor", "x-note", "zoom"]
        assert {name: written[name] for name in unknown} == unknown


@pytest.mark.parametrize("write", [env_leaf, model_leaf])
def test_a_leaf_of_an_unknown_kind_is_kept_as_it_came(write: Any) -> None:
    leaf = {"type": "audio", "role": "audio/mic", "rate": 16000, "band": {"high": 8000.5, "low": [20]}}
    assert write({"mic": leaf, "other": [leaf]}) == {"mic": leaf, "other": [leaf]}


def test_dict_children_are_walked_in_the_order_of_their_keys() -> None:
    leaf = {"type": "text", "role": "r"}
    assert list(env_leaf({"b": leaf, "a": leaf, "C": leaf})) == ["C", "a", "b"]


AUTHORED_TAGS = EnvTags(
    observation={
        "top": ImageTag("image/primary", layout="chw", upside_down=True, channel_order="bgr"),
        "arm": Split(Field("proprio/eef_pos", 3), Field(dim=2), Field("proprio/gripper", 1, range=(0, 0.04))),
        "pair": (StateTag("proprio/eef_rot", encoding="quat_xyzw"), TextTag("text/instruction")),
    },
    action=Action(
        Actuator("action/delta_eef_pos", 3, range=((-1, -1, 0), (1, 1, 1))),
        Actuator("action/gripper", 1, range=(-1, 1), binary=True, threshold=0.5),
        Actuator(dim=1, fill=0.5),
        clip=(-1, 1),
    ),
)
TOP = {"type": "image", "role": "image/primary", "layout": "chw", "upside_down": True, "channel_order": "bgr"}
WRITTEN_TAGS = {
    "observation": {
        "top": TOP,
        "arm": {
            "type": "split",
            "fields": [
                {"role": "proprio/eef_pos", "dim": 3},
                {"dim": 2},
                {"role": "proprio/gripper", "dim": 1, "range": [0, 0.04]},
            ],
        },
        "pair": [
            {"type": "state", "role": "proprio/eef_rot", "encoding": ["quat_xyzw"]},
            {"type": "text", "role": "text/instruction"},
        ],
    },
    "action": {
        "components": [
            {"role": "action/delta_eef_pos", "dim": 3, "range": [[-1, -1, 0], [1, 1, 1]]},
            {"role": "action/gripper", "dim": 1, "range": [-1, 1], "binary": True, "threshold": 0.5},
            {"dim": 1, "fill": 0.5},
        ],
        "clip": [-1, 1],
    },
}
AUTHORED_SPEC = ModelSpec(
    input={
        "rgb": Image("image/primary", size=96, dtype="float32", normalize=True, fit=("crop", "pad")),
        "wide": Image("image/wrist", size=(48, 96), stack=3),
        "low": Concat("proprio/eef_pos", State("proprio/gripper", index=0), pad_to=8, reshape=(2, 4)),
        "raw": State("x/s", normalize=Statistics("min_max", min=(0,), max=(1,))),
        "goal": Text("text/instruction", fill="reach the block"),
        "extra": (Custom("m:f"),),
    },
    output=Action(
        Actuator("action/delta_eef_rot", 6, encoding=CustomEncoding("rot6d", to_base="m:g")),
        Actuator("action/gripper", 2, select="argmax"),
    ),
)
RGB = {"type": "image", "role": "image/primary", "height": 96, "width": 96, "dtype": "float32"}
LOW = {"type": "state", "components": ["proprio/eef_pos", {"role": "proprio/gripper", "index": 0}]}
WRITTEN_SPEC = {
    "input": {
        "rgb": {**RGB, "normalize": True, "fit": ["crop", "pad"]},
        "wide": {"type": "image", "role": "image/wrist", "height": 48, "width": 96, "stack": 3},
        "low": {**LOW, "pad_to": 8, "reshape": [2, 4]},
        "raw": {
            "type": "state",
            "components": [{"role": "x/s", "normalize": {"kind": "min_max", "min": [0], "max": [1]}}],
        },
        "goal": {"type": "text", "role": "text/instruction", "fill": "reach the block"},
        "extra": [{"type": "custom", "transform": "m:f"}],
    },
    "output": {
        "components": [
            {"role": "action/delta_eef_rot", "dim": 6, "encoding": {"base": "rot6d", "to_base": "m:g"}},
            {"role": "action/gripper", "dim": 2, "select": "argmax"},
        ]
    },
}
AUTHORED = [(read_tags, AUTHORED_TAGS, WRITTEN_TAGS), (read_spec, AUTHORED_SPEC, WRITTEN_SPEC)]


class Foreign:
    """Another library's document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document

    def to_dict(self) -> dict[str, Any]:
        return self._document


@pytest.mark.parametrize(("read", "authored", "written"), AUTHORED, ids=["tags", "spec"])
def test_documents_written_in_python_equal_those_that_are_read(read: Any, authored: Any, written: Any) -> None:
    text = json.dumps(written)
    for given_as in (written, text, text.encode(), Foreign(written), authored):
        assert read(given_as) == authored
    assert read(authored.to_dict()) == authored
    assert read(json.dumps(authored.to_dict())) == authored


def test_documents_that_differ_in_one_field_are_not_equal() -> None:
    other = {**WRITTEN_TAGS, "action": {**WRITTEN_TAGS["action"], "clip": None}}
    assert read_tags(other) != AUTHORED_TAGS


def test_functions_of_the_user_s_own_do_not_travel() -> None:
    spec = ModelSpec(input=Custom(len), output=Action())
    assert spec.to_dict()["input"] == {"type": "custom", "transform": "<local>"}


def test_a_document_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="cannot assign"):
        AUTHORED_TAGS.observation["top"].role = "other"  # type: ignore[misc]


NAMES = st.text("abxyz", min_size=1, max_size=3)
RANGES = st.none() | st.tuples(st.floats(-9, 0), st.floats(0, 9)).map(list)
LEAVES = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("image"), "role": NAMES},
        optional={"layout": st.sampled_from(["hwc", "chw"]), "upside_down": st.booleans(), "x-a": NAMES},
    ),
    st.fixed_dictionaries(
        {"type": st.just("state"), "role": NAMES},
        optional={"encoding": st.none() | NAMES | st.lists(NAMES, min_size=1), "range": RANGES},
    ),
    st.fixed_dictionaries({"type": st.just("foreign")}, optional={"role": NAMES, "data": st.lists(NAMES)}),
)
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))


@given(tree=TREES)
def test_reading_what_was_written_gives_the_same_document(tree: Any) -> None:
    read = read_tags({"observation": tree, "action": ACTION})
    written = read.to_dict()
    assert read_tags(written) == read
    assert read_tags(json.dumps(written)).to_dict() == written


def test_tags_are_no_spec() -> None:
    with pytest.raises(DocumentError, match="unknown field `observation` in a model spec"):
        read_spec(AUTHORED_TAGS)
