"""Contexts: what a probed policy is told of its episode, and whether it asks for the step."""

from __future__ import annotations

from collections.abc import Callable

from rlmesh_adapters.context import EpisodeContext


class ProbedContext(EpisodeContext):
    """An episode of the probe.

    step: what it tells. on_step_read: called each time the policy asks for it.
    """

    __slots__ = ("_on_step_read", "_told")

    def __init__(
        self, episode_id: str, index: int, seed: int, step: int, on_step_read: Callable[[], None]
    ) -> None:
        self._on_step_read = on_step_read
        super().__init__(episode_id, index, seed)
        self._told = step

    @property
    def step(self) -> int:
        """The step the policy is asked for."""
        self._on_step_read()
        return self._told

    @step.setter
    def step(self, step: int) -> None:
        self._told = step

    def twin(self) -> EpisodeContext:
        """Return the same episode with an `rng` of its own; padding makes twins, which asks for nothing."""
        on_step_read, self._on_step_read = self._on_step_read, _nothing
        try:
            return super().twin()
        finally:
            self._on_step_read = on_step_read


def _nothing() -> None:
    pass
