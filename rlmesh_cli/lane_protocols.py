"""What the loop, and whoever stands between it and the environments, needs of lanes.

Axes: R stepped lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rlmesh_adapters.batches import Batch
from rlmesh_envs.steps import LaneResets, LaneSteps


class Lanes(Protocol):
    """What the loop needs of lanes; see rlmesh_envs.lane_set for one that keeps it."""

    num_envs: int

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset some lanes; those that are not in the answer start with a later step."""
        ...

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step some lanes with (R, ...) actions."""
        ...


class SkippingLanes(Protocol):
    """Lanes whose environments may leave out the pixels of a step; see rlmesh_envs.pixels."""

    def step_lanes(self, actions: Batch, lanes: Sequence[int], unread: Sequence[bool] | None = None) -> LaneSteps:
        """Step some lanes with (R, ...) actions; unread: (R,) whose observation nobody will read."""
        ...
