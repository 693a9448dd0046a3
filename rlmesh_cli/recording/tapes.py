"""Tape: what is known of one episode while it is played."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_cli.records import to_plain
from rlmesh_envs.steps import Info

from .blocks import Column, joined
from .films import Film

# Numbers of one value of an info from which on it is only described.
_MOST_NUMBERS = 4096


class Tape:
    """One episode's observations, actions, rewards and infos, and the films that are made of it.

    first: leaves of the first observation, None where no steps are kept. info: of the reset.
    """

    def __init__(self, episode_id: str, first: Any, info: Info) -> None:
        self.episode_id = episode_id
        self._first = first
        #: Film's name, empty for what the environment renders -> the film.
        self.films: dict[str, Film] = {}
        #: View's name -> what the policy was shown last.
        self.shown: dict[str, npt.NDArray[np.uint8]] = {}
        #: How many steps were sorted in.
        self.taken = 0
        #: Number of observations before it -> the info that came with an observation, as plain data.
        self.infos: dict[int, Any] = {}
        self._observations: list[list[Column]] = []
        self._actions: list[list[Column]] = []
        self._rewards: list[npt.NDArray[np.float64]] = []
        if info and first is not None:
            self.keep_info(0, info)

    def keep_info(self, number: int, info: Info) -> None:
        """Keep what an info says now; the environment may change it later."""
        self.infos[number] = to_plain(_abridged(info))[0]

    def add(
        self,
        observations: list[Column],
        actions: list[Column],
        rewards: npt.NDArray[np.float64],
        taken: int,
    ) -> None:
        """Add some steps of the lane; observations are those after each."""
        self._observations.append(observations)
        self._actions.append(actions)
        self._rewards.append(rewards)
        self.taken += taken

    def show(self, name: str, film: Film) -> None:
        """Put what the policy was shown last on a film."""
        picture = self.shown.get(name)
        if picture is not None:
            film.add(picture)

    def columns(self, length: int) -> tuple[list[Column], list[Column], npt.NDArray[np.float64]]:
        """Return the leaves of observations (length + 1, ...), of actions (length, ...), and rewards (length,).

        length: steps that were finished; a last one that was not is left out.
        """
        firsts = [leaf[None] if isinstance(leaf, np.ndarray) else [leaf] for leaf in self._first]
        observations = [
            joined([first, *(part[number] for part in self._observations)])[: length + 1]
            for number, first in enumerate(firsts)
        ]
        width = len(self._actions[0]) if self._actions else 0
        actions = [joined([part[number] for part in self._actions])[:length] for number in range(width)]
        rewards = np.concatenate([np.empty(0), *self._rewards])[:length]
        return observations, actions, rewards


def _abridged(value: Any) -> Any:
    """Return an info whose large arrays, such as frames, are only described."""
    if isinstance(value, dict):
        return {key: _abridged(part) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.size > _MOST_NUMBERS:
        return f"{value.dtype}{list(value.shape)}"
    return value
