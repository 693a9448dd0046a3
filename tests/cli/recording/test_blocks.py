"""Blocks: the steps of several lanes, lane by lane."""

from __future__ import annotations

import numpy as np

from rlmesh_cli.recording.blocks import StepLog


def test_a_lane_holds_its_own_steps_and_no_memory_of_the_others() -> None:
    """Else an episode that outlasts hundreds of others keeps all of theirs."""
    log = StepLog()
    for step in range(3):
        pictures = np.arange(2)[:, None] * 10 + np.full((2, 4), step)
        log.add({"picture": pictures, "text": ["a", f"b{step}"]}, np.array([step, -step]), [0.5, 1.5])
    block = log.take()
    (picture, text), (action,), rewards = block.lane(1)
    assert picture.tolist() == [[10] * 4, [11] * 4, [12] * 4]
    assert (text, action.tolist(), rewards.tolist()) == (["b0", "b1", "b2"], [0, -1, -2], [1.5] * 3)
    assert not np.shares_memory(picture, block.observations[0])
    assert not np.shares_memory(action, block.actions[0])
    assert not np.shares_memory(rewards, block.rewards)
