"""Unreset policies: whether one that nobody can reset went on changing from episode to episode.

Before several lanes share a policy, it is probed; one lane costs no probe, and no second instance of a large
model. But what one episode leaves in an object without `reset` reaches the next, and what goes on changing slowly
is not seen in the few calls before a run. Looking at its attributes costs nothing, and says that it may be so.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.baselines import BASELINES

if TYPE_CHECKING:
    from .stage import Stage

# What is larger is not looked into, such as weights.
_MOST_BYTES = 1 << 20
_MOST_PARTS = 64
_DEEPEST = 5
_SHOWN = 3
_HOOKS = ("reset", "on_episode_end")


def watched(stage: Stage) -> object | None:
    """Return the policy that is looked at: one object for all episodes, which is none of the built-in ones."""
    is_shared = stage.plan.sharing == "shared" and stage.route.policy.source not in BASELINES
    return stage.first if is_shared else None


class UnresetWatch:
    """Compares what a policy's attributes are like after its first episode with what they are like in the end.

    policy: None, and one that is told where episodes begin or end, is not looked at.
    """

    def __init__(self, policy: object | None) -> None:
        self._policy = policy
        self._before: dict[str, object] | None = None

    def see_episode(self) -> None:
        """Look at the policy when the first episode has ended; later ones change nothing."""
        if self._policy is None or self._before is not None:
            return
        self._before = _looks_of(self._policy)
        if self._before is None:
            self._policy = None

    def note(self, book: AdvisoryBook) -> None:
        """Note which attributes changed since then."""
        before, after = self._before, None if self._before is None else _looks_of(self._policy)
        self._policy = None  # nobody keeps a model alive for this
        if before is None or after is None:
            return
        changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        if changed:
            shown = ", ".join(f"`{name}`" for name in changed[:_SHOWN])
            more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
            book.add(
                "state-kept",
                "info",
                f"the policy has no `reset`, and {shown}{more} of it went on changing from episode to episode: "
                "what one leaves may reach the next (`rlmesh probe` tells; --instances episode plays each with a "
                "new one)",
            )


def _looks_of(policy: object) -> dict[str, object] | None:
    """Return what a policy's own attributes are like now, None for one that is told where episodes begin or end.

    Values that cannot be looked into are taken for what they are, not for what they hold.
    """
    try:
        if any(callable(getattr(policy, name, None)) for name in _HOOKS):
            return None
        return {name: _look(value) for name, value in dict(getattr(policy, "__dict__", {})).items()}
    except Exception:  # an object of the user's may do anything when it is looked at
        return None


def _look(value: Any, depth: int = 0) -> object:
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic)):
        return repr(value)
    if isinstance(value, np.ndarray):
        is_small = value.nbytes <= _MOST_BYTES and not value.dtype.hasobject
        return value.shape, zlib.crc32(np.ascontiguousarray(value).tobytes()) if is_small else id(value)
    if isinstance(value, (list, tuple, deque, dict, set, frozenset)):
        parts: Any = value.items() if isinstance(value, dict) else value
        is_small = len(value) <= _MOST_PARTS and depth < _DEEPEST
        return len(value), tuple(_look(part, depth + 1) for part in parts) if is_small else id(value)
    # A tensor counts how often it was written into.
    return id(value), getattr(value, "_version", None) if type(value).__name__ == "Tensor" else None
