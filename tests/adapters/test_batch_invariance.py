"""A row is converted as if it were alone, bit for bit, and nobody's memory is anybody else's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from adapter_views import array_view, box_view, dict_view, discrete_view, text_view
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlmesh_adapters.adapter import Adapter
from rlmesh_adapters.apply.errors import ApplyError
from rlmesh_adapters.batches import leaves, map_leaves, take_rows
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.reading import read_spec, read_tags
from rlmesh_adapters.documents.statistics import NEEDED
from rlmesh_adapters.predictions import Prediction
from rlmesh_adapters.resolve.resolving import resolve
from rlmesh_adapters.rotations import WIDTHS
from rlmesh_adapters.spaces import SpaceView

pytest.importorskip("cv2")
pytest.importorskip("PIL")

FUZZ = settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
#: Rows, and what draws their numbers.
BATCHES = st.tuples(st.integers(1, 6), st.integers(0, 2**32 - 1).map(np.random.default_rng))
NUMBER = {"type": "state", "role": "x/number"}
DRIVE = {"role": "x/drive", "dim": 1}
FLAGS = st.booleans()
RANGES = st.sampled_from([[-1, 1], [0, 1], [0, 255], [-3, 0.5]])
ENCODINGS = st.sampled_from(sorted(WIDTHS))
FLIPS = st.sampled_from(["vertical", "horizontal"])


def chosen(draw: Any, **options: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Draw some of the options."""
    names = draw(st.lists(st.sampled_from(sorted(options)), unique=True, max_size=4))
    return {name: draw(options[name]) for name in sorted(names)}


def statistics(draw: Any, width: int) -> dict[str, Any]:
    kind = draw(st.sampled_from(sorted(NEEDED)))
    low, high = NEEDED[kind]
    return {"kind": kind, low: [-0.3] * width, high: [0.7 * (number % 3) for number in range(width)]}


def spread(draw: Any, width: int) -> Any:
    """Draw a range, one for all numbers or one for each."""
    low, high = draw(RANGES)
    return [[low] * width, [high + number for number in range(width)]] if draw(FLAGS) else [low, high]


# States: (tag, space, part that is wanted).


@st.composite
def plain_states(draw: Any, role: str) -> Any:
    tag: dict[str, Any] = {"type": "state", "role": role}
    shape = draw(st.sampled_from([(1,), (3,), (2, 2), (5,)]))
    width = int(np.prod(shape))
    kind = draw(
        st.sampled_from(["float32", "float64", "uint8", "int64", "discrete", "multi_discrete", "multi_binary"])
    )
    if kind == "discrete":
        width, view = 1, discrete_view(4, -1)
    elif kind in ("multi_discrete", "multi_binary"):
        view = array_view(kind, shape, 0, 1, np.int8)
    elif kind.startswith("float"):
        view = box_view(*shape, dtype=kind)
        tag |= {"range": spread(draw, width)} if draw(FLAGS) else {}
    else:
        view = box_view(*shape, low=0, high=200, dtype=kind)
    part = chosen(draw, dim=st.integers(1, width), index=st.integers(0, width - 1))
    if "dim" in part:
        part.pop("index", None)
    kept = 1 if "index" in part else part.get("dim", width)
    scaling = draw(st.sampled_from(["", "range", "normalize"]))
    if scaling:
        part[scaling] = spread(draw, kept) if scaling == "range" else statistics(draw, kept)
    return tag, view, {"role": role, **part}


@st.composite
def rotations(draw: Any, role: str) -> Any:
    source, target = draw(ENCODINGS), draw(ENCODINGS)
    part: dict[str, Any] = {"role": role, "encoding": target, "keep_sign": draw(FLAGS)}
    part |= draw(st.sampled_from([{}, {"dim": 2}, {"index": 2}]))
    if draw(FLAGS):
        width = 1 if "index" in part else part.get("dim", WIDTHS[target])
        part["normalize"] = statistics(draw, width)
    dtype = draw(st.sampled_from(["float32", "float64"]))
    return {"type": "state", "role": role, "encoding": [source]}, box_view(WIDTHS[source], dtype=dtype), part


