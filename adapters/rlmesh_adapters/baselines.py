"""The built-in policies: what doing nothing, doing anything, and doing one thing all the time scores."""

from __future__ import annotations

from typing import Any

from .context import EpisodeContext
from .errors import LoadError
from .spaces import SpaceView, sample_value, zero_value


class RandomPolicy:
    """Draws every action from the action space, from the episode's own generator.

    action: space to draw from; raises LoadError where it cannot be sampled (text, Graph, Sequence, OneOf).
    """

    def __init__(self, action: SpaceView) -> None:
        self._action = action
        _require_arrays(action, "random")

    def predict(self, obs: Any, context: EpisodeContext) -> Any:
        """Return one member of the action space; the observation is not read."""
        return sample_value(self._action, context.rng)


class ZeroPolicy:
    """Always the action nearest to zero: zeros, clipped into the bounds.

    action: space to act in; raises LoadError where it has no zero.
    """

    def __init__(self, action: SpaceView) -> None:
        _require_arrays(action, "zero")
        self._zero = zero_value(action)

    def predict(self, obs: Any) -> Any:
        """Return zeros; the observation is not read."""
        return self._zero


class HoldPolicy:
    """Draws one action at an episode's beginning, from its own generator, and holds it to the end.

    action: space to draw from; raises LoadError where it cannot be sampled.
    """

    def __init__(self, action: SpaceView) -> None:
        self._action = action
        _require_arrays(action, "hold")

    def predict(self, obs: Any, context: EpisodeContext, state: Any) -> tuple[Any, Any]:
        """Return the episode's action, twice: it is what is kept; the observation is not read."""
        held = sample_value(self._action, context.rng) if state is None else state
        return held, held


BASELINES = {"random": RandomPolicy, "zero": ZeroPolicy, "hold": HoldPolicy}


def _require_arrays(view: SpaceView, name: str) -> None:
    if view.children:
        for _, child in view.children:
            _require_arrays(child, name)
    elif not view.is_array and view.kind not in ("dict", "tuple"):
        raise LoadError(
            f"the built-in policy `{name}` cannot act in {view}", mend="give a policy file of your own"
        )
