"""What a model sees of a batch: cameras, states, texts and inputs of the user's own, through resolving."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from adapter_routes import (
    NUMBER,
    NUMBER_TAG,
    assembled,
    box,
    camera,
    free,
    image,
    state,
    tag,
    vector,
)
from gymnasium import spaces

from rlmesh_adapters.apply.errors import ApplyError
from rlmesh_adapters.documents.spec import Custom

PRIMARY = image()


def seen(pixels: Any, space: spaces.Space[Any], tags: Any = PRIMARY, **wanted: Any) -> Any:
    """Return what a model sees of one image (H, W, C), or (H, W) of one channel."""
    values = np.asarray(pixels, space.dtype).reshape(1, *space.shape)
    return assembled(values, space, tags, image(**wanted))[0]


def grey(*shape: int) -> spaces.Box:
    return camera(*shape, 1)


@pytest.mark.parametrize(
    ("space", "tags", "row", "right"),
    [
        (spaces.Box(0, 1, (1, 4, 1)), {}, [0, 0.4, 0.6, 1], [0, 102, 153, 255]),
        (spaces.Box(0, 255, (1, 4, 1)), {}, [0, 64, 200, 255], [0, 64, 200, 255]),
        (spaces.Box(-np.inf, np.inf, (1, 2, 1)), {}, [0, 1], [0, 255]),
        (spaces.Box(-np.inf, np.inf, (1, 3, 1)), {"range": [0, 255]}, [0, 100, 255], [0, 100, 255]),
        (spaces.Box(-1, 1, (1, 3, 1), np.float64), {}, [-1, 0, 1], [0, 128, 255]),
        (spaces.Box(0, 65535, (1, 3, 1), np.uint16), {}, [0, 200, 1000], [0, 200, 255]),
        (spaces.Box(-128, 127, (1, 2, 1), np.int8), {}, [-5, 100], [0, 100]),
    ],
)
def test_a_camera_becomes_bytes(space: spaces.Box, tags: Any, row: list[float], right: list[int]) -> None:
    """Section 16: floats by their range, 0 to 1 where there is none; whole numbers are cut off."""
    result = seen(row, space, image(**tags))
    assert (result.dtype, result.ravel().tolist()) == (np.uint8, right)


def test_a_float_camera_may_stay_as_fine_as_it_is() -> None:
    """0.5001 times 255 is 127.5255, which 8 bits cannot hold."""
    wanted = {"dtype": "float64", "normalize": True}
    fine = seen([0.5001], spaces.Box(0, 1, (1, 1, 1)), precision="float", **wanted)
    coarse = seen([0.5001], spaces.Box(0, 1, (1, 1, 1)), **wanted)
    assert fine.item() == pytest.approx(0.5001, abs=1e-7)
    assert coarse.item() == pytest.approx(128 / 255, abs=1e-7)


BLOCKS = np.repeat(np.repeat([[10, 20, 30, 40], [50, 60, 70, 80]], 2, 0), 2, 1)


@pytest.mark.parametrize(
    ("pixels", "size", "fit", "right"),
    [
        ([[10, 20, 30, 40]], (1, 2), "crop", [[20, 30]]),
        ([[10, 20, 30, 40, 50]], (1, 2), "crop", [[20, 30]]),
        ([[1], [2], [3], [4]], (2, 1), "crop", [[2], [3]]),
        (BLOCKS, (2, 2), "crop", [[20, 30], [60, 70]]),
        (BLOCKS, (2, 2), "stretch", [[15, 35], [55, 75]]),
        ([[100, 200]], (2, 2), "pad", [[100, 200], [0, 0]]),
        ([[100], [200]], (2, 2), "pad", [[100, 0], [200, 0]]),
        (BLOCKS, (4, 4), "pad", [[0] * 4, [10, 20, 30, 40], [50, 60, 70, 80], [0] * 4]),
        (BLOCKS, (5, 4), "pad", [[0] * 4, [10, 20, 30, 40], [50, 60, 70, 80], [0] * 4, [0] * 4]),
    ],
)
def test_crops_and_borders_lie_where_the_formula_puts_them(
    pixels: Any, size: tuple[int, int], fit: str, right: Any
) -> None:
    """Section 7.2: of the scaled image the middle is kept, or laid into the middle, both rounded down.

    Blocks of 2 by 2 pixels are halved to their own value.
    """
    pytest.importorskip("cv2")
    pixels = np.asarray(pixels)
    result = seen(pixels, grey(*pixels.shape), height=size[0], width=size[1], fit=fit)
    assert result[..., 0].tolist() == right


def test_a_border_is_black_also_where_black_is_minus_one() -> None:
    pytest.importorskip("cv2")
    wanted = {"height": 2, "width": 2, "fit": "pad", "dtype": "float32", "normalize": [-1, 1]}
    assert seen([[0, 255]], grey(1, 2), **wanted)[..., 0].tolist() == [[-1, 1], [-1, -1]]


@pytest.mark.parametrize(
    ("wanted", "shape", "value"),
    [
        ({}, (2, 4, 3), 0),
        ({"fill": 7}, (2, 4, 3), 7),
        ({"fill": 51, "dtype": "float32", "normalize": True, "layout": "chw"}, (3, 2, 4), 0.2),
        ({"fill": 255, "dtype": "float64", "normalize": [-1, 1], "lead_dims": 2}, (1, 1, 2, 4, 3), 1),
        ({"fill": 51, "dtype": "float32", "normalize": True, "mean": [0.1] * 3, "std": [0.5] * 3}, (2, 4, 3), 0.2),
        ({"stack": 3, "lead_dims": 1, "fill": 9}, (3, 1, 2, 4, 3), 9),
    ],
)
def test_a_camera_that_is_absent_is_filled(wanted: Any, shape: tuple[int, ...], value: float) -> None:
    leaf = image("image/wrist", optional=True, height=2, width=4, channels=3, **wanted)
    result = assembled(np.zeros((2, 1), np.float32), NUMBER, NUMBER_TAG, leaf, rows=2)
    assert result.shape == (2, *shape)
    assert np.abs(result - value).max() < 1e-7
    assert result.dtype == wanted.get("dtype", "uint8")


def test_mean_and_deviation_are_by_channel_after_normalising() -> None:
    wanted = {"dtype": "float32", "normalize": True, "mean": [0, 0.5, 1], "std": [1, 0.5, 2]}
    for layout in ("hwc", "chw"):
        values = seen([0, 255, 255], camera(1, 1), layout=layout, **wanted)
        assert values.ravel().tolist() == [0, 1, 0]


def encoded(pixels: Any, kind: str = "PNG") -> bytes:
    from_array = pytest.importorskip("PIL.Image").fromarray
    file = io.BytesIO()
    from_array(np.asarray(pixels, np.uint8)).save(file, kind)
    return file.getvalue()


def test_encoded_cameras_are_decoded() -> None:
    batch = [encoded([[[1, 2, 3], [4, 5, 6]]]), encoded([[[7, 8, 9], [10, 11, 12]]])]
    result = assembled(batch, camera(1, 2), PRIMARY, image(layout="chw", upside_down=True), rows=2)
    assert result.tolist() == [[[[4, 1]], [[5, 2]], [[6, 3]]], [[[10, 7]], [[11, 8]], [[12, 9]]]]


@pytest.mark.parametrize("bad", [b"", b"GIF89a", encoded([[[1, 2, 3], [4, 5, 6]]])[:40]])
def test_bytes_that_are_no_image_are_refused(bad: bytes) -> None:
    with pytest.raises(ApplyError, match="camera `<root>`"):
        assembled([bad], camera(1, 2), PRIMARY, PRIMARY)


@pytest.mark.parametrize(
    ("part", "right"),
    [
        ("x/s", [1, 2, 3]),
        ({"role": "x/s", "dim": 2}, [1, 2]),
        ({"role": "x/s", "index": 2}, [3]),
        ({"role": "x/s", "index": 0}, [1]),
        ({"role": "x/s", "range": [0, 1]}, [0.55, 0.6, 0.65]),
        ({"role": "x/s", "range": [0, 1], "index": 1}, [0.6]),
        ({"role": "x/s", "range": [-10, 10]}, [1, 2, 3]),
        ({"role": "x/s", "range": [[0, 0, -10], [20, 2, 10]]}, [11, 1.2, 3]),
        ({"role": "x/s", "normalize": {"kind": "min_max", "min": [0, 0, 3], "max": [2, 4, 3]}}, [0, 0, 0]),
        ({"role": "x/s", "normalize": {"kind": "quantile", "q01": [0, 0, 0], "q99": [1, 1, 2]}}, [1, 3, 2]),
        ({"role": "x/s", "normalize": {"kind": "mean_std", "mean": [3, 2, 0], "std": [2, 5, 0]}}, [-1, 0, 0]),
        (
            {"role": "x/s", "index": 2, "normalize": {"kind": "mean_std", "mean": [1, 1, 1], "std": [2, 2, 4]}},
            [0.5],
        ),
        ({"role": "x/s", "index": 2, "normalize": {"kind": "mean_std", "mean": [1], "std": [4]}}, [0.5]),
        ({"role": "x/gone", "optional": True, "dim": 2}, [0, 0]),
    ],
)
def test_components_of_a_state(part: Any, right: list[float]) -> None:
    """Of [1, 2, 3] in bounds of -10 to 10. Without spread a number becomes 0."""
    result = vector([1, 2, 3], tag("x/s"), part, space=box(-10, 10, 3))
    assert result.dtype == np.float32
    assert result.tolist() == pytest.approx(right, abs=1e-6)


def test_a_range_is_mapped_by_its_ends() -> None:
    """Section 16: [0, 127.5, 255] from (0, 255) to (-1, 1)."""
    part = {"role": "x/s", "range": [-1, 1]}
    assert vector([0, 127.5, 255], tag("x/s", range=[0, 255]), part).tolist() == [-1, 0, 1]


def test_each_number_has_its_own_bounds() -> None:
    space = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
    assert vector([1, 4], tag("x/s"), {"role": "x/s", "range": [-1, 1]}, space=space).tolist() == pytest.approx(
        [0.5, -0.2]
    )


def test_parts_stand_in_the_order_the_model_names_them() -> None:
    fields = [{"role": "x/a", "dim": 2}, {"dim": 1}, {"role": "x/b", "dim": 1}]
    gone = {"role": "x/gone", "optional": True, "dim": 2}
    result = vector([1, 2, 3, 4], {"type": "split", "fields": fields}, "x/b", gone, "x/a", "x/b", pad_to=8)
    assert result.tolist() == [4, 0, 0, 1, 2, 4, 0, 0]


@pytest.mark.parametrize(
    ("fields", "right", "dtype"),
    [
        ({"reshape": [2, 2]}, [[1, 2], [3, 4]], np.float32),
        ({"reshape": [-1, 1]}, [[1], [2], [3], [4]], np.float32),
        ({"reshape": [2, 1, -1], "pad_to": 6, "dtype": "float64"}, [[[1, 2, 3]], [[4, 0, 0]]], np.float64),
        ({"dtype": "int16"}, [1, 2, 3, 4], np.int16),
        ({"dtype": "float16", "pad_to": 5}, [1, 2, 3, 4, 0], np.float16),
    ],
)
def test_shapes_and_types_of_a_state(fields: Any, right: Any, dtype: Any) -> None:
    result = vector([1, 2, 3, 4], tag("x/s"), "x/s", **fields)
    assert (result.tolist(), result.dtype) == (right, dtype)


def test_a_list_is_a_list_of_numbers() -> None:
    result = vector([1, 2], tag("x/s"), "x/s", container="list", pad_to=3)
    assert (type(result), result) == (list, [1.0, 2.0, 0.0])


@pytest.mark.parametrize("value", [0.5, 300, -1, np.nan])
def test_numbers_that_do_not_fit_into_whole_ones_fail_their_row_alone(value: float) -> None:
    batch = np.array([[1], [value], [2]], np.float32)
    with pytest.raises(ApplyError, match="does not fit into uint8") as caught:
        assembled(batch, free(1), tag("x/s"), state("x/s", dtype="uint8"), rows=3)
    assert caught.value.rows == (1,)


def test_spaces_of_whole_numbers_are_states() -> None:
    for space, batch, right in (
        (spaces.Discrete(5), np.array([3, 0]), [[3], [0]]),
        (spaces.MultiBinary(2), np.array([[1, 0], [0, 1]], np.int8), [[1, 0], [0, 1]]),
        (box(0, 9, 2, 2), np.arange(8, dtype=np.float32).reshape(2, 2, 2), [[0, 1, 2, 3], [4, 5, 6, 7]]),
    ):
        assert assembled(batch, space, tag("x/s"), state("x/s"), rows=2).tolist() == right


TALK = spaces.Dict({"say": spaces.Text(20), "n": NUMBER})
TALK_TAGS = {"say": {"type": "text", "role": "text/instruction"}, "n": NUMBER_TAG}


@pytest.mark.parametrize(
    ("leaf", "right"),
    [
        ({"role": "text/instruction"}, ["go", ""]),
        ({"role": "text/instruction", "fill": "stop"}, ["go", ""]),
        ({"role": "text/instruction", "container": "list"}, [["go"], [""]]),
        ({"role": "x/goal", "fill": "stop"}, ["stop", "stop"]),
        ({"role": "x/goal", "fill": "", "container": "list"}, [[""], [""]]),
    ],
)
def test_texts_are_one_a_row(leaf: Any, right: Any) -> None:
    batch = {"say": ["go", ""], "n": np.zeros((2, 1), np.float32)}
    assert assembled(batch, TALK, TALK_TAGS, {"type": "text", **leaf}, rows=2) == right


def test_tuples_and_dicts_stand_inside_one_another() -> None:
    """W15, ours: the reference cannot assemble a tuple that is not at the root."""
    batch = {"say": ["go"], "n": np.array([[0.5]], np.float32)}
    number, text = state("x/number"), {"type": "text", "role": "text/instruction"}
    payload = assembled(batch, TALK, TALK_TAGS, [{"b": [text, [number]], "a": {}}, [], number])
    (first, empty, last) = payload
    assert (list(first), first["a"], empty, last.tolist()) == (["a", "b"], {}, (), [[0.5]])
    assert isinstance(payload, tuple)
    assert (first["b"][0], first["b"][1][0].tolist()) == (["go"], [[0.5]])


def test_observations_are_found_in_dicts_and_tuples() -> None:
    space = spaces.Dict({"arm": spaces.Tuple((NUMBER, spaces.Dict({"tip": NUMBER})))})
    batch = {"arm": (np.array([[0.1]], np.float32), {"tip": np.array([[0.7]], np.float32)})}
    tags = {"arm": [tag("x/a"), {"tip": tag("x/b")}]}
    assert assembled(batch, space, tags, state("x/b", "x/a")).tolist() == [[np.float32(0.7), np.float32(0.1)]]


def test_customs_see_one_raw_observation_each() -> None:
    batch = {"say": ["go", "stop"], "n": np.array([[1], [2]], np.float32)}
    payload = assembled(
        batch,
        TALK,
        TALK_TAGS,
        {"sum": Custom(lambda obs: obs["n"] * 10), "say": Custom(lambda obs: obs["say"] + "!")},
        rows=2,
    )
    assert (payload["sum"].tolist(), payload["say"]) == ([[10], [20]], ["go!", "stop!"])
