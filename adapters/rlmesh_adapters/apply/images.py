"""Images: executes an `ImagePlan` on whole batches.

Axes: M rows, H and W pixels of the source, h and w of the result, C channels. The order of the steps is the
contract: bytes (or floats of 0 to 255), channels last, flips and channel order, size, values, layout.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.paths import show_path
from rlmesh_adapters.plans import ImagePlan

from .buffers import Buffers
from .decoding import decode
from .errors import ApplyError
from .filters import find_resampler, flip, reorder, resize, split
from .pixels import float_ends, round_into, to_pixels
from .threads import spread

Array = npt.NDArray[Any]

# So many values are worked on at a time, which stay in the cache from the first step to the last.
_BLOCK = 1 << 17

# Smaller frames are not shared among threads: to hand one over takes about 50 us, and threads of many short steps
# wait for one another. Eight frames on two cores, the second one idle: OpenCV and numpy gained at 384x384 and lost
# at 256x256 and below; Pillow's filter, and bytes made of floats, gained at 256x256 and lost at 128x128.
_LEAST_QUICK = 3 << 17
_LEAST_SLOW = 1 << 17


class ImageStage:
    """Makes one camera image of the model's input, many rows at once; frame stacks are not its business.

    plan: what to do; `plan.stack` is ignored.

    Each row is independent of the others. Buffers in between are reused, results are not.
    Raises HarnessError where the library of the plan's filter is missing, before any image is there.
    """

    __slots__ = ("_buffers", "_dtype", "_filled", "_is_copy", "_is_scaled", "_is_turned", "_mean", "_std", "plan")

    def __init__(self, plan: ImagePlan) -> None:
        self.plan = plan
        self._dtype = np.dtype(plan.dtype)
        self._is_scaled = plan.normalize is not None or bool(plan.mean or plan.std)
        self._is_turned = plan.flip_rows or plan.flip_columns
        self._mean, self._std = np.array(plan.mean, np.float32), np.array(plan.std, np.float32)
        # Whether nothing is left to do once an image has its size, other than a cast.
        self._is_copy = plan.dst_layout == "hwc" and not (self._is_scaled or plan.swap_channels)
        self._buffers = Buffers()
        self._filled: Array | None = None
        if plan.zero_fill is not None:
            image = np.full((1, *plan.zero_fill), plan.fill, np.uint8)
            self._filled = self._allocate(1, plan.zero_fill)
            self._write(image, self._filled, list(range(plan.zero_fill[2])))
        elif self._is_resized(plan.src_shape):
            find_resampler(plan.resample)

    def apply(self, source: Array | list[bytes] | None, rows: int) -> Array:
        """Return the images of one batch.

        source: (M, H, W, C) or (M, C, H, W) as `plan.src_layout` says, of any numeric dtype; or M encoded PNG or
            JPEG images; None where the plan fills in. It is never modified.
        rows: M.
        Returns new memory: (M, 1, ..., h, w, C) or (M, 1, ..., C, h, w) of `plan.dtype`, with
        `plan.lead_dims` axes of size 1.
        Raises ValueError, naming the camera, for a source of another shape or that is no image.
        """
        if self._filled is not None:
            result = np.repeat(self._filled, rows, axis=0)
        elif isinstance(source, list):
            result = self._apply_encoded(source, rows)
        else:
            result = self._apply_array(self._checked(source, rows))
        return result.reshape(rows, *(1,) * self.plan.lead_dims, *result.shape[1:])

    def _apply_array(self, source: Array) -> Array:
        is_hwc = self.plan.src_layout == "hwc"
        shape = source.shape[1:] if is_hwc else (*source.shape[2:], source.shape[1])
        result = self._allocate(len(source), self._result_shape(shape))
        order = self._channel_order(shape[2])
        is_resized = self._is_resized(shape)
        is_one_step = is_hwc and self._is_copy and not self._is_turned and source.dtype == np.uint8
        is_slow = source.dtype.kind == "f" or (is_resized and self.plan.resample == "bilinear_aa")
        are_large = prod(shape) >= (_LEAST_SLOW if is_slow else _LEAST_QUICK)
        # A second thread does not hasten a mere copy.
        is_shared = are_large and (is_resized or not is_one_step)
        # With one step only there is nothing to keep in the cache.
        count = max(1, len(source) if is_one_step and not is_shared else _BLOCK // prod(shape))

        def finish_block(number: int) -> None:
            some = slice(number * count, (number + 1) * count)
            images = to_pixels(source[some], self.plan, self._buffers)
            self._finish(images if is_hwc else images.transpose(0, 2, 3, 1), result[some], order)

        _each(finish_block, -(-len(source) // count), is_shared=is_shared)
        return result

    def _apply_encoded(self, source: list[bytes], rows: int) -> Array:
        if len(source) != rows:
            raise ValueError(f"{self._camera}: expected {rows} encoded images, got {len(source)}")
        if not rows:
            return self._allocate(0, self._result_shape(self.plan.src_shape))
        # The first one tells what shape all have.
        first = self._decoded(source[0], 0)
        shape = self._result_shape(first.shape)
        result = self._allocate(rows, shape)
        order = self._channel_order(shape[2])

        def finish_row(row: int) -> None:
            image = self._decoded(source[row], row) if row else first
            found = self._result_shape(image.shape)
            if found != shape:
                raise ValueError(f"{self._camera}, row {row}: expected shape {shape} as in row 0, got {found}")
            self._finish(image[None], result[row : row + 1], order)

        _each(finish_row, rows, is_shared=first.size >= _LEAST_SLOW)
        return result

    def _decoded(self, data: bytes, row: int) -> Array:
        try:
            image = decode(data)
        except ValueError as error:
            raise ApplyError({row: f"{self._camera}: {error}"}) from error
        self._check_shape(image.shape, image.shape, f", row {row}")
        return image

    def _checked(self, source: Any, rows: int) -> Array:
        if not isinstance(source, np.ndarray) or source.dtype.kind not in "biuf":
            kind = getattr(source, "dtype", type(source).__name__)
            raise ValueError(f"{self._camera}: expected an array of numbers or encoded images, got {kind}")
        if source.ndim != 4 or len(source) != rows:
            raise ValueError(
                f"{self._camera}: expected {rows} images of {self.plan.src_layout}, got shape {source.shape}"
            )
        shape = source.shape[1:]
        self._check_shape(shape, shape if self.plan.src_layout == "hwc" else (*shape[1:], shape[0]))
        return source

    def _check_shape(self, given: tuple[int, ...], shape: tuple[int, ...], place: str = "") -> None:
        # A 0 in the plan is a length that is not known beforehand.
        expected = self.plan.src_shape
        if 0 in shape or any(known not in (0, found) for known, found in zip(expected, shape, strict=True)):
            names = ", ".join(str(length or "any") for length in expected)
            raise ValueError(
                f"{self._camera}{place}: expected height, width, channels ({names}) as {self.plan.src_layout}, "
                f"got shape {given}"
            )

    @property
    def _camera(self) -> str:
        source = self.plan.source
        return f"image `{show_path(self.plan.placement)}`" if source is None else f"camera `{show_path(source)}`"

    def _is_resized(self, shape: tuple[int, ...]) -> bool:
        return self.plan.size is not None and self.plan.size != shape[:2]

    def _result_shape(self, shape: tuple[int, ...]) -> tuple[int, int, int]:
        height, width = self.plan.size or shape[:2]
        return height, width, shape[2]

    def _allocate(self, rows: int, shape: tuple[int, int, int]) -> Array:
        height, width, channels = shape
        for name, constants in (("mean", self.plan.mean), ("std", self.plan.std)):
            if constants and len(constants) != channels:
                raise ValueError(f"{self._camera}: `{name}` has {len(constants)} numbers for {channels} channels")
        inner = shape if self.plan.dst_layout == "hwc" else (channels, height, width)
        return np.empty((rows, *inner), self._dtype)

    def _channel_order(self, channels: int) -> list[int]:
        """Return which channel of the source each channel of the result is."""
        if not self.plan.swap_channels:
            return list(range(channels))
        if channels % 3:
            raise ValueError(f"{self._camera}: expected channels in threes to exchange, got {channels}")
        return [3 * (channel // 3) + 2 - channel % 3 for channel in range(channels)]

    def _finish(self, images: Array, result: Array, order: list[int]) -> None:
        """Flip, resize and write (M, H, W, C) values of 0 to 255 into the rows of a result."""
        plan = self.plan
        rows, columns = plan.flip_rows, plan.flip_columns
        if plan.size is None or plan.size == images.shape[1:3]:
            if self._is_turned and self._is_copy and images.dtype == self._dtype:
                flip(images, result, rows=rows, columns=columns)
                return
            if self._is_turned:
                turned = self._buffers.take("turned", images.shape, images.dtype)
                flip(images, turned, rows=rows, columns=columns)
                images = turned
            self._write(images, result, order)
            return
        if self._is_turned or not images.flags.c_contiguous:
            turned = self._buffers.take("turned", images.shape, images.dtype)
            flip(images, turned, rows=rows, columns=columns)
            images = turned
        if self._is_copy and images.dtype == self._dtype:
            resize(images, plan.size, plan.resample, plan.fit, out=result)
            return
        # Channels are resampled one by one, so their order may still be changed afterwards.
        shape = (len(images), *plan.size, images.shape[3])
        resized = self._buffers.take("resized", shape, images.dtype)
        self._write(resize(images, plan.size, plan.resample, plan.fit, out=resized), result, order)

    def _write(self, images: Array, result: Array, order: list[int]) -> None:
        """Scale and cast (M, h, w, C) values of 0 to 255 into a result, channels in the order given."""
        plan = self.plan
        rows, height, width, channels = images.shape
        if plan.dst_layout == "chw":
            if not self._is_scaled and images.dtype == self._dtype:
                split(images, result, order)
                return
            # By channel: numpy is slow where its inner loop is over three channels.
            planes = self._buffers.take("planes", (rows, channels, height, width), images.dtype)
            split(images, planes, order)
            for channel in range(channels):
                one = slice(channel, channel + 1)
                self._write_values(planes[:, channel], result[:, channel], self._mean[one], self._std[one])
            return
        if plan.swap_channels or not images.flags.c_contiguous:
            ordered = self._buffers.take("ordered", images.shape, images.dtype)
            reorder(images, ordered, order)
            images = ordered
        # One long last axis, for the same reason.
        flat = (rows, height, width * channels)
        mean, std = np.tile(self._mean, width), np.tile(self._std, width)
        self._write_values(images.reshape(flat), result.reshape(flat), mean, std)

    def _write_values(self, pixels: Array, result: Array, mean: Array, std: Array) -> None:
        """Scale and cast values of 0 to 255 into a result of the same shape.

        mean, std: float32, one number, or one for each place on the last axis; empty for none.
        """
        is_whole = self._dtype.kind in "iu"
        if not self._is_scaled and not (is_whole and not np.can_cast(pixels.dtype, self._dtype)):
            # Floats that are beyond half precision become infinite.
            with np.errstate(over="ignore"):
                result[...] = pixels
            return
        is_direct = self._dtype == np.float32
        values = result if is_direct else self._buffers.take("work", pixels.shape, np.float32)
        if self.plan.normalize is None:
            values[...] = pixels
        else:
            low, high = self.plan.normalize
            np.divide(pixels, np.float32(255), out=values, dtype=np.float32)
            # Multiplying by 1 and adding 0 change nothing.
            if high - low != 1:
                values *= np.float32(high - low)
            if low != 0:
                values += np.float32(low)
        if mean.size:
            values -= mean
        if std.size:
            values /= std
        if is_whole:
            round_into(values, *float_ends(self._dtype))
        if not is_direct:
            with np.errstate(over="ignore"):
                result[...] = values


def _each(task: Callable[[int], None], count: int, *, is_shared: bool) -> None:
    """Call `task` with each number under `count`, on several threads where the work is to be shared."""
    if is_shared:
        spread(task, count)
        return
    for number in range(count):
        task(number)