@st.composite
def splits(draw: Any, role: str) -> Any:
    """Return a vector of which a number, a rotation or a run is wanted."""
    source, target = draw(ENCODINGS), draw(ENCODINGS)
    width = WIDTHS[source]
    fields = [
        {"role": role, "dim": width, "encoding": source},
        {"role": None, "dim": 2},
        {"role": f"{role}/n", "dim": 3},
    ]
    part = draw(
        st.sampled_from(
            [{"role": role, "encoding": target}, {"role": f"{role}/n"}, {"role": f"{role}/n", "index": 1}]
        )
    )
    return {"type": "split", "fields": draw(st.permutations(fields))}, box_view(width + 5), part


@st.composite
def state_routes(draw: Any) -> Any:
    """Return tags, spaces and inputs by name."""
    names = "abc"[: draw(st.integers(1, 3))]
    found = {
        name: draw(plain_states(f"x/{name}") | rotations(f"x/{name}") | splits(f"x/{name}")) for name in names
    }
    parts = [part for _, _, part in found.values()]
    if draw(FLAGS):
        parts.insert(draw(st.integers(0, len(parts))), {"role": "x/absent", "dim": 2, "optional": True})
    # A pair of pieces of one source, too.
    parts += draw(st.sampled_from([[], parts[:1]]))
    more = chosen(
        draw,
        dtype=st.sampled_from(["float64", "float16", "int64", "uint8", "bool"]),
        pad_to=st.just(64),
        stack=st.integers(2, 3),
        reshape=st.just([-1, 1]),
    )
    if "stack" not in more and draw(FLAGS):
        more["container"] = "list"
    tags = {name: tag for name, (tag, _, _) in found.items()}
    views = {name: view for name, (_, view, _) in found.items()}
    return tags, views, {"state": {"type": "state", "components": parts, **more}}


@st.composite
def image_routes(draw: Any) -> Any:
    tags, views, inputs = {}, {}, {}
    for name in "ab"[: draw(st.integers(1, 2))]:
        tag = {"type": "image", "role": f"x/{name}", "layout": draw(st.sampled_from(["hwc", "chw"]))}
        tag |= chosen(draw, upside_down=FLAGS, flip=FLIPS)
        height, width, channels = draw(st.tuples(st.integers(1, 7), st.integers(1, 7), st.sampled_from([1, 3, 4])))
        shape = (height, width, channels) if tag["layout"] == "hwc" else (channels, height, width)
        dtype = draw(st.sampled_from(["uint8", "uint8", "float32", "float64", "uint16", "int64", "bool"]))
        bound = 1 if dtype == "bool" else 255
        is_float = dtype.startswith("float")
        views[name] = box_view(
            *shape, low=0, high=draw(st.sampled_from([1, np.inf])) if is_float else bound, dtype=dtype
        )
        wanted: dict[str, Any] = {
            "type": "image",
            "role": tag["role"],
            "layout": draw(st.sampled_from(["hwc", "chw"])),
        }
        wanted |= chosen(draw, upside_down=FLAGS, flip=FLIPS, lead_dims=st.integers(1, 2), stack=st.integers(2, 3))
        wanted |= chosen(draw, precision=st.just("float"), height=st.integers(1, 9), width=st.integers(1, 9))
        wanted |= {"fit": draw(st.sampled_from(["stretch", "crop", "pad"])), "allow_upscale": True}
        wanted["resample"] = draw(st.sampled_from(["bilinear", "bilinear_aa"]))
        wanted["dtype"] = draw(st.sampled_from(["uint8", "int16", "int32", "float32", "float64", "float16"]))
        if wanted["dtype"].startswith("float"):
            wanted |= chosen(draw, normalize=FLAGS | RANGES)
            wanted |= draw(st.sampled_from([{}, {"mean": [0.4] * channels, "std": [0.3] * channels}]))
        if channels == 3 and draw(FLAGS):
            tag["channel_order"], wanted["channel_order"] = "rgb", draw(st.sampled_from(["rgb", "bgr"]))
        tags[name], inputs[name] = tag, wanted
    if draw(FLAGS):
        blank = {
            "type": "image",
            "role": "x/none",
            "height": 2,
            "width": 1,
            "channels": 3,
            "optional": True,
            "fill": 9,
        }
        inputs["blank"] = blank
    return tags, views, inputs


