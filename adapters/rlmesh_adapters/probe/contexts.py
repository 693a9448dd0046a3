"""Contexts: what a probed policy is told of its episode, and which of it it asks for."""

from __future__ import annotations

import numpy as np

from rlmesh_adapters.context import EpisodeContext


class ProbedContext(EpisodeContext):
    """An episode of the probe.

    read: gets the names `seed` and `step` when the policy asks for them. given: gets each `rng`, by id, once made.
    """

    __slots__ = ("_given", "_read", "_told_seed", "_told_step")

    def __init__(
        self,
        episode_id: str,
        index: int,
        seed: int,
        step: int,
        *,
        read: set[str],
        given: dict[int, np.random.Generator],
    ) -> None:
        self._read, self._given = read, given
        super().__init__(episode_id, index, seed)
        self._told_step = step

    @property
    def step(self) -> int:
        """The step the policy is asked for."""
        self._read.add("step")
        return self._told_step

    @step.setter
    def step(self, step: int) -> None:
        self._told_step = step

    @property
    def seed(self) -> int | None:
        """The seed that the environment would be reset with."""
        self._read.add("seed")
        return self._told_seed

    @seed.setter
    def seed(self, seed: int | None) -> None:
        self._told_seed = seed

    def _made(self) -> np.random.Generator:
        made = super()._made()
        self._given[id(made)] = made
        return made

    def twin(self) -> EpisodeContext:
        """Return the same episode with an `rng` of its own; padding makes twins, the policy asked for nothing."""
        known, self._read = self._read, set()
        try:
            return super().twin()
        finally:
            self._read = known
