"""What a route promises the engine, and how it will run."""

from __future__ import annotations

import msgspec

from .spaces import SpaceView

SHARINGS = ("auto", "shared", "lane")


class RouteContract(msgspec.Struct, frozen=True, kw_only=True):
    """What a route promises the engine.

    observation, action: spaces of one lane.
    num_lanes: N, at least 1.
    horizon: actions executed a call, at least 1.
    sharing: `shared` (one policy instance for all lanes), `lane` (one a running episode) or `auto`.
    """

    observation: SpaceView
    action: SpaceView
    num_lanes: int = 1
    horizon: int = 1
    sharing: str = "auto"


class RoutePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How a configured route runs.

    corner: the corner that is called.
    corners: all that the policy has.
    horizon: actions executed a call.
    wants_context: whether the corner reads the episode's context, step included.
    sharing: `shared` or `lane`.
    """

    corner: str
    corners: tuple[str, ...]
    horizon: int
    wants_context: bool
    sharing: str

    @property
    def is_chunked(self) -> bool:
        """Whether the corner plans chunks, so that actions are replayed."""
        return "_chunk" in self.corner
