"""Conversions between what an environment gives and what a policy was trained on, and averaged chunks."""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from adapter_routes import (
    DRIVE,
    NUMBER,
    NUMBER_TAG,
    Asked,
    box,
    camera,
    drive,
    free,
    image,
    numbers,
    route_of,
    shown,
    spec_of,
    state,
    tag,
)
from gymnasium import spaces

from rlmesh_adapters.contract import Ensemble
from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.errors import HarnessError, RouteError
from rlmesh_adapters.resolve.errors import ResolveError

DICT_STATE = spaces.Dict({"z_pos": box(-9, 9, 3), "a_grip": box(-9, 9, 1)})
BOX_ACTION = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))


def picture(pixels: Any, tags: Any, **wanted: Any) -> Any:
    """Return what a policy sees of one image of bytes (H, W, C)."""
    given = np.asarray(pixels, np.uint8)
    return shown(given[None], camera(*given.shape), image(**tags), image(**wanted))[0]


def sent(outputs: Any, action: spaces.Space[Any], env: Any, model: Any, **options: Any) -> Any:
    """Return what an environment is sent for a policy's outputs, one a lane."""
    given = np.asarray(outputs, np.float64)
    lanes = len(given)
    spec = spec_of(options.pop("wanted", state("x/number")), model)
    rows = options.pop("rows", np.zeros((lanes, 1), np.float32))
    engine = route_of(Asked(spec, given), action=action, drives=[env], num_lanes=lanes, **options)
    return engine.predict("route", rows, contexts(*range(lanes)))


class Plans:
    """Answers each call with the next of its chunks."""

    def __init__(self, spec: Any, *chunks: Any) -> None:
        self.spec, self._chunks = spec, iter(chunks)

    def predict_chunk_batch(self, observations: Any) -> Any:
        return np.array(next(self._chunks), np.float64)[None, :, None]


@pytest.mark.parametrize(("decay", "right"), [(log(2), 1.7142857), (0, 2.3333333)])
def test_of_overlapping_plans_the_older_weighs_more(decay: float, right: float) -> None:
    """K19. The first step has one plan only; at the third there are 1, 2 and 4, the oldest first."""
    policy = Plans(spec_of(state("x/number"), DRIVE), [7, 7, 1], [5, 2, 5], [4, 3, 3])
    engine = route_of(policy, action=box(-9, 9, 1), horizon=3, ensemble=Ensemble(decay=decay))
    rows = np.zeros((1, 1), np.float32)
    first, _, third = (engine.predict("route", rows, contexts(0)).actions.item() for _ in range(3))
    assert (first, third) == (7, pytest.approx(right, abs=1e-6))


def test_a_plan_of_an_ended_episode_weighs_nothing() -> None:
    """K19."""
    policy = Plans(spec_of(state("x/number"), DRIVE), [1, 100], [5, 5])
    engine = route_of(policy, action=box(-200, 200, 1), horizon=2, ensemble=Ensemble(decay=0))
    rows = np.zeros((1, 1), np.float32)
    engine.predict("route", rows, contexts(0))
    engine.end_episodes("route", contexts(0))
    assert engine.predict("route", rows, contexts(1)).actions.item() == 5


def test_a_decay_that_prefers_the_newest_is_refused() -> None:
    """K19."""
    policy = Plans(spec_of(state("x/number"), DRIVE))
    with pytest.raises(RouteError, match=r"a decay of -0\.1 would let later plans outweigh"):
        route_of(policy, horizon=2, ensemble=Ensemble(decay=-0.1))


@pytest.mark.parametrize(
    ("tags", "wanted", "right"),
    [
        ({}, {}, [[0, 1, 2], [3, 4, 5]]),
        ({"upside_down": True}, {}, [[5, 4, 3], [2, 1, 0]]),
        ({}, {"upside_down": True}, [[5, 4, 3], [2, 1, 0]]),
        ({"upside_down": True}, {"upside_down": True}, [[0, 1, 2], [3, 4, 5]]),
        ({"flip": "vertical"}, {}, [[3, 4, 5], [0, 1, 2]]),
        ({"flip": "horizontal"}, {}, [[2, 1, 0], [5, 4, 3]]),
        ({"upside_down": True, "flip": "vertical"}, {}, [[2, 1, 0], [5, 4, 3]]),
    ],
)
def test_an_image_is_turned_once_and_not_mirrored(tags: Any, wanted: Any, right: Any) -> None:
    """K25."""
    assert picture([[[0], [1], [2]], [[3], [4], [5]]], tags, **wanted)[..., 0].tolist() == right


def test_the_turn_is_shown_to_the_reader() -> None:
    """K25."""
    engine = route_of(Asked(spec_of(image(), DRIVE), [[0]]), camera(2, 3), image(upside_down=True))
    assert "flip 180" in engine.route("route").plan.description


