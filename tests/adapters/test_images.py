from __future__ import annotations

import io
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.apply import filters
from rlmesh_adapters.apply.decoding import decode
from rlmesh_adapters.apply.images import ImageStage
from rlmesh_adapters.errors import HarnessError
from rlmesh_adapters.plans import ImagePlan

cv2 = pytest.importorskip("cv2")
Image = pytest.importorskip("PIL.Image")

SEEDS = st.integers(0, 2**32 - 1)
SOURCES = ("uint8", "int8", "int64", "uint64", "bool", "float16", "float32", "float64")


def image_plan(**options: Any) -> ImagePlan:
    return ImagePlan(placement=("image",), source=("camera",), role="image/a", bound_role="image/a", **options)


def pixels_of(values: list[Any], dtype: str = "uint8") -> Any:
    """Return one image (1, 1, W, 1) of the values."""
    return np.array(values, dtype).reshape(1, 1, -1, 1)


def through(plan: ImagePlan, values: list[Any], dtype: str = "uint8") -> list[Any]:
    """Return what becomes of a row of pixels of one channel."""
    return ImageStage(plan).apply(pixels_of(values, dtype), 1).ravel().tolist()


# An independent reading of the contract: one image at a time, every step by the formula.


def slow_pixels(plan: ImagePlan, image: Any) -> Any:
    if image.dtype == np.uint8:
        return image
    if image.dtype.kind == "f":
        low, high = plan.src_range or (0, 1)
        values = (image.astype(np.float64) - low) / (high - low) * 255
        if plan.is_float:
            return values.astype(np.float32)
        return np.where(np.isnan(values), 0, np.clip(np.round(values), 0, 255)).astype(np.uint8)
    if plan.is_float:
        return image.astype(np.float32)
    return np.array([min(max(int(value), 0), 255) for value in image.ravel()], np.uint8).reshape(image.shape)


def slow_resized(plan: ImagePlan, image: Any) -> Any:
    if plan.size is None or image.shape[:2] == plan.size:
        return image
    if plan.resample == "bilinear":
        source = image.astype(np.uint16) if image.dtype == np.uint8 else np.ascontiguousarray(image)
        found = cv2.resize(source, plan.size[::-1], interpolation=cv2.INTER_LINEAR).astype(image.dtype)
        return found.reshape(*plan.size, image.shape[2])
    planes = [Image.fromarray(np.ascontiguousarray(plane)) for plane in np.moveaxis(image, 2, 0)]
    return np.stack([np.asarray(plane.resize(plan.size[::-1], Image.Resampling.BILINEAR)) for plane in planes], -1)


def slow_values(plan: ImagePlan, image: Any) -> Any:
    one = np.float32
    if plan.normalize is not None:
        low, high = plan.normalize
        image = one(low) + (image.astype(one) / one(255)) * one(high - low)
        if plan.mean:
            image = (image - np.array(plan.mean, one)) / np.array(plan.std, one)
    dtype = np.dtype(plan.dtype)
    if dtype.kind in "iu" and image.dtype.kind == "f":
        info = np.iinfo(dtype)
        whole = [min(max(round(float(value)), info.min), info.max) for value in image.ravel()]
        return np.array(whole, dtype).reshape(image.shape)
    with np.errstate(over="ignore"):
        return image.astype(dtype)


def slow_image(plan: ImagePlan, image: Any) -> Any:
    image = slow_pixels(plan, image)
    if plan.src_layout == "chw":
        image = np.moveaxis(image, 0, 2)
    if plan.flip_rows:
        image = image[::-1]
    if plan.flip_columns:
        image = image[:, ::-1]
    if plan.swap_channels:
        groups = [image[..., start : start + 3][..., ::-1] for start in range(0, image.shape[2], 3)]
        image = np.concatenate(groups, axis=2)
    image = slow_values(plan, slow_resized(plan, image))
    if plan.dst_layout == "chw":
        image = np.moveaxis(image, 2, 0)
    return image.reshape(*(1,) * plan.lead_dims, *image.shape)


