"""The built-in policies: what doing nothing, and doing anything, scores."""

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


BASELINES = {"random": RandomPolicy, "zero": ZeroPolicy}


def _require_arrays(view: SpaceView, name: str) -> None:
    if view.children:
        for _, child in view.children:
            _require_arrays(child, name)
    elif not view.is_array and view.kind not in ("dict", "tuple"):
        raise LoadError(
            f"the built-in policy `{name}` cannot act in {view}", mend="give a policy file of your own"
        )
