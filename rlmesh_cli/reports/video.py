"""Video: the frames of one episode as an H.264 file, written while it is played."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import HarnessError

#: Frames a second of an environment that does not say how many.
USUAL_FPS = 30.0
# 0 to 10 of imageio; from 8 on, rendered lines and text stay sharp.
_QUALITY = 8

Frame = npt.NDArray[np.uint8]


def check_video(path: Path, flag: str) -> None:
    """Raise HarnessError if videos cannot be written here, or not under such a name."""
    if find_spec("imageio") is None or find_spec("imageio_ffmpeg") is None:
        raise HarnessError(
            "videos are written by imageio with ffmpeg, which is not installed",
            where=flag,
            mend="install the extra: pip install 'rlmesh-cli[video]'",
        )
    if path.suffix.lower() not in (".mp4", ".mkv", ".mov"):
        raise HarnessError(
            f"{path.name} does not say which kind of video it is", where=flag, mend=f"name it {path.stem}.mp4"
        )


class VideoFile:
    """Writes frames of one size into a file.

    path: with the ending of its kind. fps: frames a second.
    """

    def __init__(self, path: Path, fps: float) -> None:
        self._path, self._fps = path, fps
        self._writer: Any = None
        #: Frames since the last `restart`.
        self.frames = 0

    def restart(self) -> None:
        """Begin anew; frames that were written are gone."""
        self.close()
        self.frames = 0

    def add(self, frame: Frame) -> None:
        """Append one frame (height, width, 3); odd sides get a row or column more, as the codec wants it."""
        if self._writer is None:
            import imageio.v2  # noqa: PLC0415 - an extra, and slow to import

            self._writer = imageio.v2.get_writer(
                self._path, format="FFMPEG", fps=self._fps, codec="libx264", quality=_QUALITY, macro_block_size=1
            )
        height, width = frame.shape[:2]
        if height % 2 or width % 2:
            frame = np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        self._writer.append_data(frame)
        self.frames += 1

    def close(self) -> None:
        """Finish the file; idempotent."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def __enter__(self) -> VideoFile:
        """Return itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Finish the file; after an error, that one says more than what the encoder makes of half a file."""
        with contextlib.suppress(*([] if error[0] is None else [Exception])):
            self.close()