@st.composite
def plans_and_sources(draw: st.DrawFn) -> tuple[ImagePlan, Any]:
    height, width = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    channels = draw(st.sampled_from([1, 2, 3, 4, 6]))
    normalize = draw(st.sampled_from([None, (0.0, 1.0), (-1.0, 1.0), (0.25, 7.0)]))
    has_mean = normalize is not None and draw(st.booleans())
    plan = image_plan(
        src_layout=draw(st.sampled_from(["hwc", "chw"])),
        dst_layout=draw(st.sampled_from(["hwc", "chw"])),
        src_shape=draw(st.sampled_from([(0, 0, 0), (height, width, channels)])),
        flip_rows=draw(st.booleans()),
        flip_columns=draw(st.booleans()),
        swap_channels=channels % 3 == 0 and draw(st.booleans()),
        size=draw(st.sampled_from([None, (height, width), (5, 7), (1, 3), (16, 2)])),
        fit="stretch",
        resample=draw(st.sampled_from(["bilinear", "bilinear_aa"])),
        src_range=draw(st.sampled_from([None, (0.0, 255.0), (-1.0, 1.0)])),
        is_float=draw(st.booleans()),
        dtype=draw(st.sampled_from(["uint8", "float32", "float64", "float16", "int32", "int64"])),
        normalize=normalize,
        mean=tuple(0.1 * (channel + 3) for channel in range(channels)) if has_mean else (),
        std=tuple(0.2 + 0.1 * channel for channel in range(channels)) if has_mean else (),
        lead_dims=draw(st.integers(0, 2)),
    )
    shape = (height, width, channels) if plan.src_layout == "hwc" else (channels, height, width)
    dtype = np.dtype(draw(st.sampled_from(SOURCES)))
    rng = np.random.default_rng(draw(SEEDS))
    batch = rng.random((draw(st.integers(0, 5)), *shape)) * draw(st.sampled_from([1.0, 2.0, 300.0]))
    if dtype.kind in "if":
        batch -= draw(st.sampled_from([0.0, 0.5, 20.0]))
    if dtype.kind == "i":
        batch = np.clip(batch, -128, 127) if dtype.itemsize == 1 else batch
    if dtype == np.uint8:
        batch = batch % 256
    return plan, batch.astype(dtype)


@given(case=plans_and_sources())
@settings(deadline=None, max_examples=500)
def test_images_are_what_the_contract_says(case: tuple[ImagePlan, Any]) -> None:
    plan, source = case
    found = ImageStage(plan).apply(source, len(source))
    assert found.dtype == plan.dtype
    assert len(found) == len(source)
    for image, result in zip(source, found, strict=True):
        expected = slow_image(plan, image)
        assert result.shape == expected.shape
        if np.dtype(plan.dtype).kind in "iu":
            assert np.array_equal(result, expected)
        else:
            tight = 1e-3 if plan.dtype == "float16" else 1e-6
            np.testing.assert_allclose(result, expected, rtol=tight, atol=tight)


@given(case=plans_and_sources(), seed=SEEDS)
@settings(deadline=None, max_examples=200)
def test_rows_do_not_see_each_other(case: tuple[ImagePlan, Any], seed: int) -> None:
    """Nor what the stage was asked for before; and rows in another order give results in that order."""
    plan, source = case
    stage = ImageStage(plan)
    found = stage.apply(source, len(source))
    order = np.random.default_rng(seed).permutation(len(source))
    assert np.array_equal(stage.apply(source[order], len(source)), found[order], equal_nan=True)
    for row in range(len(source)):
        one = stage.apply(source[row : row + 1], 1)
        assert np.array_equal(one[0], found[row], equal_nan=True)


@given(case=plans_and_sources())
@settings(deadline=None, max_examples=200)
def test_source_is_kept_and_every_result_is_new(case: tuple[ImagePlan, Any]) -> None:
    plan, source = case
    kept = source.copy()
    source.setflags(write=False)
    stage = ImageStage(plan)
    first = stage.apply(source, len(source))
    before = first.copy()
    second = stage.apply(np.zeros_like(source), len(source))
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, source)
    assert first.flags.writeable
    assert np.array_equal(first, before, equal_nan=True)
    assert np.array_equal(source, kept)


@given(case=plans_and_sources())
@settings(deadline=None, max_examples=100)
def test_strided_batches_are_fine(case: tuple[ImagePlan, Any]) -> None:
    plan, source = case
    stage = ImageStage(plan)
    expected = stage.apply(source, len(source))
    for other in (np.repeat(source, 2, axis=0)[::2], np.asfortranarray(source)):
        assert np.array_equal(stage.apply(other, len(source)), expected, equal_nan=True)


