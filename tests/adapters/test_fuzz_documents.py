"""Documents that nobody wrote: whatever is read or resolved, only errors that a user can mend come out."""

from __future__ import annotations

import json
import time
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from adapter_views import array_view, box_view, dict_view, discrete_view, text_view, tuple_view
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlmesh_adapters.describe import describe
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.documents.statistics import NEEDED
from rlmesh_adapters.errors import HarnessError
from rlmesh_adapters.resolve.resolving import Resolved, resolve
from rlmesh_adapters.rotations import WIDTHS
from rlmesh_adapters.spaces import SpaceView

READERS = st.sampled_from([read_tags, read_spec])
FUZZ = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))

TAGS: list[Any] = [
    {
        "observation": {
            "cam": {"type": "image", "role": "image/primary", "layout": "chw", "flip": "vertical", "x-note": [1]},
            "eef": {
                "type": "split",
                "fields": [
                    {"role": "proprio/eef_pos", "dim": 3, "range": [-1, 1]},
                    {"role": None, "dim": 2},
                    {"role": "proprio/eef_rot", "dim": 4, "encoding": ["quat_xyzw", "rot10d"]},
                ],
            },
            "joints": [{"type": "state", "role": "proprio/joint_pos", "range": [[-1, 0], [1, 2.5]]}],
            "task": {"type": "text", "role": "text/instruction"},
            "mic": {"type": "audio", "role": "x/mic", "rate": 16000},
        },
        "action": {
            "components": [
                {"role": "action/delta_eef_pos", "dim": 3, "scale": 0.5, "clip": True, "range": [-1, 1]},
                {"role": "action/delta_eef_rot", "dim": 3, "encoding": "axis_angle"},
                {"role": "action/gripper", "dim": 1, "binary": True, "threshold": 0.5, "invert": True},
                {"role": "x/arm", "dim": 2, "optional": True, "fill": 0.5, "mode": "absolute"},
                {"dim": 1, "fill": -1},
            ],
            "clip": [-1, 1],
        },
    },
    {"observation": {"type": "state", "role": "x/s"}, "action": {"components": []}},
]
SPECS: list[Any] = [
    {
        "input": {
            "image": {
                "type": "image",
                "role": "image/primary",
                "height": 64,
                "width": 64,
                "fit": ["crop", "pad"],
                "dtype": "float32",
                "normalize": [-1, 1],
                "mean": [0.5, 0.4, 0.3],
                "std": [1, 1, 2],
                "stack": 2,
                "optional": True,
                "fill": 3,
                "channels": 3,
            },
            "state": {
                "type": "state",
                "components": [
                    "proprio/eef_pos",
                    {"role": "proprio/eef_rot", "encoding": ["rot6d"], "keep_sign": True},
                    {"role": "proprio/joint_pos", "index": 1, "range": [0, 1]},
                    {"role": "x/none", "dim": 2, "optional": True},
                    {"role": "x/n", "normalize": {"kind": "min_max", "min": [0, 1], "max": [1, 1]}},
                    {"role": "x/f", "normalize": {"kind": "quantile", "file": "s.json", "key": "a.b"}},
                ],
                "pad_to": 32,
                "reshape": [-1, 4],
            },
            "texts": [{"type": "text", "role": "text/instruction", "container": "list", "fill": ""}],
            "own": {"type": "custom", "transform": "a:b"},
        },
        "output": {
            "components": [
                {
                    "role": "action/delta_eef_pos",
                    "dim": 3,
                    "normalize": {"kind": "mean_std", "mean": [0], "std": [0]},
                },
                {"role": "action/delta_eef_rot", "dim": 6, "encoding": {"base": "rot6d", "to_base": "a:b"}},
                {"role": "action/gripper", "dim": 2, "select": "argmax"},
                {"role": "x/arm", "dim": 2, "mode": "delta", "reference": "x/n"},
            ]
        },
    },
    {"input": {"type": "state", "components": ["x/s"]}, "output": {"components": [{"role": "x/a", "dim": 2}]}},
]


