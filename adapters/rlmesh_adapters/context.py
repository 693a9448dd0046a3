"""EpisodeContext: what a policy may know of the episode it acts in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# Keeps the policy's stream apart from the environment's own, which starts from the bare seed.
_POLICY_STREAM = 0x706F6C69


class EpisodeContext:
    """One episode, as a policy sees it; lives as long as the episode.

    episode_id: `ep-000001` and so on, unique in a run.
    index: 0-based place in the plan.
    seed: the seed the environment was reset with, None where it cannot be seeded singly.
    step: 0-based step the policy is asked for; counts up while the episode runs.
    """

    __slots__ = ("_rng", "_rng_seed", "episode_id", "index", "seed", "step")

    def __init__(self, episode_id: str, index: int, seed: int | None, *, rng_seed: int | None = None) -> None:
        self.episode_id = episode_id
        self.index = index
        self.seed = seed
        self.step = 0
        planned = seed if rng_seed is None else rng_seed
        self._rng_seed = index if planned is None else planned
        self._rng: np.random.Generator | None = None

    @property
    def rng(self) -> np.random.Generator:
        """Random numbers of this episode alone, from its planned seed.

        Whatever lane, order or company an episode runs in, it draws the same numbers. Made when first used.
        """
        if self._rng is None:
            self._rng = self._made()
        return self._rng

    def _made(self) -> np.random.Generator:
        return np.random.default_rng([int(self._rng_seed) % 2**64, _POLICY_STREAM])

    @property
    def drawn(self) -> Mapping[str, Any] | None:
        """How far `rng` has been drawn from, for `draw_again`."""
        return None if self._rng is None else self._rng.bit_generator.state

    def draw_again(self, drawn: Mapping[str, Any] | None) -> None:
        """Let `rng` go on from where it was; a policy may hold the object itself."""
        if self._rng is not None:
            self._rng.bit_generator.state = self._made().bit_generator.state if drawn is None else drawn

    def twin(self) -> EpisodeContext:
        """Return the same episode with an `rng` of its own, which goes on as this one's would."""
        twin = EpisodeContext(self.episode_id, self.index, self.seed, rng_seed=self._rng_seed)
        twin.step = self.step
        if self._rng is not None:
            twin.rng.bit_generator.state = self._rng.bit_generator.state
        return twin

    def __repr__(self) -> str:
        return f"EpisodeContext({self.episode_id}, seed={self.seed}, step={self.step})"