def test_large_batches_are_cut_where_nobody_sees_it():
    source = np.random.default_rng(0).integers(0, 256, (37, 40, 50, 3), dtype=np.uint8)
    plan = image_plan(dst_layout="chw", dtype="float32", normalize=(-1.0, 1.0), flip_rows=True, swap_channels=True)
    found = ImageStage(plan).apply(source, 37)
    assert np.array_equal(found, np.stack([slow_image(plan, image) for image in source]))


IMAGE = [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("size", [None, (2, 3)])
@pytest.mark.parametrize(
    ("flips", "expected"),
    [
        ({"flip_rows": True, "flip_columns": True}, [[5, 4, 3], [2, 1, 0]]),
        ({"flip_rows": True}, [[3, 4, 5], [0, 1, 2]]),
        ({"flip_columns": True}, [[2, 1, 0], [5, 4, 3]]),
        ({}, IMAGE),
    ],
)
def test_a_turn_is_no_mirror_image(flips: dict[str, bool], expected: list[list[int]], size: Any) -> None:
    found = ImageStage(image_plan(size=size, **flips)).apply(np.array(IMAGE, np.uint8)[None, ..., None], 1)
    assert found[0, ..., 0].tolist() == expected


def test_layout_is_declared_and_not_guessed_from_the_shape():
    source = np.arange(36, dtype=np.uint8).reshape(1, 3, 4, 3)
    found = ImageStage(image_plan(dst_layout="chw")).apply(source, 1)
    assert found.shape == (1, 3, 3, 4)
    assert found[0, 0].tolist() == [[0, 3, 6, 9], [12, 15, 18, 21], [24, 27, 30, 33]]
    back = ImageStage(image_plan(src_layout="chw")).apply(found, 1)
    assert np.array_equal(back, source)


@pytest.mark.parametrize(
    ("pixel", "expected"), [([255, 10, 0], [0, 10, 255]), ([1, 2, 3, 4, 5, 6], [3, 2, 1, 6, 5, 4])]
)
@pytest.mark.parametrize("layout", ["hwc", "chw"])
def test_stacked_frames_keep_their_order_when_colours_change_theirs(
    pixel: list[int], expected: list[int], layout: str
) -> None:
    source = np.array(pixel, np.uint8).reshape(1, 1, 1, -1)
    found = ImageStage(image_plan(swap_channels=True, dst_layout=layout)).apply(source, 1)
    assert found.ravel().tolist() == expected


@pytest.mark.parametrize("layout", ["hwc", "chw"])
@pytest.mark.parametrize(
    ("values", "ends", "expected"),
    [
        ([0, 1, 127, 128, 255], (0.0, 1.0), [0, 0.003921569, 0.498039216, 0.501960784, 1]),
        ([0, 1, 127, 128, 255], (-1.0, 1.0), [-1, -0.992156863, -0.003921569, 0.003921569, 1]),
        ([0, 1, 1, 0], (0.0, 1.0), [0, 0.003921569, 0.003921569, 0]),
    ],
)
def test_bytes_are_scaled_once_however_dark(
    values: list[int], ends: tuple[float, float], expected: list[float], layout: str
) -> None:
    plan = image_plan(dtype="float32", normalize=ends, dst_layout=layout)
    assert through(plan, values) == pytest.approx(expected, abs=2e-7)


@pytest.mark.parametrize(
    ("values", "dtype", "src_range", "expected"),
    [
        ([0, 0.5, 0.999, 1], "float64", None, [0, 128, 255, 255]),
        ([0, 0.4, 0.6, 1], "float32", (0.0, 1.0), [0, 102, 153, 255]),
        ([0, 64, 200, 255], "float32", (0.0, 255.0), [0, 64, 200, 255]),
        ([0, 1], "float16", None, [0, 255]),
        ([-1, 0, 1], "float32", (-1.0, 1.0), [0, 128, 255]),
        ([0.5, 1.5, 2.5, 254.5], "float64", (0.0, 255.0), [0, 2, 2, 254]),
        ([np.nan, np.inf, -np.inf, 1e308, -1e308, 7], "float64", None, [0, 255, 0, 255, 0, 255]),
        ([-5, 0, 255, 256, 2**40], "int64", None, [0, 0, 255, 255, 255]),
        ([-128, 127], "int8", (0.0, 1.0), [0, 127]),
        ([2**64 - 1, 3], "uint64", None, [255, 3]),
        ([False, True], "bool", None, [0, 1]),
        ([0, 1, 255], "uint8", (0.0, 1.0), [0, 1, 255]),
    ],
)
def test_sources_become_bytes(values: list[Any], dtype: str, src_range: Any, expected: list[int]) -> None:
    assert through(image_plan(src_range=src_range), values, dtype) == expected


def test_floats_may_stay_floats():
    plan = image_plan(is_float=True, dtype="float32", src_range=(0.0, 1.0))
    assert through(plan, [0.1, 0.5, 1.25, -1.0], "float64") == pytest.approx([25.5, 127.5, 318.75, -255])
    assert np.isnan(through(plan, [np.nan], "float32")).all()
    assert through(plan, [-7, 300], "int32") == [-7, 300]
    whole = image_plan(is_float=True, dtype="uint8", src_range=(0.0, 255.0))
    assert through(whole, [0.5, 1.5, 300, -9, np.nan], "float32") == [0, 2, 255, 0, 0]
    for dtype, most in (("int8", 127), ("int32", 2**31 - 128), ("int64", 2**63 - 2**39)):
        plan = image_plan(is_float=True, dtype=dtype, src_range=(0.0, 255.0))
        ends = np.iinfo(dtype)
        assert through(plan, [1e30, -1e30, np.nan, 2.5], "float64") == [most, ends.min, 0, 2]


def test_bytes_do_not_wrap_round_in_a_small_dtype():
    assert through(image_plan(dtype="int8"), [0, 127, 128, 255]) == [0, 127, 127, 127]
    assert through(image_plan(dtype="uint16"), [0, 127, 128, 255]) == [0, 127, 128, 255]


def test_ends_of_the_range_are_reached_and_statistics_come_after_it():
    plan = image_plan(dtype="float32", normalize=(-1.0, 1.0))
    assert through(plan, [0, 255]) == [-1, 1]
    plan = image_plan(dtype="float64", normalize=(0.0, 1.0), mean=(0.5,), std=(0.25,))
    assert through(plan, [0, 51, 255]) == pytest.approx([-2, -1.2, 2], abs=1e-6)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (3, 2, 4, 3)),
        ({"dst_layout": "chw"}, (3, 3, 2, 4)),
        ({"dst_layout": "chw", "lead_dims": 1}, (3, 1, 3, 2, 4)),
        ({"lead_dims": 2}, (3, 1, 1, 2, 4, 3)),
        ({"lead_dims": 2, "stack": 4}, (3, 1, 1, 2, 4, 3)),
    ],
)
def test_missing_cameras_are_filled_in(options: dict[str, Any], shape: tuple[int, ...]) -> None:
    plan = image_plan(zero_fill=(2, 4, 3), fill=255, dtype="float32", normalize=(-1.0, 1.0), **options)
    stage = ImageStage(plan)
    first, second = stage.apply(None, 3), stage.apply(None, 3)
    assert first.shape == shape
    assert (first == 1).all()
    assert not np.shares_memory(first, second)
    first[...] = 7
    assert (stage.apply(None, 3) == 1).all()


