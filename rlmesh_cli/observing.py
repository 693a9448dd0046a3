"""Observing: a few real observations of an environment, for whoever wants to ask a policy before a run.

Axes: M rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rlmesh_adapters.batches import Batch, BatchLayout, one_row, row_of
from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_adapters.spaces import SpaceView, sample_value
from rlmesh_envs.make import Lanes

_SEED = 20_240_229
# Neighbouring steps look alike; of so many steps one is kept.
_STRIDE = 2


def observe(
    lanes: Lanes | None, observation: SpaceView, action: SpaceView, *, batches: int, rows: int
) -> list[Batch]:
    """Collect batches of observations from short seeded episodes with random actions, on lane 0.

    lanes: of an environment that nothing else is played on; None, and where too few observations differ, members
    of the space are drawn. batches, rows: how many batches of how many rows.

    Raises EnvironmentBuildError where neither gives enough.
    """
    rng = np.random.default_rng(_SEED)
    wanted = batches * rows
    seen = [] if lanes is None else _play(lanes, action, wanted, rng)
    distinct = {_key(value) for value in seen}
    try:
        while len(seen) < wanted or len(distinct) < min(wanted, 4):
            value = sample_value(observation, rng)
            if len(distinct) < 4 and len(seen) >= wanted:
                seen[len(distinct)] = value
            else:
                seen.append(value)
            if _key(value) in distinct and len(seen) >= wanted:
                break  # a space of next to no values
            distinct.add(_key(value))
    except TypeError as error:
        if not seen:
            raise EnvironmentBuildError(
                f"the environment gave no observations to ask the policy with, and {error}",
                where="probe",
                mend="use --no-probe",
            ) from error
        seen = (seen * (wanted // len(seen) + 1))[:wanted]
    # Rows of one batch come from moments far from one another.
    layout = BatchLayout(observation)
    return [_batch(layout, seen[number::batches][:rows]) for number in range(batches)]


def _batch(layout: BatchLayout, values: Sequence[Any]) -> Batch:
    batch = layout.allocate(len(values))
    for row, value in enumerate(values):
        layout.write(batch, row, value)
    return batch


def _play(lanes: Lanes, action: SpaceView, wanted: int, rng: np.random.Generator) -> list[Any]:
    """Return what lane 0 shows in seeded episodes of random actions; what fails ends the looking."""
    seen: list[Any] = []
    episode, step = 0, 0
    while len(seen) < wanted and episode < wanted:
        resets = lanes.reset_lanes([0], [_SEED + episode])
        episode += 1
        if resets.failures:
            return seen
        observations, is_over = resets.observations, False
        while not is_over and len(seen) < wanted:
            if step % _STRIDE == 0:
                seen.append(_copied(row_of(observations, 0)))
            step += 1
            steps = lanes.step_lanes(one_row(sample_value(action, rng)), (0,))
            if steps.failures:
                break
            observations, is_over = steps.observations, bool(steps.ended)
    return seen


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_copied(part) for part in value)
    return np.array(value) if isinstance(value, (np.ndarray, np.generic)) else value


def _key(value: Any) -> bytes:
    if isinstance(value, dict):
        return b"".join(_key(part) for part in value.values())
    if isinstance(value, tuple):
        return b"".join(map(_key, value))
    return value.tobytes() if isinstance(value, (np.ndarray, np.generic)) else repr(value).encode()
