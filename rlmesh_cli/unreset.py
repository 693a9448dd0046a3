"""Unreset policies: whether one that nobody can reset went on changing from episode to episode.

Before several lanes share a policy, it is probed; one lane costs no probe, and no second instance of a large
model. But what one episode leaves in an object without `reset` reaches the next, and what goes on changing slowly
is not seen in the few calls before a run. Looking at its attributes costs nothing, and says that it may be so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.instances import episode_hooks
from rlmesh_adapters.looks import changed, looks_of, named

if TYPE_CHECKING:
    from .stage import Stage


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
        names = changed(before, after)
        if names:
            book.add(
                "state-kept",
                "info",
                f"the policy has no `reset`, and {named(names)} of it went on changing from episode to episode: "
                "what one leaves may reach the next, on any lane that shares it (`rlmesh probe` tells; "
                "--instances episode plays each with a new one)",
            )


def _looks_of(policy: object) -> dict[str, object] | None:
    """Return what a policy's attributes are like, None for one that is told where episodes begin or end."""
    return None if episode_hooks(policy) else looks_of(policy)
