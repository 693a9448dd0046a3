"""Keeper: decides which videos of a run are kept, and has them written."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.store import RunStore

from .recorder import Files
from .selection import Selection, goodness

VIDEOS = "videos/"


class Keeper:
    """Takes the files of each episode that has ended.

    selection: which videos are kept, None keeps none. seeds: one seed an episode of the plan.
    base: rows of the run that `flips` is held against.
    is_open_ended: whether the run may end early, so that of an episode it shows later whether it counts.
    """

    def __init__(
        self,
        selection: Selection | None,
        seeds: Sequence[int],
        base: Iterable[EpisodeResult] = (),
        *,
        is_open_ended: bool = False,
    ) -> None:
        self._selection = selection
        # Episodes of the plan before this one count; those after it, where there are any, wait with their videos.
        self._counted: float = 0 if is_open_ended else math.inf
        self._pending: dict[int, EpisodeResult] = {}
        self._base: dict[tuple[int | None, int], bool | None] = {}
        counts: dict[int | None, int] = defaultdict(int)
        for row in sorted(base, key=lambda row: row.index):
            self._base[row.seed, counts[row.seed]] = row.success
            counts[row.seed] += 1
        self._places: list[tuple[int, int]] = []
        again: dict[int, int] = defaultdict(int)
        for seed in seeds:
            self._places.append((seed, again[seed]))
            again[seed] += 1
        self._store: RunStore | None = None
        self._waiting: list[tuple[EpisodeResult, Files]] = []
        #: Episode's index -> its videos that are there.
        self._kept: dict[int, list[str]] = {}
        # The worst so far, by index; the best of them first.
        self._worst: list[tuple[tuple[bool, float, int], int]] = []

    def open(self, store: RunStore, rows: Iterable[EpisodeResult] = ()) -> None:
        """Begin to write; rows: of episodes that an earlier sitting played, whose videos may be there."""
        self._store = store
        for name in store.files("*/.*.partial"):  # of a sitting that was killed while it wrote them
            store.remove(name)
        for row in rows:
            names = store.files(f"{VIDEOS}{row.episode_id}.*")
            if names:
                self._rank(row, names)
        waiting, self._waiting = self._waiting, []
        for row, files in waiting:
            self.take(row, files)

    def take(self, row: EpisodeResult, files: Files) -> None:
        """Write what is kept of an episode's files; before the run has a folder, they wait."""
        if self._store is None:
            self._waiting.append((row, files))
            return
        if row.index in self._kept:  # its worker died before the row came, so it was played again
            self._pending.pop(row.index, None)
            self._worst = [entry for entry in self._worst if entry[1] != row.index]
            heapq.heapify(self._worst)
            self._drop(row.index)
        is_kept = self._is_kept(row)
        names = []
        for name, data in files.items():
            if not name.startswith(VIDEOS):
                self._store.write_file(name, data)
            elif is_kept:
                self._store.write_file(name, data)
                names.append(name)
        if names:
            self._rank(row, names)

    def note(self, book: AdvisoryBook, rows: Iterable[EpisodeResult]) -> None:
        """Note where a rule could not say of any episode whether it is meant."""
        chosen = self._selection
        if chosen is None or any(row.success is not None for row in rows):
            return
        if chosen.kind == "failures":
            what = "videos of failures are those of episodes that could not be finished"
        elif chosen.kind == "flips":
            what = "no flip can be told"
        else:
            return
        book.add("video-selection", "info", f"no success was reported, so {what}")

    def _is_kept(self, row: EpisodeResult) -> bool:
        chosen = self._selection
        if chosen is None:
            return False
        if chosen.kind == "failures":
            return row.is_error or row.success is False
        if chosen.kind == "flips":
            before = self._base.get(self._places[row.index])
            return before is not None and row.success is not None and row.success is not before
        return chosen.kind != "first" or row.index < chosen.count

    def _rank(self, row: EpisodeResult, names: list[str]) -> None:
        """Note what is there; of the worst, let the best one go when there are more than are kept."""
        self._kept[row.index] = names
        chosen = self._selection
        if chosen is None or chosen.kind != "worst":
            return
        if row.index >= self._counted:
            self._pending[row.index] = row
            return
        heapq.heappush(self._worst, (goodness(row), row.index))
        if len(self._worst) > chosen.count:
            self._drop(heapq.heappop(self._worst)[1])

    def count(self, episodes: float) -> None:
        """Rank the episodes of the plan that count by now: the first so many."""
        self._counted = max(self._counted, episodes)
        for index in sorted(index for index in self._pending if index < self._counted):
            row = self._pending.pop(index)
            self._rank(row, self._kept[index])

    def finish(self, episodes: float) -> None:
        """Rank what counts in the end, and let go of what does not."""
        self.count(episodes)
        for index in self._pending:
            self._drop(index)
        self._pending.clear()

    def _drop(self, index: int) -> None:
        for name in self._kept.pop(index):
            if self._store is not None:
                self._store.remove(name)