def words_of(node: Any) -> set[str]:
    """Return all texts in a document, keys among them."""
    if isinstance(node, dict):
        return set(node).union(*(words_of(part) for part in node.values()))
    if isinstance(node, list):
        return set().union(*(words_of(part) for part in node))
    return {node} if isinstance(node, str) else set()


WORDS = st.sampled_from(sorted(words_of(TAGS + SPECS) | {"size", "extra", "raw", "ext.a", "<obs>", "", " "}))
NUMBERS = st.sampled_from([0, -1, 1, 3, 3.0, 2**24, 2**24 + 1, 2**63, 10**400, -0.0, 1e308, 5e-324, 0.5])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | NUMBERS | st.text(max_size=5) | WORDS


def values(keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return JSON-like values with such keys in their mappings."""
    return st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=12,
    )


PLAIN = values(WORDS | st.text(max_size=5))
UNRULY = values(WORDS | SCALARS | st.tuples(st.integers()))


def nodes_of(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all nodes inside a document."""
    parts: Any = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [inner for key, part in parts for inner in ((*path, key), *nodes_of(part, (*path, key)))]


def nested(value: Any, depth: int, *, is_list: bool) -> Any:
    for _ in range(depth):
        value = [value] if is_list else {"a": value}
    return value


@st.composite
def mutants(draw: Any, documents: list[Any], anything: st.SearchStrategy[Any]) -> Any:
    """Return a sound document of which up to three random nodes were changed, deleted or joined by others."""
    document = deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(0, 3))):
        paths = nodes_of(document)
        if not paths:
            break
        *outer, last = draw(st.sampled_from(paths))
        parent = document
        for key in outer:
            parent = parent[key]
        change = draw(st.sampled_from(["replace", "delete", "insert", "wrap", "double"]))
        if change == "replace":
            parent[last] = draw(anything)
        elif change == "delete":
            del parent[last]
        elif change == "insert" and isinstance(parent, dict):
            parent.update(draw(st.dictionaries(WORDS, anything, min_size=1, max_size=1)))
        elif change == "wrap":
            parent[last] = nested(
                parent[last], draw(st.sampled_from([1, 100, 127, 300])), is_list=draw(st.booleans())
            )
        elif isinstance(parent, list):
            parent.append(deepcopy(parent[last]) if change == "double" else draw(anything))
    return document


def read_or_refuse(read: Any, value: Any) -> Any:
    """Return the document, None where it is refused as it should be: in words that can be shown."""
    try:
        return read(value)
    except DocumentError as error:
        refusal = error
    assert str(refusal).startswith(refusal.cause)
    return None


@given(READERS, PLAIN | UNRULY)
@FUZZ
def test_any_value_is_read_or_refused(read: Any, value: Any) -> None:
    read_or_refuse(read, value)


@given(READERS, mutants(TAGS + SPECS, UNRULY))
@FUZZ
def test_any_mutant_is_read_or_refused(read: Any, document: Any) -> None:
    before = repr(document)
    read_or_refuse(read, document)
    assert repr(document) == before


@given(READERS, st.binary(max_size=60) | st.text(max_size=60))
@FUZZ
def test_any_text_is_read_or_refused(read: Any, text: Any) -> None:
    read_or_refuse(read, text)


@given(READERS, st.sampled_from(TAGS + SPECS), st.data())
@FUZZ
def test_any_damaged_json_is_read_or_refused(read: Any, document: Any, data: Any) -> None:
    whole = json.dumps(document).encode()
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(start + 9, len(whole))))
    read_or_refuse(read, whole[:start] + data.draw(st.binary(max_size=4)) + whole[stop:])


