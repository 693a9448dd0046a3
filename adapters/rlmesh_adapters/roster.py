"""Roster: which lanes run, in row order, and the episode each of them plays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .context import EpisodeContext


class Roster:
    """The running lanes and their episodes; a new one is made whenever either changes.

    Row r of every batch belongs to `lanes[r]` and `episodes[r]`. Two rosters are the same company only if
    they are the same object.

    lanes: lane numbers, each once.
    episodes: as many.
    """

    __slots__ = ("count", "episodes", "lane_index", "lanes")

    def __init__(self, lanes: Sequence[int], episodes: Sequence[EpisodeContext]) -> None:
        self.lanes = tuple(lanes)
        self.episodes = tuple(episodes)
        self.count = len(self.lanes)
        self.lane_index: npt.NDArray[np.int64] = np.array(self.lanes, np.int64)
        if self.count != len(self.episodes):
            raise ValueError(f"{self.count} lanes but {len(self.episodes)} episodes")

    def playing(self, episodes: Sequence[EpisodeContext]) -> Roster:
        """Return the roster of the same lanes with other episodes; the lanes stay the same tuple."""
        roster = object.__new__(Roster)
        roster.lanes, roster.lane_index, roster.count = self.lanes, self.lane_index, self.count
        roster.episodes = tuple(episodes)
        return roster

    def __len__(self) -> int:
        return self.count


def check_episode_ids(episodes: Sequence[EpisodeContext]) -> None:
    """Raise ValueError, naming it, if an episode id is empty or appears twice.

    State that is keyed by such an id would mix two episodes.
    """
    different = {episode.episode_id for episode in episodes}
    if len(different) == len(episodes) and all(different):
        return
    ids = ids_of(episodes)
    for row, known in enumerate(ids):
        if not known:
            raise ValueError(f"row {row} has an empty episode id")
        if known in ids[:row]:
            raise ValueError(f"episode id {known} appears twice, again in row {row}")


def ids_of(episodes: Sequence[EpisodeContext]) -> list[str]:
    """Return the ids of some episodes."""
    return [episode.episode_id for episode in episodes]
