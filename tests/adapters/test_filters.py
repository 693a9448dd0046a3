from __future__ import annotations

import sys
from collections.abc import Iterator
from math import floor, trunc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.apply import filters
from rlmesh_adapters.apply.filters import find_opencv, flip, reorder, resize, split
from rlmesh_adapters.errors import HarnessError

cv2 = pytest.importorskip("cv2")
Image = pytest.importorskip("PIL.Image")

FILTERS = ("bilinear", "bilinear_aa")
FITS = ("stretch", "crop", "pad")
CHANNELS = (1, 2, 3, 4, 6, 130)
SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))
SEEDS = st.integers(0, 2**32 - 1)


def random_images(seed: int, shape: tuple[int, ...], dtype: Any) -> Any:
    return (np.random.default_rng(seed).random(shape) * 256).astype(dtype)


def two_taps(source: int, target: int) -> Any:
    """Return the weights (target, source) of the filter that looks at two pixels."""
    weights = np.zeros((target, source))
    for place in range(target):
        position = (place + 0.5) * source / target - 0.5
        low = min(max(floor(position), 0), source - 1)
        part = min(max(position - low, 0.0), 1.0)
        weights[place, low] += 1 - part
        weights[place, min(low + 1, source - 1)] += part
    return weights


def triangle(source: int, target: int) -> Any:
    """Return the weights (target, source) of the filter that widens as the image shrinks."""
    weights = np.zeros((target, source))
    scale = source / target
    reach = max(scale, 1.0)
    for place in range(target):
        centre = (place + 0.5) * scale
        for tap in range(max(trunc(centre - reach + 0.5), 0), min(trunc(centre + reach + 0.5), source)):
            weights[place, tap] = max(0.0, 1 - abs((tap + 0.5 - centre) / reach))
        weights[place] /= weights[place].sum()
    return weights


def slowly_resampled(image: Any, size: tuple[int, int], resample: str) -> Any:
    """Return one image (H, W, C) at a size in float64, not rounded."""
    weights = two_taps if resample == "bilinear" else triangle
    down, across = weights(image.shape[0], size[0]), weights(image.shape[1], size[1])
    return np.einsum("hH,wW,HWc->hwc", down, across, image.astype(float))


def slowly_resized(image: Any, size: tuple[int, int], resample: str, fit: str) -> Any:
    """Return what `resize` should make of one image, in float64, not rounded."""
    height, width, channels = image.shape
    if image.shape[:2] == size or fit == "stretch":
        return slowly_resampled(image, size, resample)
    ratios = (size[0] / height, size[1] / width)
    scale = max(ratios) if fit == "crop" else min(ratios)
    scaled = (floor(height * scale + 0.5), floor(width * scale + 0.5))
    if fit == "crop":
        scaled = (max(scaled[0], size[0]), max(scaled[1], size[1]))
        top, left = floor((scaled[0] - size[0]) / 2), floor((scaled[1] - size[1]) / 2)
        whole = slowly_resampled(image, scaled, resample)
        return whole[top : top + size[0], left : left + size[1]]
    scaled = tuple(min(max(length, 1), most) for length, most in zip(scaled, size, strict=True))
    result = np.zeros((*size, channels))
    top, left = floor((size[0] - scaled[0]) / 2), floor((size[1] - scaled[1]) / 2)
    result[top : top + scaled[0], left : left + scaled[1]] = slowly_resampled(image, scaled, resample)
    return result


@given(
    seed=SEEDS,
    source=SIZES,
    size=SIZES,
    channels=st.sampled_from(CHANNELS[:-1]),
    resample=st.sampled_from(FILTERS),
    fit=st.sampled_from(FITS),
)
@settings(deadline=None, max_examples=300)
def test_bytes_are_within_one_step_of_the_formulas(
    seed: int, source: tuple[int, int], size: tuple[int, int], channels: int, resample: str, fit: str
) -> None:
    images = random_images(seed, (2, *source, channels), np.uint8)
    found = resize(images, size, resample, fit)
    assert found.dtype == np.uint8
    assert found.shape == (2, *size, channels)
    for image, result in zip(images, found, strict=True):
        expected = np.rint(slowly_resized(image, size, resample, fit))
        assert np.abs(result - expected).max() <= 1


