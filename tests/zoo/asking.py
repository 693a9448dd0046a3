"""Probing a policy of the zoo: observations are four numbers, actions three free ones, one of three, or both."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.probe.battery import SHORT_CALLS, run_battery
from rlmesh_adapters.probe.verdicts import ProbeVerdict
from rlmesh_adapters.spaces import SpaceView, frozen_array

CHOICE = SpaceView(
    kind="discrete",
    shape=(),
    dtype=np.dtype(np.int64),
    low=frozen_array(0, shape=()),
    high=frozen_array(2, shape=()),
)


def free(width: int, dtype: Any) -> SpaceView:
    low, high = (frozen_array(bound, shape=(width,), dtype=dtype) for bound in (-1e9, 1e9))
    return SpaceView(kind="box", shape=(width,), dtype=np.dtype(dtype), low=low, high=high)


def probe(
    policy: Any, *, seed: int, is_short: bool = False, most_seconds: float = 30.0, most_calls: int = SHORT_CALLS
) -> ProbeVerdict:
    """Run the battery on a class of the zoo, with observations of a seed."""
    rng = np.random.default_rng(seed)
    batches = [rng.normal(size=(4, 4)).astype(np.float32) for _ in range(5)]
    action = CHOICE if getattr(policy, "is_discrete", False) else free(3, np.float64)
    if getattr(policy, "is_named", False):
        action = SpaceView(kind="dict", children=(("arm", action), ("hand", CHOICE)))
    contract = RouteContract(
        observation=free(4, np.float32),
        action=action,
        num_lanes=4,
        horizon=getattr(policy, "horizon", 1),
    )
    return run_battery(
        policy,
        contract,
        batches,
        clock=time.perf_counter,
        is_short=is_short,
        most_seconds=most_seconds,
        short_calls=most_calls,
    )
