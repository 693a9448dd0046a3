"""Video: frames of one size as an H.264 file that browsers play, written while they come in."""

from __future__ import annotations

from fractions import Fraction
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import HarnessError

#: Frames a second of an environment that does not say how many.
USUAL_FPS = 30.0
#: Name's ending -> the container that it means.
_CONTAINERS = {".mp4": "mp4", ".mkv": "matroska", ".mov": "mov"}
# Rendered lines and text stay sharp, and greys keep their value; a thread a film, since lanes are many.
_CODEC = "libx264"
_OPTIONS = {"preset": "veryfast", "crf": "12"}

Frame = npt.NDArray[np.uint8]


def check_encoder(flag: str) -> None:
    """Raise HarnessError if videos cannot be written here."""
    if find_spec("av") is None:
        raise HarnessError(
            "videos are written by PyAV, which is not installed",
            where=flag,
            mend="install the extra: pip install 'rlmesh-cli[video]'",
        )


def check_video(path: Path, flag: str) -> None:
    """Raise HarnessError if videos cannot be written here, or not under such a name."""
    check_encoder(flag)
    if path.suffix.lower() not in _CONTAINERS:
        raise HarnessError(
            f"{path.name} does not say which kind of video it is", where=flag, mend=f"name it {path.stem}.mp4"
        )


class Video:
    """Frames of one size, encoded as they come in; it is held in memory until it is whole.

    fps: frames a second. kind: ending of the name that it will have.
    """

    def __init__(self, fps: float, kind: str = ".mp4") -> None:
        self._fps, self._kind = fps, _CONTAINERS[kind.lower()]
        self._bytes = BytesIO()
        self._container: Any = None
        self._stream: Any = None
        self._shape: tuple[int, ...] = ()
        #: Frames since the last `restart`.
        self.frames = 0

    def restart(self) -> None:
        """Begin anew; frames so far are gone."""
        self._container, self.frames = None, 0
        self._bytes = BytesIO()

    def add(self, frame: Frame) -> None:
        """Append one frame (height, width, 3); odd sides get a row or column more, as the codec wants it.

        Raises ValueError for a frame of another size than the first.
        """
        import av  # noqa: PLC0415 - an extra, and slow to import

        height, width = frame.shape[:2]
        if self._container is None:
            self._begin(av, height + height % 2, width + width % 2)
            self._shape = frame.shape
        elif frame.shape != self._shape:
            raise ValueError(f"frame {self.frames} is {list(frame.shape)}, the first one was {list(self._shape)}")
        if height % 2 or width % 2:
            frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame), format="rgb24")
        self._container.mux(self._stream.encode(picture))
        self.frames += 1

    def _begin(self, av: Any, height: int, width: int) -> None:
        self._container = av.open(self._bytes, "w", format=self._kind)
        rate = Fraction(self._fps).limit_denominator(1001)
        stream = self._container.add_stream(_CODEC, rate=rate, options=dict(_OPTIONS))
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.codec_context.thread_count = 1
        self._stream = stream

    def finish(self) -> bytes:
        """Return the whole file; empty if there was no frame."""
        container, self._container = self._container, None
        if container is not None:
            try:
                container.mux(self._stream.encode())
            finally:
                container.close()
        return self._bytes.getvalue()