@given(
    seed=SEEDS,
    source=SIZES,
    size=SIZES,
    channels=st.sampled_from(CHANNELS),
    resample=st.sampled_from(FILTERS),
    fit=st.sampled_from(FITS),
    dtype=st.sampled_from([np.float32, np.float64]),
)
@settings(deadline=None, max_examples=200)
def test_floats_are_not_rounded(
    seed: int,
    source: tuple[int, int],
    size: tuple[int, int],
    channels: int,
    resample: str,
    fit: str,
    dtype: Any,
) -> None:
    images = random_images(seed, (1, *source, channels), np.float32).astype(dtype)
    found = resize(images, size, resample, fit)
    assert found.dtype == dtype
    np.testing.assert_allclose(found[0], slowly_resized(images[0], size, resample, fit), rtol=0, atol=2e-3)


@given(seed=SEEDS, source=SIZES, size=SIZES, channels=st.sampled_from([1, 3, 4]))
@settings(deadline=None, max_examples=150)
def test_bilinear_is_what_opencv_gives(
    seed: int, source: tuple[int, int], size: tuple[int, int], channels: int
) -> None:
    """The nearest byte to what OpenCV gives in floats, and within one step of what it gives for bytes."""
    image = random_images(seed, (*source, channels), np.uint8)
    found = resize(image[None], size, "bilinear")[0].astype(float)
    exact = cv2.resize(image.astype(float), size[::-1], interpolation=cv2.INTER_LINEAR).reshape(*size, channels)
    assert np.abs(found - exact).max() <= 0.5 + 1e-3
    as_bytes = cv2.resize(image, size[::-1], interpolation=cv2.INTER_LINEAR).reshape(*size, channels)
    assert np.abs(found - as_bytes).max() <= 1


def test_bytes_of_opencv_s_own_are_off_by_one_in_about_a_tenth():
    """What `docs/adapters.md` says: of the two, ours are the nearest bytes to what OpenCV gives in floats."""
    image = random_images(0, (48, 64, 3), np.uint8)
    exact = cv2.resize(image.astype(float), (50, 30), interpolation=cv2.INTER_LINEAR)
    theirs = cv2.resize(image, (50, 30), interpolation=cv2.INTER_LINEAR)
    ours = resize(image[None], (30, 50), "bilinear")[0]
    assert 0.05 < (theirs != np.rint(exact)).mean() < 0.2
    assert (ours != np.rint(exact)).mean() < 0.01
    assert np.abs(theirs - exact).max() > np.abs(ours - exact).max()


def test_bilinear_rounds_half_to_even():
    """Between 0 and 1, and 1 and 2, two bytes lie in the middle: 0.5 becomes 0, 1.5 becomes 2."""
    image = np.array([[[0], [1]], [[0], [1]]], np.uint8)
    assert resize(image[None], (1, 1), "bilinear").ravel().tolist() == [0]
    assert resize(image[None] + 1, (1, 1), "bilinear").ravel().tolist() == [2]


@given(seed=SEEDS, source=SIZES, size=SIZES, channels=st.sampled_from([1, 2, 3, 4, 5]))
@settings(deadline=None, max_examples=150)
def test_bilinear_aa_is_what_pillow_gives_for_each_channel(
    seed: int, source: tuple[int, int], size: tuple[int, int], channels: int
) -> None:
    """Of four channels, none is taken for transparency."""
    image = random_images(seed, (*source, channels), np.uint8)
    planes = [Image.fromarray(np.ascontiguousarray(image[..., channel])) for channel in range(channels)]
    resized = [np.asarray(plane.resize(size[::-1], Image.Resampling.BILINEAR)) for plane in planes]
    assert np.array_equal(resize(image[None], size, "bilinear_aa")[0], np.stack(resized, -1))


