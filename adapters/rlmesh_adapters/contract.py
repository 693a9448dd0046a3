"""What a route promises the engine, and how it will run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from .spaces import SpaceView

if TYPE_CHECKING:  # a route without conversion does not need the documents
    from .documents.spec import ModelSpec
    from .documents.tags import EnvTags

#: Where documents travel in the metadata of an environment.
TAGS_KEY = "rlmesh.adapters.v1.env_tags"
SPEC_KEY = "rlmesh.adapters.v1.model_spec"

SHARINGS = ("auto", "shared", "lane", "episode")


class Ensemble(msgspec.Struct, frozen=True, kw_only=True):
    """Temporal ensembling: every step is asked, and what was planned for it is averaged.

    decay: the i-th plan, the oldest being 0, weighs exp(-decay * i).
    linear: roles of rotations and snapped components that may be averaged all the same.
    """

    decay: float
    linear: tuple[str, ...] = ()


class RouteContract(msgspec.Struct, frozen=True, kw_only=True):
    """What a route promises the engine.

    observation, action: spaces of one lane.
    num_lanes: N, at least 1.
    horizon: actions executed a call, at least 1.
    sharing: `shared` (one policy instance for all lanes), `lane` (one a running episode, handed on to the next),
        `episode` (a new one for every episode) or `auto`.
    batch_rows: rows that every batched call is padded to; None takes the policy's own `batch_rows`, if it has any.
    is_cleared: whether the policy was shown to keep nothing that lanes could mix up.
    has_answered: whether it has given actions for this route before, so that a first call that fails is a failure
        of its episode and no reason to give up.
    tags: what observation and action mean; None for a route without conversion. are_required: whether the route
        itself gives them, so that a policy without a model spec is a mistake.
    spec: what the model wants; None takes the policy's own `spec`. env_spec: what the environment proposes, taken
        where neither says anything.
    ensemble: how overlapping chunks are averaged, None executes them one after the other.
    limit_call: returns what a corner is called through, such as one that ends calls that hang.
    import_function: gives the function of a custom input that is only named; None refuses those.
    read_statistics: gives the plain values of a statistics file.
    """

    observation: SpaceView
    action: SpaceView
    num_lanes: int = 1
    horizon: int = 1
    sharing: str = "auto"
    batch_rows: int | None = None
    is_cleared: bool = False
    has_answered: bool = False
    tags: EnvTags | None = None
    are_required: bool = False
    spec: ModelSpec | None = None
    env_spec: ModelSpec | None = None
    ensemble: Ensemble | None = None
    limit_call: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    import_function: Callable[[str], Callable[[Any], Any]] | None = None
    read_statistics: Callable[[str], Any] | None = None


def answers_for_all(corner: str, sharing: str) -> bool:
    """Return whether one call of a corner answers for all rows that ask, with so many instances."""
    return corner.endswith("_batch") and sharing == "shared"


class RoutePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a configured route runs.

    corner: the corner that is called.
    corners: all that the policy has.
    horizon: actions executed a call.
    wants_context: whether the corner reads the episode's context, step included.
    sharing: `shared`, `lane` or `episode`.
    is_ensembled: whether overlapping chunks are averaged.
    wants_every_step: whether frame windows must see steps that are replayed.
    passes_state: whether the corner takes its state and gives it back.
    description: the conversion as text, empty for none. conversion: its numbers, see plan_records.
    """

    corner: str
    corners: tuple[str, ...]
    horizon: int
    wants_context: bool
    sharing: str
    is_ensembled: bool = False
    wants_every_step: bool = False
    passes_state: bool = False
    description: str = ""
    conversion: dict[str, Any] = {}

    @property
    def is_batched(self) -> bool:
        """Whether one call answers for all rows that ask; else each is a call of its own."""
        return answers_for_all(self.corner, self.sharing)

    @property
    def is_chunked(self) -> bool:
        """Whether the corner plans chunks, so that actions are replayed."""
        return "_chunk" in self.corner and not self.is_ensembled
