"""Recordings: everything that passes between policy and environment in one episode, copied step by step.

For the few episodes that are looked into. What is kept of a run's own episodes are hashes; see `traces`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import Batch, row_of
from rlmesh_envs.steps import LaneResets, LaneSteps

from .lane_protocols import Lanes

# From so many bytes on, such as those of an image, an array is kept packed.
_LARGE_BYTES = 4096


class KeptArray(msgspec.Struct, frozen=True):
    """A copy of an array. data: its bytes, packed where they are many."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    data: bytes
    is_packed: bool = False

    def restored(self) -> npt.NDArray[Any]:
        """Return the array; it cannot be written into."""
        data = zlib.decompress(self.data) if self.is_packed else self.data
        return np.frombuffer(data, self.dtype).reshape(self.shape)


#: Leaf's name, such as `observation.camera` -> a KeptArray, or a copy of what is no array.
KeptLeaves = dict[str, Any]


class Moment(msgspec.Struct):
    """One step. action, reward: None if the policy gave none, or the environment did not finish its step."""

    observation: KeptLeaves
    action: KeptLeaves | None = None
    reward: float | None = None


class Watch(Protocol):
    """Whoever looks at the environment itself after each reset and each step that went well."""

    def begin(self) -> None:
        """Called when an episode stands at its first observation."""
        ...

    def look(self) -> None:
        """Called after a step."""
        ...


class RecordingLanes:
    """One lane that writes down what passes through it; see lane_protocols.Lanes.

    lanes: the lane itself. watch: told after each reset and step, None if nobody is.
    moments: of the last episode that was begun.
    """

    def __init__(self, lanes: Lanes, watch: Watch | None = None) -> None:
        self.num_envs = 1
        self.moments: list[Moment] = []
        self._lanes, self._watch = lanes, watch

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset the lane, and begin anew."""
        resets = self._lanes.reset_lanes(lanes, seeds)
        self.moments = []
        if not resets.failures:
            self._see(resets.observations)
            if self._watch is not None:
                self._watch.begin()
        return resets

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step the lane; the action is copied before the environment gets it."""
        moment = self.moments[-1]
        moment.action = keep(row_of(actions, 0), "action")
        steps = self._lanes.step_lanes(actions, lanes)
        if not steps.failures:
            moment.reward = float(steps.rewards[0])
            # Before the policy gets it, who may write into it. The last one is shown to nobody.
            if steps.observations is not None:
                self._see(steps.observations)
            if self._watch is not None:
                self._watch.look()
        return steps

    def _see(self, observations: Batch) -> None:
        self.moments.append(Moment(keep(row_of(observations, 0), "observation")))


def keep(value: Any, name: str) -> KeptLeaves:
    """Return copies of the leaves of a value, each under its name."""
    return {leaf: _kept(part) for leaf, part in named_leaves(value, name)}


def named_leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree, named by the keys and places that lead to them."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from named_leaves(part, f"{name}.{key}")
    elif isinstance(value, (tuple, list)):
        places = getattr(value, "_fields", range(len(value)))
        for place, part in zip(places, value, strict=True):
            yield from named_leaves(part, f"{name}.{place}")
    else:
        yield name, value


def _kept(leaf: Any) -> Any:
    if not isinstance(leaf, (np.ndarray, np.generic)) or leaf.dtype.hasobject:
        return deepcopy(leaf)
    data = leaf.tobytes()
    is_large = len(data) >= _LARGE_BYTES
    return KeptArray(leaf.dtype, leaf.shape, zlib.compress(data, 1) if is_large else data, is_large)