@given(
    seed=SEEDS,
    rows=st.integers(1, 6),
    source=SIZES,
    size=SIZES,
    channels=st.sampled_from(CHANNELS),
    resample=st.sampled_from(FILTERS),
    fit=st.sampled_from(FITS),
    dtype=st.sampled_from([np.uint8, np.float32]),
)
@settings(deadline=None, max_examples=200)
def test_rows_and_channels_do_not_see_each_other(
    seed: int,
    rows: int,
    source: tuple[int, int],
    size: tuple[int, int],
    channels: int,
    resample: str,
    fit: str,
    dtype: Any,
) -> None:
    images = random_images(seed, (rows, *source, channels), dtype)
    kept = images.copy()
    found = resize(images, size, resample, fit)
    for row in range(rows):
        assert np.array_equal(resize(images[row : row + 1], size, resample, fit)[0], found[row])
    swapped = resize(np.ascontiguousarray(images[..., ::-1]), size, resample, fit)
    # In floats, OpenCV rounds the last bit of some channels in another way.
    assert np.allclose(swapped, found[..., ::-1], rtol=0 if dtype == np.uint8 else 1e-5, atol=0)
    assert np.array_equal(images, kept)


def test_a_reduction_tells_the_two_filters_apart():
    """A smooth picture would not; values ran with OpenCV and Pillow."""
    image = np.array([[0, 0, 255, 0, 0, 255, 0, 0]] * 4, np.uint8)[None, ..., None]
    assert np.array_equal(resize(image, (4, 2), "bilinear")[0, ..., 0], [[128, 128]] * 4)
    assert np.array_equal(resize(image, (4, 2), "bilinear_aa")[0, ..., 0], [[73, 73]] * 4)


@pytest.mark.parametrize("resample", FILTERS)
@pytest.mark.parametrize(
    ("image", "size", "fit", "expected"),
    [
        ([[10, 20, 30, 40]], (1, 2), "crop", [[20, 30]]),
        ([[10, 20, 30, 40, 50]], (1, 2), "crop", [[20, 30]]),
        ([[100, 200]], (2, 2), "pad", [[100, 200], [0, 0]]),
        ([[100], [200]], (2, 4), "pad", [[0, 100, 0, 0], [0, 200, 0, 0]]),
        ([[100, 200]], (3, 2), "pad", [[0, 0], [100, 200], [0, 0]]),
        ([[7, 7]], (2, 4), "pad", [[7, 7, 7, 7]] * 2),
        ([[9] * 50], (1, 2), "stretch", [[9, 9]]),
        ([[9] * 50], (1, 2), "pad", [[9, 9]]),
    ],
)
def test_fit_keeps_the_middle(
    image: list[list[int]], size: tuple[int, int], fit: str, expected: list[list[int]], resample: str
) -> None:
    found = resize(np.array(image, np.uint8)[None, ..., None], size, resample, fit)
    assert found[0, ..., 0].tolist() == expected


def test_images_of_the_right_size_are_returned_untouched():
    images = random_images(0, (2, 5, 6, 3), np.uint8)
    assert resize(images, (5, 6), "bilinear_aa", "crop") is images


@pytest.mark.parametrize("resample", FILTERS)
@pytest.mark.parametrize("fit", FITS)
def test_result_goes_where_it_is_told(resample: str, fit: str) -> None:
    images = random_images(1, (3, 9, 8, 3), np.uint8)
    out = np.full((3, 5, 7, 3), 77, np.uint8)
    assert resize(images, (5, 7), resample, fit, out=out) is out
    assert np.array_equal(out, resize(images, (5, 7), resample, fit))


@pytest.mark.parametrize("resample", FILTERS)
@pytest.mark.parametrize("fit", FITS)
def test_strided_and_read_only_images_are_fine(resample: str, fit: str) -> None:
    images = random_images(1, (3, 3, 9, 8), np.uint8)
    images.setflags(write=False)
    view = images.transpose(0, 2, 3, 1)[:, ::-1]
    expected = resize(np.ascontiguousarray(view), (5, 7), resample, fit)
    assert np.array_equal(resize(view, (5, 7), resample, fit), expected)
    assert resize(images[:0], (5, 7), resample, fit).shape == (0, 5, 7, 8)