@st.composite
def mixed_routes(draw: Any) -> Any:
    """Return a camera, a state, a text, and an input of the user's own."""
    tags, views, inputs = draw(image_routes())
    tags = {f"image-{name}": tag for name, tag in tags.items()}
    views = {f"image-{name}": view for name, view in views.items()}
    more_tags, more_views, more_inputs = draw(state_routes())
    tags |= more_tags | {"task": {"type": "text", "role": "text/instruction"}}
    views |= more_views | {"task": text_view()}
    containers = st.sampled_from(["str", "list"])
    inputs |= more_inputs | {
        "task": {"type": "text", "role": "text/instruction", "container": draw(containers)},
        "fill": {"type": "text", "role": "x/none", "container": draw(containers), "fill": "go"},
        "own": {"type": "custom", "transform": "own:length"},
    }
    return tags, views, inputs


OBSERVATIONS = state_routes() | image_routes() | mixed_routes()


def length_of_task(observation: Any) -> Any:
    return np.float32(len(observation["task"]))


def observation_adapter(route: Any) -> Adapter:
    tags, views, inputs = route
    env = read_tags({"observation": tags, "action": {"components": [DRIVE]}})
    model = read_spec({"input": inputs, "output": {"components": [DRIVE]}})
    action = box_view(1)
    plans = resolve(env, dict_view(views), action, model, import_function=lambda name: length_of_task)
    return Adapter(plans, action)


def values_of(view: SpaceView, rows: int, rng: np.random.Generator) -> Any:
    """Return M values of a space, some at its ends, and floats beyond them."""
    if not view.is_array:
        return [f"task {number}" for number in rng.integers(0, 99, rows)]
    shape = (rows, *view.shape)
    if view.dtype.kind == "f":
        return (rng.normal(size=shape) * rng.choice([0.1, 1, 30])).astype(view.dtype)
    return rng.integers(view.low, view.high, shape, dtype=np.int64, endpoint=True).astype(view.dtype)


def observed(views: dict[str, SpaceView], rows: int, rng: np.random.Generator) -> Any:
    return {name: values_of(view, rows, rng) for name, view in views.items()}


def names_of(rows: Sequence[int]) -> list[str]:
    return [f"episode {row}" for row in rows]


def assembled(adapter: Adapter, batch: Any, rows: Sequence[int]) -> dict[int, Any]:
    """Return what the model sees of each of these rows that can be converted, as the engine asks for it."""
    rows = list(rows)
    while rows:
        try:
            payload = adapter.observations.apply(take_rows(batch, rows), names_of(rows))
        except ApplyError as error:
            good = [row for place, row in enumerate(rows) if place not in error.rows]
        else:
            adapter.observations.commit()
            return {row: take_rows(payload, [place]) for place, row in enumerate(rows)}
        assert len(good) < len(rows)
        rows = good
    return {}