@pytest.mark.parametrize("read", [read_tags, read_spec])
@pytest.mark.parametrize(
    "value",
    [
        {"type": "image", "role": "a" * 1_000_000},
        {"type": "state", "role": "r", "range": "a" * 1_000_000},
        {"type": "image", "role": "r", "layout": "a" * 1_000_000},
        {"a" * 1_000_000: 1},
        {"type": "state", "role": "r", "components": [{"role": "r", "a" * 1_000_000: 1}]},
        {"type": "state", "role": "r", "components": ["r"], "reshape": [1] * 90_000},
        {"type": "state", "role": "r", "range": [[0] * 40_000, [1] * 40_000]},
        {"type": "custom", "transform": "a:" * 500_000},
        [{"type": "text", "role": "r"}] * 30_000,
        nested({"type": "text", "role": "r"}, 100_000, is_list=True),
        nested({"type": "text", "role": "r"}, 100_000, is_list=False),
    ],
    ids=lambda value: repr(type(value).__name__),
)
def test_what_is_too_much_is_told_soon(read: Any, value: Any) -> None:
    started = time.monotonic()
    for key in ("observation", "input"):
        read_or_refuse(read, {key: value, ("action" if key == "observation" else "output"): {"components": []}})
    assert time.monotonic() - started < 10


@given(st.sampled_from([(read_tags, TAGS), (read_spec, SPECS)]), st.data())
@FUZZ
def test_what_is_read_is_written_and_read_again(side: Any, data: Any) -> None:
    read, documents = side
    found = read_or_refuse(read, data.draw(mutants(documents, PLAIN)))
    if found is None:
        return
    written = found.to_dict()
    again = read(written)
    assert again.to_dict() == written
    assert again == found
    assert read(found) is found


# Routes: three of four are meant to go together, the others need not.

ROLES = st.sampled_from(["x/a", "x/b", "x/c", "proprio/eef_pos", "image/primary"])
ENCODINGS = st.sampled_from(sorted(WIDTHS))
FINITE = st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 255.0])
PAIRS = st.tuples(FINITE, FINITE).map(sorted)
SIZES = st.sampled_from([None, 0, 1, 2, 3, 4, 16])
SIDES = st.sampled_from([1, 3, 3, 4, 8])
LAYOUTS = st.sampled_from(["hwc", "chw"])
FLIPS = st.sampled_from(["vertical", "horizontal"])
ORDERS = st.sampled_from(["rgb", "bgr"])
YES = st.just(True)
FLAGS = st.booleans()
STACKS = st.integers(1, 3)
DTYPES = st.sampled_from(["float32", "float64", "float16", "uint8", "int64", "bool", "float31"])
STATISTICS = st.sampled_from(sorted(NEEDED)).flatmap(
    lambda kind: st.integers(1, 4).map(
        lambda width: {"kind": kind, NEEDED[kind][0]: [0.0] * width, NEEDED[kind][1]: [*range(width)]}
    )
)
CUSTOM = st.sampled_from([{"base": "quat_xyzw", "from_base": "a:b"}, {"base": "rot6d", "to_base": "a:b"}])


def with_options(options: dict[str, st.SearchStrategy[Any]], **required: Any) -> st.SearchStrategy[Any]:
    """Return mappings with up to three of the options."""
    chosen = st.lists(st.sampled_from(sorted(options)), unique=True, max_size=3)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries(
            {name: st.just(value) for name, value in required.items()} | {name: options[name] for name in names}
        )
    )


@st.composite
def arrays(draw: Any, shapes: st.SearchStrategy[tuple[int, ...]]) -> SpaceView:
    """Return a space of numbers."""
    kind = draw(st.sampled_from(["box", "box", "box", "multi_discrete", "multi_binary"]))
    shape = draw(shapes)
    if kind != "box":
        high = 1 if kind == "multi_binary" else draw(st.sampled_from([1, 4]))
        return array_view(kind, shape, 0, high, np.int8 if kind == "multi_binary" else np.int64)
    return draw(boxes(shape))


@st.composite
def boxes(draw: Any, shape: tuple[int, ...]) -> SpaceView:
    dtype = draw(st.sampled_from(["float32", "float32", "float64", "float16", "uint8", "uint16", "int64", "bool"]))
    if dtype == "bool":
        return box_view(*shape, low=False, high=True, dtype=dtype)
    if not dtype.startswith("float"):
        return box_view(*shape, low=0, high=draw(st.sampled_from([1, 255])), dtype=dtype)
    uneven = np.random.default_rng(draw(st.integers(0, 9))).integers(1, 3, shape) * 1.0
    high = draw(st.sampled_from([1.0, 255.0, np.inf, uneven]))
    return box_view(*shape, low=-high, high=high, dtype=dtype)


SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
OPAQUE = SpaceView(kind="opaque", contains=lambda value: True)
VIEWS = st.recursive(
    arrays(SHAPES) | st.builds(discrete_view, st.integers(1, 5), st.integers(-2, 2)) | st.just(OPAQUE),
    lambda inner: (
        st.dictionaries(st.sampled_from(["a", "b", "<obs>"]), inner, max_size=2).map(dict_view)
        | st.lists(inner, max_size=2).map(lambda parts: tuple_view(*parts))
    ),
    max_leaves=4,
)


@st.composite
def features(draw: Any, role: str) -> tuple[Any, SpaceView]:
    """Return a tag, and the space it is for."""
    kind = draw(st.sampled_from(["image", "image", "state", "state", "rotation", "split", "text", "audio"]))
    if kind == "image":
        options = {"layout": LAYOUTS, "flip": FLIPS, "upside_down": FLAGS, "channel_order": ORDERS}
        tag = draw(with_options(options, type=kind, role=role))
        return tag, draw(boxes(draw(st.tuples(SIDES, SIDES, SIDES))))
    if kind == "rotation":
        encoding = draw(ENCODINGS)
        return {"type": "state", "role": role, "encoding": encoding}, box_view(WIDTHS[encoding])
    if kind == "state":
        shapes = st.sampled_from([(1,), (3,), (2, 2)])
        return {"type": kind, "role": role}, draw(arrays(shapes) | st.just(discrete_view(3)))
    if kind == "split":
        dims = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
        rest = [{"role": None, "dim": dim} for dim in dims[1:]]
        return {"type": kind, "fields": [{"role": role, "dim": dims[0]}, *rest]}, box_view(sum(dims))
    return {"type": kind, "role": role}, text_view()


@st.composite
def inputs(draw: Any, tag: Any) -> Any:
    """Return an input of a model that wants what is tagged so, with options of all kinds."""
    kind = tag["type"]
    role = tag["role"] if "role" in tag else tag["fields"][0]["role"]
    if kind in ("text", "audio"):
        options = {"fill": st.text(max_size=3), "container": st.sampled_from(["str", "list"])}
        return draw(with_options(options, type="text", role=role))
    if kind == "image":
        options = {"height": SIZES, "width": SIZES, "channels": SIZES, "layout": LAYOUTS, "dtype": DTYPES}
        options |= {"normalize": FLAGS | PAIRS, "resample": st.sampled_from(["bilinear_aa", "nearest"])}
        options |= {"optional": YES, "fill": st.integers(0, 255), "stack": STACKS, "channel_order": ORDERS}
        options |= {"precision": st.just("float"), "size": SIZES, "flip": FLIPS, "lead_dims": STACKS}
        fit = draw(st.lists(st.sampled_from(["stretch", "crop", "pad", "squeeze"]), min_size=1, max_size=2))
        return draw(with_options(options, type=kind, role=role, fit=fit, allow_upscale=draw(FLAGS)))
    options = {"dim": SIZES, "index": SIZES, "range": PAIRS, "normalize": STATISTICS, "optional": YES}
    options |= {"keep_sign": FLAGS, "encoding": CUSTOM}
    if "encoding" in tag:
        options.pop("encoding")
        part = draw(with_options(options, role=role, encoding=draw(ENCODINGS)))
    else:
        part = draw(st.just(role) | with_options(options, role=role))
    more = {"pad_to": SIZES, "dtype": DTYPES, "stack": STACKS, "container": st.sampled_from(["array", "list"])}
    more |= {"reshape": st.lists(st.sampled_from([-1, 0, 1, 2, 4]), max_size=3)}
    return draw(with_options(more, type="state", components=[part, *draw(st.sampled_from([[], [part]]))]))