def encoded(image: Any, kind: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("LA", 2), ("RGB", 3), ("RGBA", 4), ("1", 1)])
def test_encoded_images_keep_their_channels(mode: str, channels: int) -> None:
    pixels = np.random.default_rng(5).integers(0, 256, (6, 5, 4), dtype=np.uint8)
    image = Image.fromarray(pixels).convert(mode)
    expected = np.asarray(image.convert("L") if mode == "1" else image).reshape(6, 5, channels)
    assert np.array_equal(decode(encoded(image)), expected)


def test_palettes_and_sixteen_bits_are_decoded():
    image = Image.new("P", (2, 1))
    image.putpalette([9, 8, 7, 1, 2, 3])
    image.putpixel((1, 0), 1)
    assert decode(encoded(image)).tolist() == [[[9, 8, 7], [1, 2, 3]]]
    assert decode(encoded(image, transparency=0)).tolist() == [[[9, 8, 7, 0], [1, 2, 3, 255]]]
    deep = Image.fromarray(np.array([[0, 255, 256, 65535]], np.uint16))
    assert decode(encoded(deep)).ravel().tolist() == [0, 0, 1, 255]


def test_jpeg_is_what_pillow_makes_of_it():
    image = Image.fromarray(np.random.default_rng(5).integers(0, 256, (40, 50, 3), dtype=np.uint8))
    data = encoded(image, "JPEG")
    assert np.array_equal(decode(data), np.asarray(Image.open(io.BytesIO(data))))