def bits(tree: Any) -> list[Any]:
    """Return all leaves as they are in memory; every NaN is the same."""
    return [_bits_of(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else repr(leaf) for leaf in leaves(tree)]


def _bits_of(leaf: Any) -> Any:
    plain = np.where(np.isnan(leaf), leaf.dtype.type("nan"), leaf) if leaf.dtype.kind == "f" else leaf
    return leaf.dtype, leaf.shape, plain.tobytes()


def all_bits(found: dict[int, Any]) -> dict[int, Any]:
    return {row: bits(tree) for row, tree in found.items()}


def memory_of(tree: Any) -> list[Any]:
    return [leaf for leaf in leaves(tree) if isinstance(leaf, np.ndarray)]


def share_memory(one: Any, other: Any) -> bool:
    return any(np.shares_memory(first, second) for first in memory_of(one) for second in memory_of(other))


@given(OBSERVATIONS, BATCHES)
@FUZZ
def test_observations_are_converted_as_if_alone(route: Any, batches: Any) -> None:
    rows, rng = batches
    together, alone, turned = (observation_adapter(route) for _ in range(3))
    order = rng.permutation(rows).tolist()
    for _ in range(3):
        batch = observed(route[1], rows, rng)
        expected = all_bits(assembled(together, batch, range(rows)))
        single = {row: seen for number in range(rows) for row, seen in assembled(alone, batch, [number]).items()}
        assert all_bits(single) == expected
        assert all_bits(assembled(turned, batch, order)) == expected


@given(OBSERVATIONS, BATCHES, st.sampled_from([np.nan, np.inf, -np.inf, 0.0]), st.data())
@FUZZ
def test_observations_that_are_no_numbers_concern_their_rows_alone(
    route: Any, batches: Any, poison: float, data: Any
) -> None:
    rows, rng = batches
    batch = observed(route[1], rows, rng)
    bad = data.draw(st.sets(st.integers(0, rows - 1), min_size=1))
    poisoned = take_rows(batch, range(rows))
    for leaf in memory_of(poisoned):
        for row in bad:
            if leaf.dtype.kind == "f":
                leaf[row].ravel()[: 1 + rng.integers(leaf[row].size)] = poison
    clean = all_bits(assembled(observation_adapter(route), batch, range(rows)))
    with np.errstate(all="ignore"):
        found = all_bits(assembled(observation_adapter(route), poisoned, range(rows)))
        alone = {row: all_bits(assembled(observation_adapter(route), poisoned, [row])) for row in bad}
    for row in range(rows):
        assert found.get(row) == (alone[row] if row in bad else clean).get(row)


@given(OBSERVATIONS, BATCHES)
@FUZZ
def test_observations_are_neither_changed_nor_handed_on(route: Any, batches: Any) -> None:
    rows, rng = batches
    adapter = observation_adapter(route)
    batch = observed(route[1], rows, rng)
    before = bits(batch)
    payloads = []
    try:
        for _ in range(2):
            payloads.append(adapter.observations.apply(batch, names_of(range(rows))))
            adapter.observations.commit()
    except ApplyError:
        payloads.append(None)
    assert bits(batch) == before
    if payloads[0] is None:
        return
    first, second = payloads
    kept = bits(first)
    assert not share_memory(first, batch)
    assert not share_memory(first, second)
    assert not any(
        share_memory(part, other) for part in first.values() for other in first.values() if part is not other
    )
    map_leaves(lambda leaf: leaf.fill(0) if isinstance(leaf, np.ndarray) else None, second)
    assert bits(first) == kept


# Actions: (env component, space's low and high, model component).


@st.composite
def driven(draw: Any, role: str) -> Any:
    """Return one component of a Box."""
    kind = draw(st.sampled_from(["numbers", "rotation", "binary", "opaque", "absent", "reference", "own"]))
    if kind == "opaque":
        return {"dim": 2, "fill": 0.25}, (-1, 1), {"dim": 1}
    if kind == "absent":
        return (
            {"role": role, "dim": 2, "optional": True, "fill": 0.5},
            (-1, 1),
            {"role": f"{role}/other", "dim": 2},
        )
    scales = {"scale": st.sampled_from([0.5, -3.0]), "invert": FLAGS}
    dim = draw(st.integers(1, 3))
    ends = draw(st.sampled_from([(-1.0, 1.0), (0.0, 2.0), (-np.inf, np.inf)]))
    env: dict[str, Any] = {"role": role, "dim": dim, **chosen(draw, **scales)}
    model: dict[str, Any] = {"role": role, "dim": dim, **chosen(draw, **scales)}
    if kind in ("rotation", "own"):
        source, target = draw(ENCODINGS), draw(ENCODINGS)
        env |= {"dim": WIDTHS[target], "encoding": target}
        model |= {"dim": WIDTHS[source], "encoding": source, "keep_sign": draw(FLAGS)}
        if kind == "own":
            model["encoding"] = CustomEncoding(source, to_base=lambda numbers: numbers[::-1] + 0.5)
        return env, ends, model
    if kind == "binary":
        env |= {"binary": True, **chosen(draw, threshold=st.sampled_from([0.0, 0.5]))}
        return env, (-1, 1), model | chosen(draw, threshold=st.sampled_from([0.0, 0.5]))
    if kind == "reference":
        modes = draw(st.permutations(["absolute", "delta"]))
        env |= {"dim": 1, "mode": modes[0]}
        return env, ends, model | {"dim": 1, "mode": modes[1], "reference": "x/number"}
    if draw(FLAGS):
        model["normalize"] = statistics(draw, dim)
    elif draw(FLAGS):
        env |= {} if np.isfinite(ends[1]) else {"range": spread(draw, dim), "clip": draw(FLAGS)}
        model["range"] = spread(draw, dim)
    return env, ends, model


@st.composite
def box_actions(draw: Any) -> Any:
    found = [draw(driven(f"x/{number}")) for number in range(draw(st.integers(1, 3)))]
    low, high = (
        np.concatenate([np.full(env["dim"], ends[side], np.float64) for env, ends, _ in found]) for side in (0, 1)
    )
    dtype = draw(st.sampled_from(["float32", "float64"]))
    action = box_view(len(low), low=low, high=high, dtype=dtype)
    clip = draw(st.sampled_from([None, [-0.5, 0.75]]))
    return [env for env, _, _ in found], clip, action, draw(st.permutations([model for _, _, model in found]))


@st.composite
def discrete_actions(draw: Any) -> Any:
    count, start = draw(st.sampled_from([(2, 0), (3, 0), (2, -1), (5, 2)]))
    dims = draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    env, model = [], []
    for number, dim in enumerate(dims):
        select = draw(st.sampled_from(["argmax", "index", *(["threshold"] if count == 2 else [])]))
        dim = 1 if select == "argmax" else dim
        env.append({"role": f"x/{number}", "dim": dim})
        more = {"threshold": 0.5} if select == "threshold" else {}
        more |= chosen(draw, invert=FLAGS) if select != "index" else {}
        model.append(
            {"role": f"x/{number}", "dim": count if select == "argmax" else dim, "select": select, **more}
        )
    env.append({"dim": 1, "fill": start})
    width = sum(part["dim"] for part in env)
    action = array_view("multi_discrete", (width,), start, start + count - 1, np.int64)
    if len(dims) == 1 and env[0]["dim"] == 1 and draw(FLAGS):
        env, action = env[:1], discrete_view(count, start)
    return env, None, action, model


ACTIONS = box_actions() | discrete_actions()


def action_adapter(route: Any) -> Adapter:
    components, clip, action, output = route
    env = read_tags({"observation": {"number": NUMBER}, "action": {"components": components, "clip": clip}})
    model = read_spec({"input": {}, "output": {"components": output}})
    return Adapter(resolve(env, dict_view({"number": box_view(1)}), action, model), action)


def put_out(adapter: Adapter, rows: int, rng: np.random.Generator, *, is_chunked: bool) -> Any:
    """Return outputs of a model: numbers, whole ones, zeros, some of them large."""
    shape = (rows, *((3,) if is_chunked else ()), adapter.resolved.action.in_dim)
    outputs = rng.normal(size=shape) * rng.choice([0.1, 1, 5])
    return np.where(rng.random(shape) < rng.choice([0, 0.3, 1]), np.rint(outputs), outputs)


def adapted(adapter: Adapter, outputs: Any, batch: Any) -> Prediction:
    """Return what becomes of outputs that were checked as the engine checks them."""
    given_outputs = adapter.seam.convert(outputs, outputs.shape[:-1], "predict_batch")
    checked = adapter.seam.check(given_outputs)
    return adapter.adapt(Prediction(checked.actions, None, checked.clipped, checked.failures), batch)


def rows_of(prediction: Prediction, rows: Sequence[int]) -> dict[int, Any]:
    """Return action and clipping of each row that has not failed; zeros have no sign."""
    found = {}
    for place, row in enumerate(rows):
        if place not in prediction.failures:
            is_clipped = prediction.clipped is not None and prediction.clipped[place].any()
            action = np.add(prediction.actions[place], 0, dtype=prediction.actions.dtype)
            found[row] = bits(action), is_clipped and prediction.clipped[place].tolist()
    return found


@given(ACTIONS, BATCHES, FLAGS)
@FUZZ
def test_outputs_become_actions_as_if_alone(route: Any, batches: Any, is_chunked: bool) -> None:
    rows, rng = batches
    adapter = action_adapter(route)
    outputs, batch = put_out(adapter, rows, rng, is_chunked=is_chunked), {"number": rng.normal(size=(rows, 1))}
    before = bits([outputs, *batch.values()])
    prediction = adapted(adapter, outputs, batch)
    expected = rows_of(prediction, range(rows))
    for row in range(rows):
        alone = adapted(adapter, outputs[[row]], take_rows(batch, [row]))
        assert rows_of(alone, [row]).get(row) == expected.get(row)
    order = rng.permutation(rows).tolist()
    assert rows_of(adapted(adapter, outputs[order], take_rows(batch, order)), order) == expected
    assert bits([outputs, *batch.values()]) == before
    if prediction.actions is not None:
        again = adapted(adapter, outputs, batch)
        assert not share_memory([prediction.actions], [outputs, *batch.values(), again.actions])


@given(ACTIONS, BATCHES, FLAGS, st.sampled_from([np.nan, np.inf, -np.inf]), st.data())
@FUZZ
def test_outputs_that_are_no_numbers_fail_their_rows_alone(
    route: Any, batches: Any, is_chunked: bool, poison: float, data: Any
) -> None:
    rows, rng = batches
    adapter = action_adapter(route)
    outputs, batch = put_out(adapter, rows, rng, is_chunked=is_chunked), {"number": rng.normal(size=(rows, 1))}
    expected = rows_of(adapted(adapter, outputs, batch), range(rows))
    bad = data.draw(st.sets(st.integers(0, rows - 1), min_size=1))
    for row in bad:
        outputs[row].ravel()[rng.integers(outputs[row].size)] = poison
    prediction = adapted(adapter, outputs, batch)
    assert bad <= set(prediction.failures)
    assert rows_of(prediction, range(rows)) == {row: found for row, found in expected.items() if row not in bad}


@given(ACTIONS, BATCHES, st.sampled_from([np.nan, np.inf]))
@FUZZ
def test_a_reference_that_is_no_number_fails_its_row_alone(route: Any, batches: Any, poison: float) -> None:
    rows, rng = batches
    adapter = action_adapter(route)
    outputs, batch = put_out(adapter, rows, rng, is_chunked=False), {"number": rng.normal(size=(rows, 1))}
    expected = rows_of(adapted(adapter, outputs, batch), range(rows))
    bad = int(rng.integers(rows))
    batch["number"][bad] = poison
    prediction = adapted(adapter, outputs, batch)
    if adapter.actions.needs_observation:
        assert bad in prediction.failures
        expected.pop(bad, None)
    assert rows_of(prediction, range(rows)) == expected
