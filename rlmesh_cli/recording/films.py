"""Films: frames of one episode that become a video in memory, encoded beside the loop."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import describe_error
from rlmesh_cli.reports.video import Video

# Frames of all films that wait for the encoder; then whoever adds one waits too.
_WAITING = 64


class Encoder:
    """One thread that encodes what all films of a process hand to it; the codec works without the interpreter."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rlmesh-films")
        self._room = BoundedSemaphore(_WAITING)

    def submit(self, task: Any, *arguments: Any) -> Future[Any]:
        """Have something done after everything that was submitted before; wait where too much is waiting."""
        self._room.acquire()
        future = self._thread.submit(task, *arguments)
        future.add_done_callback(lambda _: self._room.release())
        return future

    def close(self) -> None:
        """End the thread; idempotent."""
        self._thread.shutdown(wait=True, cancel_futures=True)


class Film:
    """One video while it is made.

    encoder: does the work. fps: frames a second.
    """

    def __init__(self, encoder: Encoder, fps: float) -> None:
        self._encoder, self._video = encoder, Video(fps)
        #: What went wrong first, or empty; then nothing more is taken.
        self.failure = ""

    def add(self, frame: npt.NDArray[np.uint8] | str) -> None:
        """Take a frame (height, width, 3) that stays as it is, or the text of what kept it from being taken."""
        if isinstance(frame, str):
            self.failure = self.failure or frame
        elif not self.failure:
            self._encoder.submit(self._encode, frame)

    def _encode(self, frame: npt.NDArray[np.uint8]) -> None:
        if not self.failure:
            try:
                self._video.add(frame)
            except Exception as error:  # a film is not worth an episode
                self.failure = describe_error(error)

    def finish(self) -> bytes | None:
        """Return the video, None if it failed or has no frame."""
        data: bytes = self._encoder.submit(self._finish).result()
        return data if data and not self.failure else None

    def _finish(self) -> bytes:
        try:
            return self._video.finish()
        except Exception as error:
            self.failure = self.failure or describe_error(error)
            return b""
