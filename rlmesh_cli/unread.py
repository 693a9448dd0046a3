"""Unread steps: those whose observation nobody will read, so that lanes need not render it.

Axes: R running lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlmesh_adapters.batches import Batch
from rlmesh_adapters.chunks import ChunkReplay
from rlmesh_envs.steps import LaneSteps

from .lane_protocols import SkippingLanes
from .tallies import Tally


class UnreadSteps:
    """Steps lanes, and says which of them go on with a planned action whatever they see.

    lanes: what is stepped. replay: the queues, the actions of this step taken out already.
    tally: of the loop; skipped frames are counted in it.
    """

    def __init__(self, lanes: SkippingLanes, replay: ChunkReplay, tally: Tally) -> None:
        self._lanes, self._replay, self._tally = lanes, replay, tally

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step some lanes with (R, ...) actions."""
        unread = self._replay.queued(lanes)
        self._tally.frames_skipped += sum(unread)
        return self._lanes.step_lanes(actions, lanes, unread)