@pytest.mark.parametrize(
    ("shape", "size", "resample", "fit", "text"),
    [
        ((1, 0, 4, 3), (2, 2), "bilinear", "stretch", r"\(0, 4, 3\) cannot be resized to \(2, 2\)"),
        ((1, 4, 4, 3), (0, 2), "bilinear", "stretch", r"cannot be resized to \(0, 2\)"),
        ((1, 4, 4, 3), (2, 2), "nearest", "stretch", "unknown filter `nearest`, expected bilinear or bilinear_aa"),
        ((1, 4, 4, 3), (2, 2), "bilinear", "squash", "unknown fit `squash`, expected stretch, crop or pad"),
    ],
)
def test_what_cannot_be_resized_is_said(
    shape: tuple[int, ...], size: tuple[int, int], resample: str, fit: str, text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        resize(np.zeros(shape, np.uint8), size, resample, fit)


@pytest.fixture
def without_libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make OpenCV and Pillow impossible to import."""
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    filters.find_opencv.cache_clear()
    filters.find_resampler.cache_clear()
    yield
    filters.find_opencv.cache_clear()
    filters.find_resampler.cache_clear()


@pytest.mark.usefixtures("without_libraries")
@pytest.mark.parametrize(("resample", "library"), [("bilinear", "OpenCV"), ("bilinear_aa", "Pillow")])
def test_missing_library_is_named_with_its_mend(resample: str, library: str) -> None:
    with pytest.raises(HarnessError, match=f"`{resample}` needs {library}") as caught:
        resize(np.zeros((1, 4, 4, 3), np.uint8), (2, 2), resample)
    assert caught.value.where == f"resample: {resample}"
    assert caught.value.mend == "pip install 'rlmesh-cli[images]'"


def every_flip() -> list[Any]:
    """Return the results of all flips of images of several kinds, as they should be and as they are."""
    pairs = []
    for shape in ((2, 5, 7, 3), (1, 4, 4, 1), (2, 3, 2, 70), (2, 6, 1, 4)):
        for dtype in (np.uint8, np.float32):
            for rows, columns in ((False, False), (True, False), (False, True), (True, True)):
                images = random_images(3, shape, dtype)
                for source in (images, np.asfortranarray(images)):
                    out = np.empty(shape, dtype)
                    flip(source, out, rows=rows, columns=columns)
                    expected = np.flip(images, [axis for axis, is_on in ((1, rows), (2, columns)) if is_on])
                    pairs.append((out, expected))
    return pairs


def test_flips_are_those_of_numpy_with_opencv():
    assert find_opencv() is not None
    assert all(np.array_equal(found, expected) for found, expected in every_flip())


@pytest.mark.usefixtures("without_libraries")
def test_flips_are_those_of_numpy_without_opencv():
    assert find_opencv() is None
    assert all(np.array_equal(found, expected) for found, expected in every_flip())


def every_order() -> list[Any]:
    """Return channels in planes and in other orders, as they should be and as they are."""
    pairs = []
    for channels, order in ((3, [2, 1, 0]), (3, [0, 1, 2]), (6, [2, 1, 0, 5, 4, 3]), (3, [1, 2, 0]), (1, [0])):
        for dtype in (np.uint8, np.float32):
            images = random_images(4, (2, 5, 7, channels), dtype)
            for source in (images, np.asfortranarray(images)):
                out, planes = np.empty(images.shape, dtype), np.empty((2, channels, 5, 7), dtype)
                reorder(source, out, order)
                split(source, planes, order)
                pairs += [(out, images[..., order]), (planes, np.moveaxis(images[..., order], 3, 1))]
    return pairs


def test_channels_are_where_they_are_asked_for_with_opencv():
    assert all(np.array_equal(found, expected) for found, expected in every_order())


@pytest.mark.usefixtures("without_libraries")
def test_channels_are_where_they_are_asked_for_without_opencv():
    assert all(np.array_equal(found, expected) for found, expected in every_order())