def test_encoded_rows_go_the_way_of_arrays_and_may_differ_in_size():
    rng = np.random.default_rng(6)
    images = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((9, 8), (4, 5), (6, 7))]
    steps = {"size": (4, 5), "fit": "stretch", "flip_rows": True, "swap_channels": True, "dst_layout": "chw"}
    plan = image_plan(src_layout="chw", **steps)
    found = ImageStage(plan).apply([encoded(Image.fromarray(image)) for image in images], 3)
    expected = [ImageStage(image_plan(**steps)).apply(image[None], 1)[0] for image in images]
    assert np.array_equal(found, np.stack(expected))
    sized = image_plan(size=(4, 5), src_shape=(0, 0, 3))
    assert ImageStage(sized).apply([], 0).shape == (0, 4, 5, 3)


PNG = encoded(Image.new("RGB", (2, 2)))
GREY = encoded(Image.new("L", (2, 2)))


@pytest.mark.parametrize(
    ("options", "source", "rows", "text"),
    [
        ({"src_shape": (4, 4, 3)}, np.zeros((2, 3, 4, 4)), 2, r"4, 3\) as hwc, got shape \(3, 4"),
        ({"src_shape": (4, 4, 3), "src_layout": "chw"}, np.zeros((2, 4, 4, 3)), 2, "as chw, got"),
        ({"src_shape": (0, 0, 3)}, np.zeros((1, 4, 4, 1)), 1, r"\(any, any, 3\) as hwc, got shape \(4, 4, 1\)"),
        ({}, np.zeros((1, 4, 0, 3)), 1, r"got shape \(4, 0, 3\)"),
        ({}, np.zeros((2, 4, 4, 3)), 3, r"camera `camera`: expected 3 images of hwc, got shape \(2, 4, 4, 3\)"),
        ({}, np.zeros((2, 4, 4)), 2, r"expected 2 images of hwc, got shape \(2, 4, 4\)"),
        ({}, np.array([["a"]]), 1, "expected an array of numbers or encoded images, got <U1"),
        ({}, None, 1, "expected an array of numbers or encoded images, got NoneType"),
        ({}, [PNG], 2, "camera `camera`: expected 2 encoded images, got 1"),
        ({}, [PNG, b"GIF89a nothing"], 2, "expected a PNG or JPEG image, got 14 bytes"),
        ({}, [PNG[:44]], 1, "a PNG or JPEG image of 44 bytes cannot be decoded"),
        ({}, [PNG[:8] + b"x" * 60], 1, "a PNG or JPEG image of 68 bytes cannot be decoded"),
        ({}, [7], 1, "expected the bytes of an encoded image, got int"),
        ({}, [PNG, GREY], 2, r"row 1: expected shape \(2, 2, 3\) as in row 0, got \(2, 2, 1\)"),
        ({"src_shape": (2, 2, 3)}, [PNG, GREY], 2, r"row 1: .* \(2, 2, 3\) as hwc, got shape \(2, 2, 1\)"),
        ({"swap_channels": True}, np.zeros((1, 2, 2, 4)), 1, "expected channels in threes to exchange, got 4"),
        ({"mean": (0.5, 0.5)}, np.zeros((1, 2, 2, 3)), 1, "`mean` has 2 numbers for 3 channels"),
    ],
)
def test_wrong_sources_are_refused_with_both_shapes(
    options: dict[str, Any], source: Any, rows: int, text: str
) -> None:
    stage = ImageStage(image_plan(**options))
    with pytest.raises(ValueError, match=text):
        stage.apply(source, rows)


def test_missing_libraries_are_told_before_any_image_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    filters.find_opencv.cache_clear()
    filters.find_resampler.cache_clear()
    try:
        ImageStage(image_plan(size=(4, 4), src_shape=(4, 4, 3), fit="stretch"))
        for resample, library in (("bilinear", "OpenCV"), ("bilinear_aa", "Pillow")):
            with pytest.raises(HarnessError, match=library):
                ImageStage(image_plan(size=(4, 4), src_shape=(8, 8, 3), fit="stretch", resample=resample))
        with pytest.raises(HarnessError, match="decoding camera images needs Pillow"):
            ImageStage(image_plan()).apply([PNG], 1)
    finally:
        filters.find_opencv.cache_clear()
        filters.find_resampler.cache_clear()
