"""LaneVectorEnv: a set of lanes as a gymnasium vector environment.

Axes: N lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rlmesh_adapters.batches import Batch, copy_batch, iterate_rows
from rlmesh_adapters.errors import Failure

from .lane_envs import EnvBuilder, Limit
from .lane_set import LaneSet
from .metadata import metadata_of


class LaneVectorEnv(LaneSet, VectorEnv[Any, Any, Any]):
    """N environments of one kind, stepped in this process.

    As a gymnasium vector environment it does not reset by itself (`DISABLED`): `reset` takes one seed a lane
    and `options={"reset_mask": (N,) bool}`. An evaluation uses `reset_lanes` and `step_lanes` of LaneSet.

    builders: N functions that each build one environment. limit: as of LaneSet.

    Raises EnvironmentBuildError if the lanes' spaces differ, or two lanes are one object.
    """

    def __init__(self, builders: Sequence[EnvBuilder], limit: Limit | None = None) -> None:
        super().__init__(builders, limit)
        first = self.envs[0]
        self.metadata = {**metadata_of(first), "autoreset_mode": AutoresetMode.DISABLED}
        self.render_mode = first.render_mode
        self.spec = first.spec
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self._current: Batch = self.layout.allocate(self.num_envs)

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Reset all lanes, or those of `options["reset_mask"]`, as gymnasium's vector environments do.

        seed: an int gives lane i the seed `seed + i`; a list gives one a lane; None draws from entropy.

        Raises what an environment raises, or RuntimeError, naming the lane, for what it gave.
        """
        self.first_error = None
        seeds = self._seeds(seed)
        remaining = dict(options or {})
        lanes = self._masked(remaining.pop("reset_mask", None))
        # Only gymnasium's own interface passes options on; an evaluation has none.
        resets = self.reset_lanes(lanes, [seeds[lane] for lane in lanes], remaining or None)
        self._raise_first(lanes, resets.failures)
        infos: dict[str, Any] = {}
        for row, lane in enumerate(lanes):
            infos = self._add_info(infos, resets.infos[row], lane)
        return self._show(lanes, resets.observations), infos

    def _masked(self, mask: Any) -> list[int]:
        if mask is None:
            return list(range(self.num_envs))
        if not isinstance(mask, np.ndarray) or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ValueError(f"reset_mask must be a bool array of shape ({self.num_envs},), got {mask!r}")
        return np.flatnonzero(mask).tolist()

    def step(
        self, actions: Any
    ) -> tuple[Batch, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Step all lanes, as gymnasium's vector environments do; raises what one of them raises."""
        self.first_error = None
        lanes = list(range(self.num_envs))
        steps = self.step_lanes(actions, lanes)
        self._raise_first(lanes, steps.failures)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        for row, is_terminated, is_truncated in steps.ended:
            terminated[row], truncated[row] = is_terminated, is_truncated
        infos: dict[str, Any] = {}
        for lane, info in enumerate(steps.infos or ()):
            infos = self._add_info(infos, info, lane)
        rewards = np.array(steps.rewards, np.float64)
        return self._show(lanes, steps.observations), rewards, terminated, truncated, infos

    def _seeds(self, seed: int | list[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int):
            return [seed + lane for lane in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"expected {self.num_envs} seeds, one a lane, got {len(seed)}")
        return seed

    def _show(self, lanes: Sequence[int], observations: Batch) -> Batch:
        """Return all lanes' current observations (N, ...), the given ones renewed."""
        for lane, value in zip(lanes, iterate_rows(observations, len(lanes)), strict=True):
            self.layout.write(self._current, lane, value)
        return copy_batch(self._current)

    def _raise_first(self, lanes: Sequence[int], failures: Mapping[int, Failure]) -> None:
        for row, failure in failures.items():
            if self.first_error is not None:
                raise self.first_error
            raise RuntimeError(f"lane {lanes[row]}: {failure.message}")

    def render(self) -> tuple[Any, ...]:
        """Return each lane's frame."""
        return tuple(env.render() for env in self.envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of every environment, or read an attribute."""
        found = [env.get_wrapper_attr(name) for env in self.envs]
        return tuple(value(*args, **kwargs) if callable(value) else value for value in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of every environment."""
        return tuple(env.get_wrapper_attr(name) for env in self.envs)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of every environment, to one value or to one a lane."""
        each = values if isinstance(values, (list, tuple)) else [values] * self.num_envs
        for env, value in zip(self.envs, each, strict=True):
            env.set_wrapper_attr(name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Close every environment; one that cannot be closed does not stop the others."""
        self.close_lanes()
