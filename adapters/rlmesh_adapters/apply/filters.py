"""Filters: resampling of images by OpenCV and Pillow, which are asked for only where a plan resizes.

Axes: M rows, H and W pixels of the source, h and w of the result, C channels. Every row and every channel is
resampled by itself, so neither depends on its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import floor
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import HarnessError

from .buffers import Buffers

Array = npt.NDArray[Any]

#: Resamples one contiguous image (H, W, C) into a contiguous result (h, w, C) of the same dtype.
Resampler = Callable[[Array, Array], None]

# OpenCV refuses more than 128 channels, in some versions 512.
_MOST_CHANNELS = 64


def resize(
    images: Array, size: tuple[int, int], resample: str, fit: str = "stretch", *, out: Array | None = None
) -> Array:
    """Resize a batch of images.

    images: (M, H, W, C) uint8, float32 or float64. Bytes are rounded at the end, floats are not rounded.
    size: (h, w) of the result.
    resample: `bilinear` is OpenCV's `INTER_LINEAR` of floats: four pixels around the half-pixel centre, not
        antialiased; bytes are rounded half to even. `bilinear_aa` is Pillow's `BILINEAR`: a triangle as wide as
        the reduction.
    fit: `stretch` to `size`; `crop` fills it and cuts off what is over; `pad` fits into it, the rest is 0.
    out: (M, h, w, C), contiguous, of the dtype of `images`: where the result goes; None for new memory.
    Returns (M, h, w, C) of the dtype of `images`; `images` itself where they have the size already.
    Raises ValueError for an axis of no pixels or an unknown name, HarnessError where the library is missing.
    """
    rows, height, width, channels = images.shape
    if (height, width) == tuple(size):
        return images
    if 0 in (height, width, channels, *size):
        raise ValueError(f"an image of shape {images.shape[1:]} cannot be resized to {tuple(size)}")
    resampler = find_resampler(resample)
    if out is None:
        out = np.empty((rows, *size, channels), images.dtype)
    scaled = _scaled_size((height, width), size, fit)
    images = np.ascontiguousarray(images)
    if scaled == tuple(size):
        for image, result in zip(images, out, strict=True):
            resampler(image, result)
        return out
    # Of the scaled image the middle is kept, or it is laid into the middle of the result.
    top, left = (abs(scaled[0] - size[0]) // 2, abs(scaled[1] - size[1]) // 2)
    whole = np.empty((*scaled, channels), images.dtype)
    if fit == "pad":
        out[...] = 0
    for image, result in zip(images, out, strict=True):
        if scaled == (height, width):
            whole = image
        else:
            resampler(image, whole)
        if fit == "pad":
            result[top : top + scaled[0], left : left + scaled[1]] = whole
        else:
            result[...] = whole[top : top + size[0], left : left + size[1]]
    return out


def _scaled_size(source: tuple[int, int], size: tuple[int, int], fit: str) -> tuple[int, int]:
    """Return height and width that the whole source is resampled to, before it is cut or laid on zeros."""
    (height, width), (target_height, target_width) = source, size
    if fit == "stretch":
        return target_height, target_width
    down, across = target_height / height, target_width / width
    if fit == "crop":
        scale = max(down, across)
        return max(_round(height * scale), target_height), max(_round(width * scale), target_width)
    if fit == "pad":
        scale = min(down, across)
        return (
            min(max(_round(height * scale), 1), target_height),
            min(max(_round(width * scale), 1), target_width),
        )
    raise ValueError(f"unknown fit `{fit}`, expected stretch, crop or pad")


def _round(value: float) -> int:
    return floor(value + 0.5)


@cache
def find_resampler(resample: str) -> Resampler:
    """Return the filter of a name; raises HarnessError where its library is missing, ValueError for no filter."""
    if resample == "bilinear":
        cv2 = find_opencv()
        if cv2 is None:
            raise _missing(resample, "OpenCV")
        return _opencv_resampler(cv2)
    if resample == "bilinear_aa":
        return _pillow_resampler()
    raise ValueError(f"unknown filter `{resample}`, expected bilinear or bilinear_aa")


def _missing(resample: str, library: str) -> HarnessError:
    return HarnessError(
        f"resizing images by `{resample}` needs {library}, which is not installed",
        where=f"resample: {resample}",
        mend="pip install 'rlmesh-cli[images]'",
    )


@cache
def find_opencv() -> ModuleType | None:
    """Return OpenCV, or None where it cannot be imported."""
    try:
        import cv2  # noqa: PLC0415 - optional, and its import takes long
    except ImportError:
        return None
    module: ModuleType = cv2
    return module


def _opencv_resampler(cv2: Any) -> Resampler:
    buffers = Buffers()

    def resample(image: Array, result: Array) -> None:
        height, width, channels = result.shape
        if channels > _MOST_CHANNELS:
            for start in range(0, channels, _MOST_CHANNELS):
                some = slice(start, start + _MOST_CHANNELS)
                part = np.empty_like(result[..., some], order="C")
                resample(np.ascontiguousarray(image[..., some]), part)
                result[..., some] = part
            return
        if image.dtype != np.uint8:
            cv2.resize(image, (width, height), dst=result, interpolation=cv2.INTER_LINEAR)
            return
        # Of 16 bits OpenCV rounds half to even; for bytes it has a way of its own, slower, which drops low bits.
        source = buffers.take("source", image.shape, np.uint16)
        resized = buffers.take("resized", result.shape, np.uint16)
        np.copyto(source, image)
        cv2.resize(source, (width, height), dst=resized, interpolation=cv2.INTER_LINEAR)
        np.copyto(result, resized, casting="unsafe")

    return resample


def _pillow_resampler() -> Resampler:
    try:
        from PIL import Image  # noqa: PLC0415 - optional
    except ImportError as error:
        raise _missing("bilinear_aa", "Pillow") from error
    bilinear = Image.Resampling.BILINEAR

    def resample(image: Array, result: Array) -> None:
        height, width, channels = result.shape
        size = (width, height)
        if image.dtype == np.uint8 and channels == 3:
            result[...] = np.asarray(Image.fromarray(image).resize(size, bilinear))
        elif image.dtype == np.uint8 and channels == 4:
            # As RGBA, Pillow would multiply colours by the fourth channel, which may well be depth.
            source = Image.frombuffer("RGBX", image.shape[1::-1], image, "raw", "RGBX", 0, 1)
            result[...] = np.asarray(source.resize(size, bilinear))
        else:
            kind = np.uint8 if image.dtype == np.uint8 else np.float32
            for channel in range(channels):
                plane = np.ascontiguousarray(image[..., channel], kind)
                result[..., channel] = np.asarray(Image.fromarray(plane).resize(size, bilinear))

    return resample


def flip(images: Array, out: Array, *, rows: bool, columns: bool) -> None:
    """Write images into `out`, top and bottom and left and right exchanged as told.

    images: (M, H, W, C) of any layout in memory. out: (M, H, W, C), contiguous, of the same dtype.
    """
    channels = images.shape[3]
    if (rows or columns) and images.flags.c_contiguous and channels <= _MOST_CHANNELS:
        cv2: Any = find_opencv()
        if cv2 is not None:
            code = -1 if rows and columns else int(columns)
            for image, result in zip(images, out, strict=True):
                cv2.flip(image, code, dst=result)
            return
    view = images[:, :: -1 if rows else 1, :: -1 if columns else 1]
    # By channel, as an inner loop over three channels takes five times as long.
    for channel in range(channels):
        out[..., channel] = view[..., channel]


def split(images: Array, planes: Array, order: Sequence[int]) -> None:
    """Write the channels of images into planes of their own.

    images: (M, H, W, C) of any layout in memory. planes: (M, C, H, W), contiguous, of the same dtype.
    order: which channel of the source each plane is.
    """
    cv2: Any = find_opencv() if _suits_opencv(images) else None
    if cv2 is None:
        for channel, origin in enumerate(order):
            planes[:, channel] = images[..., origin]
        return
    places = [order.index(origin) for origin in range(len(order))]
    for image, result in zip(images, planes, strict=True):
        cv2.split(image, [result[place] for place in places])


def reorder(images: Array, out: Array, order: Sequence[int]) -> None:
    """Write images into `out`, their channels in another order.

    images: (M, H, W, C) of any layout in memory. out: (M, H, W, C), contiguous, of the same dtype.
    order: which channel of the source each channel of the result is.
    """
    cv2: Any = find_opencv() if tuple(order) == (2, 1, 0) and _suits_opencv(images) else None
    if cv2 is None:
        for channel, origin in enumerate(order):
            out[..., channel] = images[..., origin]
        return
    for image, result in zip(images, out, strict=True):
        cv2.cvtColor(image, cv2.COLOR_RGB2BGR, dst=result)


def _suits_opencv(images: Array) -> bool:
    return images.flags.c_contiguous and 1 < images.shape[3] <= _MOST_CHANNELS
