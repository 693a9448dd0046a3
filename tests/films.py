"""Decoded videos, for the tests that look at them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest


class Decoded(NamedTuple):
    """frames: each (height, width, 3) of bytes. fps: frames a second. codec, pixels: as the file says."""

    frames: list[npt.NDArray[np.uint8]]
    fps: float
    codec: str
    pixels: str

    @property
    def levels(self) -> list[int]:
        """The first number of each frame, for environments whose every pixel is the time."""
        return [int(frame[0, 0, 0]) for frame in self.frames]


def decoded(path: Path) -> Decoded:
    av = pytest.importorskip("av")
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        frames = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
        return Decoded(frames, float(stream.average_rate), stream.codec_context.name, stream.codec_context.pix_fmt)
