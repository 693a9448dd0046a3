"""Tape: what is known of one episode while it is played."""

from __future__ import annotations

import contextlib
from types import EllipsisType
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_cli.records import readable_json
from rlmesh_envs.steps import Info

from .blocks import Column, joined
from .films import Film

# Numbers of one value of an info from which on it is only described.
_MOST_NUMBERS = 4096


class Tape:
    """One episode's observations, actions, rewards and infos, and the films that are made of it.

    first: leaves of the first observation, each a batch of one; None where no steps are kept. info: of the reset.
    """

    def __init__(self, episode_id: str, first: list[Any] | None, info: Info) -> None:
        self.episode_id = episode_id
        self._first = first
        #: Film's name, empty for what the environment renders -> the film.
        self.films: dict[str, Film] = {}
        #: View's name -> what the policy was shown last.
        self.shown: dict[str, npt.NDArray[np.uint8]] = {}
        #: Leaves of the last observation where it came apart from the others; None where nobody gave it.
        self.final: list[Any] | EllipsisType | None = ...
        #: How many steps were sorted in.
        self.taken = 0
        #: Number of observations before it -> the info that came with an observation, as JSON.
        self.infos: dict[int, str] = {}
        self._observations: list[list[Column]] = []
        self._actions: list[list[Column]] = []
        self._rewards: list[npt.NDArray[np.float64]] = []
        if info and first is not None:
            self.keep_info(0, info)

    def keep_info(self, number: int, info: Info) -> None:
        """Keep what an info says now; the environment may change it later."""
        with contextlib.suppress(RecursionError):  # one that holds itself
            info = _abridged(info)
        self.infos[number] = readable_json(info)

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

        Where nobody gave the last observation, there is one less.

        length: steps that were finished; a last one that was not is left out.
        """
        observations = [
            joined([first, *(part[number] for part in self._observations)])[: length + 1]
            for number, first in enumerate(self._first or ())
        ]
        if self.final is not ... and length:
            for number, leaf in enumerate(observations):
                final = None if self.final is None else self.final[number]
                observations[number] = _ending_with(leaf, final)
        width = len(self._actions[0]) if self._actions else 0
        actions = [joined([part[number] for part in self._actions])[:length] for number in range(width)]
        rewards = np.concatenate([np.empty(0), *self._rewards])[:length]
        return observations, actions, rewards


def _ending_with(leaf: Column, final: Any) -> Column:
    """Return a leaf with another last value, given as a batch of one; None leaves it out."""
    if final is None:
        return leaf[:-1]
    return joined([leaf[:-1], final])


def _abridged(value: Any) -> Any:
    """Return an info whose large arrays, such as frames, are only described."""
    if isinstance(value, dict):
        return {key: _abridged(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_abridged(part) for part in value]
    if isinstance(value, np.ndarray) and value.size > _MOST_NUMBERS:
        return f"{value.dtype}{list(value.shape)}"
    return value