ACTUATOR = {
    "encoding": ENCODINGS | CUSTOM,
    "range": PAIRS,
    "binary": FLAGS,
    "scale": FINITE,
    "invert": FLAGS,
    "threshold": FINITE,
    "clip": FLAGS,
    "optional": YES,
    "select": st.sampled_from(["argmax", "index", "threshold"]),
    "mode": st.sampled_from(["absolute", "delta"]),
    "reference": ROLES,
    "normalize": STATISTICS,
}
MODELS = {name: ACTUATOR[name] for name in ACTUATOR if name != "clip"}
DRIVES = {name: ACTUATOR[name] for name in ("binary", "scale", "invert", "mode", "optional", "clip")}


@st.composite
def actions(draw: Any) -> tuple[Any, SpaceView, Any]:
    """Return the components of the environment's action, their space, and the components that a model puts out."""
    widths = draw(st.lists(st.sampled_from([1, 1, 2, 3]), max_size=3))
    drives = [draw(with_options(DRIVES, role=f"x/{number}", dim=dim)) for number, dim in enumerate(widths)]
    output = [draw(with_options(MODELS, role=part["role"], dim=part["dim"])) for part in drives]
    if draw(FLAGS):
        drives.append({"dim": 1, "fill": 1.0})
    if draw(FLAGS):
        output.reverse()
    width = sum(part["dim"] for part in drives)
    high = draw(st.sampled_from([1.0, np.inf]))
    return drives, draw(st.just(box_view(width, low=-high, high=high)) | arrays(st.just((width,)))), output


@st.composite
def routes(draw: Any) -> tuple[Any, SpaceView, SpaceView, Any]:
    """Return tags, spaces of observation and action, and a spec."""
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, unique=True))
    found = {name: draw(features(f"x/{name}")) for name in names}
    tags: Any = {name: tag for name, (tag, _) in found.items()}
    view = dict_view({name: view for name, (_, view) in found.items()})
    wanted: Any = {name: draw(inputs(tag)) for name, tag in tags.items() if draw(FLAGS)}
    shape = draw(st.sampled_from(["dict", "tuple", "root"]))
    if shape == "tuple":
        tags, view, wanted = [*tags.values()], tuple_view(*(part for _, part in view.children)), [*wanted.values()]
    elif shape == "root":
        tags, view = found[names[0]]
        wanted = draw(inputs(tags))
    drives, action, output = draw(actions())
    clip = draw(st.sampled_from([None, None, [-1, 1]]))
    route = [{"observation": tags, "action": {"components": drives, "clip": clip}}, view, action]
    route.append({"input": wanted, "output": {"components": output}})
    if draw(st.sampled_from([True, False, False, False])):
        place = draw(st.integers(0, 3))
        route[place] = draw(VIEWS if place in (1, 2) else mutants([route[place]], PLAIN))
    return tuple(route)


def contents_of(view: SpaceView) -> Any:
    """Return all numbers of a space."""
    bounds = [None if ends is None else ends.tobytes() for ends in (view.low, view.high)]
    return (
        view.kind,
        view.shape,
        view.dtype,
        *bounds,
        [(name, contents_of(child)) for name, child in view.children],
    )


def resolved_or_refused(
    tags: Any, observation: SpaceView, action: SpaceView, spec: Any
) -> Resolved | HarnessError:
    try:
        return resolve(tags, observation, action, spec, import_function=lambda name: len)
    except HarnessError as error:
        return error


@given(routes())
@settings(FUZZ, max_examples=300)
def test_routes_are_resolved_or_refused_alike_each_time(route: Any) -> None:
    written_tags, observation, action, written_spec = route
    tags, spec = read_or_refuse(read_tags, written_tags), read_or_refuse(read_spec, written_spec)
    if tags is None or spec is None:
        return
    before = (tags.to_dict(), spec.to_dict(), contents_of(observation), contents_of(action))
    found, again = (resolved_or_refused(tags, observation, action, spec) for _ in range(2))
    assert (tags.to_dict(), spec.to_dict(), contents_of(observation), contents_of(action)) == before
    if isinstance(found, HarnessError):
        assert (type(again), str(again)) == (type(found), str(found))
        return
    assert found == again
    assert describe(found).startswith("observation:\n")
