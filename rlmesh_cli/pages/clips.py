"""Clips: the videos of a run, put into the page where they are small, else linked."""

from __future__ import annotations

import base64
import os
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from rlmesh_cli.run_reader import StoredRun

from .facts import Clip

#: Bytes of video that a page takes in; if there are more, all are linked.
EMBEDDED = 20 * 2**20
_NAME = re.compile(r"(ep-\d{6,})(?:\.(.+))?\.mp4")
_STEPS = re.compile(r"(ep-\d{6,})\.parquet")


class Footage(msgspec.Struct, frozen=True, kw_only=True):
    """What a run holds beside its rows.

    videos: episode id -> (input that the policy saw, or None for what was rendered; file; bytes).
    steps: episode id -> file of its steps.
    """

    videos: dict[str, list[tuple[str | None, Path, int]]]
    steps: dict[str, Path]

    @property
    def bytes(self) -> int:
        """Size of all videos."""
        return sum(size for known in self.videos.values() for _, _, size in known)


def footage_of(run: StoredRun) -> Footage:
    """Look into a run's folder; a folder that cannot be read holds nothing, and neither does an empty file."""
    videos = defaultdict(list)
    # Links start from where the page is, which is told without links of the file system.
    folder = run.folder.resolve()
    for path in _files(folder / "videos"):
        match = _NAME.fullmatch(path.name)
        if match is not None and (size := _size(path)):
            videos[match[1]].append((match[2], path, size))
    steps = {
        match[1]: path
        for path in _files(folder / "steps")
        if (match := _STEPS.fullmatch(path.name)) and _size(path)
    }
    for known in videos.values():
        known.sort(key=lambda video: (video[0] is not None, video[0] or ""))
    return Footage(videos=dict(videos), steps=steps)


def _files(folder: Path) -> list[Path]:
    try:
        # A link could bring any file of whoever makes the page into it.
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())
    except OSError:
        return []


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


class Reel:
    """Makes the clips of a page.

    footages: of all runs on it. folder: that the page is put into, which links start from.
    """

    def __init__(self, footages: Sequence[Footage], folder: Path) -> None:
        self._folder = folder
        #: Bytes of all videos, and whether they are part of the page.
        self.bytes = sum(footage.bytes for footage in footages)
        self.is_embedded = self.bytes <= EMBEDDED
        self.clips: list[Clip] = []

    def add(
        self, footage: Footage, episode: str, *, entry: str, title: str, side: str = ""
    ) -> tuple[tuple[str, str], ...]:
        """Put an episode's videos onto the page, and return the ids of their clips and their labels."""
        added = []
        for name, path, _ in footage.videos.get(episode, ()):
            label = "rendered" if name is None else f"what the model saw: {name}"
            clip = Clip(
                id=f"clip-{len(self.clips)}",
                label=label,
                source=self._source(path),
                entry=entry,
                title=f"{side}{title}",
            )
            self.clips.append(clip)
            added.append((clip.id, label))
        return tuple(added)

    def _source(self, path: Path) -> str:
        if self.is_embedded:
            try:
                return "data:video/mp4;base64," + base64.b64encode(path.read_bytes()).decode()
            except OSError:
                pass
        return self.link(path)

    def link(self, path: Path) -> str:
        """Return a link from the page to a file."""
        return quote(os.fsencode(os.path.relpath(path.absolute(), self._folder)))