@pytest.mark.parametrize(
    ("tags", "wanted", "right"),
    [
        ({}, {"layout": "chw"}, [[0, 3, 6, 9], [12, 15, 18, 21], [24, 27, 30, 33]]),
        ({"layout": "chw"}, {"layout": "chw"}, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]),
        ({"layout": "chw"}, {}, [[0, 12, 24], [1, 13, 25], [2, 14, 26]]),
    ],
)
def test_the_declared_layout_is_believed_and_the_shape_is_not(tags: Any, wanted: Any, right: Any) -> None:
    """K26. Of (3, 4, 3) the shape says nothing."""
    assert picture(np.arange(36).reshape(3, 4, 3), tags, **wanted)[0].tolist() == right


@pytest.mark.parametrize(
    ("pixel", "right"), [([255, 10, 0], [0, 10, 255]), ([1, 2, 3, 4, 5, 6], [3, 2, 1, 6, 5, 4])]
)
def test_colours_are_exchanged_within_each_frame(pixel: list[int], right: list[int]) -> None:
    """K27."""
    assert picture([[pixel]], {"channel_order": "rgb"}, channel_order="bgr").ravel().tolist() == right
    assert picture([[pixel]], {"channel_order": "bgr"}, channel_order="bgr").ravel().tolist() == pixel


BYTES = [[[0], [1], [127], [128], [255]]]


@pytest.mark.parametrize(
    ("normalize", "right"),
    [
        (True, [0, 0.003921569, 0.498039216, 0.501960784, 1]),
        ([-1, 1], [-1, -0.992156863, -0.003921569, 0.003921569, 1]),
    ],
)
def test_bytes_are_scaled_once(normalize: Any, right: list[float]) -> None:
    """K28."""
    seen = picture(BYTES, {}, dtype="float32", normalize=normalize)
    assert (seen.dtype, seen.ravel().tolist()) == (np.float32, pytest.approx(right, abs=1e-7))


def test_a_dark_frame_is_no_frame_of_ones() -> None:
    """K28. That no pixel is over 1 does not say that they are scaled already."""
    seen = picture([[[0], [1], [1], [0]]], {}, dtype="float32", normalize=True)
    assert seen.ravel().tolist() == pytest.approx([0, 0.003921569, 0.003921569, 0], abs=1e-7)


@pytest.mark.parametrize(
    ("space", "tags", "row", "right"),
    [
        (spaces.Box(0, 1, (1, 4, 1)), {}, [0, 0.5, 0.999, 1], [0, 128, 255, 255]),
        (spaces.Box(0, 255, (1, 3, 1)), {}, [0, 100, 255], [0, 100, 255]),
        (spaces.Box(-np.inf, np.inf, (1, 3, 1)), {"range": [0, 255]}, [0, 100, 255], [0, 100, 255]),
    ],
)
def test_floats_become_bytes_by_their_declared_range(space: Any, tags: Any, row: Any, right: Any) -> None:
    """K28. They are rounded, not cut off, and never wrap around."""
    rows = np.array(row, np.float32).reshape(1, *space.shape)
    assert shown(rows, space, image(**tags), image())[0].ravel().tolist() == right


def test_floats_of_an_unknown_range_are_cautioned_of() -> None:
    """K28."""
    space = spaces.Box(-np.inf, np.inf, (1, 3, 1))
    engine = route_of(Asked(spec_of(image(), DRIVE), [[0]]), space, image())
    assert [advisory.code for advisory in engine.advisories.cautions] == ["camera-range-assumed"]


@pytest.mark.parametrize(("resample", "right"), [("bilinear", 128), ("bilinear_aa", 73)])
def test_two_filters_of_one_name_are_told_apart(resample: str, right: int) -> None:
    """K29. Of stripes, which one filter looks between and the other smooths."""
    pytest.importorskip("cv2")
    pytest.importorskip("PIL")
    stripes = np.tile([0, 0, 255, 0, 0, 255, 0, 0], (4, 1))[..., None]
    seen = picture(stripes, {}, height=4, width=2, fit="stretch", resample=resample)[..., 0]
    assert np.abs(seen.astype(int) - right).max() <= 1


OPENINGS = [[0.0], [0.2], [0.5], [0.8], [1.0]]


@pytest.mark.parametrize(
    ("fields", "right"), [({}, [1, 0.6, 0, -0.6, -1]), ({"binary": True}, [1, 1, -1, -1, -1])]
)
def test_a_gripper_is_recentred_turned_and_snapped_with_ties_open(fields: Any, right: Any) -> None:
    """K34. The model's 1 is open, the environment's -1 is; nothing undefined such as 0 is ever snapped to."""
    env = drive("action/gripper", range=[-1, 1], invert=True, **fields)
    prediction = sent(OPENINGS, NUMBER, env, drive("action/gripper", range=[0, 1]))
    assert prediction.actions[:, 0].tolist() == pytest.approx(right, abs=1e-6)


POSITION = {"observation": free(1), "tags": tag("x/pos"), "wanted": state("x/pos")}


def test_absolute_targets_for_a_controller_of_steps_are_refused_or_converted() -> None:
    """K35. From 0.40 to 0.45 is a step of 0.05; every check of shape and bounds would let 0.45 through."""
    route = {**POSITION, "rows": np.array([[0.40]], np.float32)}
    with pytest.raises(ResolveError, match="the model puts out absolute values, the env expects delta ones"):
        sent([[0.45]], NUMBER, drive(mode="delta"), drive(mode="absolute"), **route)
    with pytest.raises(ResolveError, match="one side says absolute, the other does not say"):
        sent([[0.45]], NUMBER, drive(), drive(mode="absolute"), **route)
    model = drive(mode="absolute", reference="x/pos")
    assert sent([[0.45]], NUMBER, drive(mode="delta"), model, **route).actions.item() == pytest.approx(0.05)


def test_a_state_stands_in_the_order_that_the_model_names() -> None:
    """K36. The space sorts its keys: a_grip, z_pos."""
    rows = {"a_grip": np.array([[9]], np.float32), "z_pos": np.array([[1, 2, 3]], np.float32)}
    tags = {"z_pos": tag("x/pos"), "a_grip": tag("x/grip")}
    assert shown(rows, DICT_STATE, tags, state("x/pos", "x/grip"))[0].tolist() == [1, 2, 3, 9]
    assert shown(rows, DICT_STATE, tags, state("x/grip", "x/pos"))[0].tolist() == [9, 1, 2, 3]


def test_uneven_bounds_are_reached_number_by_number() -> None:
    """K37. What is beyond is cut off and told."""
    outputs = [[0.5, -0.2], [1.7, -3], [-1, 1]]
    prediction = sent(outputs, BOX_ACTION, drive(dim=2), drive(dim=2, range=[-1, 1]))
    assert prediction.actions.tolist() == pytest.approx(np.array([[1, 4], [2, 0], [-2, 10]]), abs=1e-6)
    assert (prediction.actions.dtype, prediction.clipped.tolist()) == (np.float32, [False, True, False])


def test_bounds_without_end_are_refused_at_the_start() -> None:
    """K37."""
    with pytest.raises(ResolveError, match="the env gives no finite range to map it into"):
        sent([[0, 0]], free(2), drive(dim=2), drive(dim=2, range=[-1, 1]))


STATISTICS = {"min": [-1.0, 0.0], "max": [3.0, 10.0], "q01": [-0.5, 1.0], "q99": [1.5, 9.0]}


@pytest.mark.parametrize(
    ("kind", "names", "right"), [("min_max", ("min", "max"), [2, 0]), ("quantile", ("q01", "q99"), [1, 1])]
)
def test_outputs_are_unnormalised_by_the_declared_statistics(kind: str, names: Any, right: Any) -> None:
    """K38. Whether they stand in the spec or in a file that holds others as well."""
    inline = {"kind": kind, **{name: STATISTICS[name] for name in names}}
    in_file = {"kind": kind, "file": "stats.json", "key": "arm"}
    for normalize in (inline, in_file):
        model, files = drive(dim=2, normalize=normalize), {"stats.json": {"arm": STATISTICS}}
        prediction = sent([[0.5, -1]], free(2), drive(dim=2), model, read_statistics=files.get)
        assert prediction.actions[0].tolist() == pytest.approx(right)


def test_statistics_that_are_missing_are_never_the_identity() -> None:
    """K38."""
    model = drive(dim=2, normalize={"kind": "mean_std", "file": "stats.json"})
    with pytest.raises(HarnessError, match=r"mean_std needs `mean`, which `stats\.json` does not have.*q01, q99"):
        sent([[0, 0]], free(2), drive(dim=2), model, read_statistics={"stats.json": STATISTICS}.get)
    with pytest.raises(HarnessError, match=r"the statistics file stats\.json was not read"):
        sent([[0, 0]], free(2), drive(dim=2), model)
    with pytest.raises(DocumentError, match="min_max needs `max`, which is missing"):
        sent([[0, 0]], free(2), drive(dim=2), drive(dim=2, normalize={"kind": "min_max", "min": [0, 0]}))


def test_a_number_without_spread_stays_finite() -> None:
    """K38."""
    nothing = {"kind": "min_max", "min": [0.0], "max": [0.0]}
    assert sent([[0.7]], NUMBER, drive(), drive(normalize=nothing)).actions.tolist() == [[0]]
    assert numbers([0.3], tag("x/s"), {"role": "x/s", "normalize": nothing}).tolist() == [0]


def test_a_state_is_normalised_first_and_padded_after() -> None:
    """K38. Padding stays 0, which -1 would not be."""
    part = {"role": "x/s", "normalize": {"kind": "min_max", "min": [-1, 0], "max": [3, 10]}}
    assert numbers([2, 0], tag("x/s"), part, pad_to=4).tolist() == [0.5, -1, 0, 0]


def test_a_tagged_route_keeps_what_needs_no_conversion() -> None:
    """K36, K37. Nothing is sorted, scaled or cut where both sides say the same."""
    rows = np.array([[0.25], [-0.75]], np.float32)
    assert shown(rows, NUMBER, NUMBER_TAG, state("x/number")).tolist() == rows.tolist()
    assert sent([[0.25], [-0.75]], NUMBER, drive(), drive()).actions.tolist() == rows.tolist()
