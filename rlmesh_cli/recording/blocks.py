"""Blocks: the steps of one company of lanes, kept as they passed and stacked when the company changes.

Axes: R lanes of the company, S steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import Batch, leaves, map_leaves

Rewards = Sequence[float] | npt.NDArray[np.float64]
#: A leaf over several steps: an array (S, ...), or a list of S objects.
Column = Any


class Block(msgspec.Struct, frozen=True):
    """S steps of R lanes.

    observations, actions: their leaves, each (S, R, ...) or S lists of R. rewards: (S, R).
    """

    observations: list[Column]
    actions: list[Column]
    rewards: npt.NDArray[np.float64]

    @property
    def taken(self) -> int:
        """S, how many steps it holds."""
        return len(self.rewards)

    def lane(self, row: int) -> tuple[list[Column], list[Column], npt.NDArray[np.float64]]:
        """Return one lane's observations, actions and rewards."""
        return (
            [_of(leaf, row) for leaf in self.observations],
            [_of(leaf, row) for leaf in self.actions],
            _of(self.rewards, row),
        )


class StepLog:
    """Keeps the last steps of one company of lanes."""

    __slots__ = ("_actions", "_observations", "_rewards")

    def __init__(self) -> None:
        self._observations: list[Batch] = []
        self._actions: list[Batch] = []
        self._rewards: list[Rewards] = []

    def __len__(self) -> int:
        return len(self._rewards)

    def add(self, observations: Batch, actions: Batch, rewards: Rewards) -> None:
        """Keep one step.

        observations: (R, ...) after it; copied, since the policy may write into them. actions: (R, ...) copies.
        rewards: (R,), nobody else's.
        """
        self._observations.append(kept_batch(observations))
        self._actions.append(actions)
        self._rewards.append(rewards)

    def take(self) -> Block:
        """Return all steps as one block, and forget them."""
        block = Block(
            [_stacked(parts) for parts in zip(*map(leaves, self._observations), strict=True)],
            [_stacked(parts) for parts in zip(*map(leaves, self._actions), strict=True)],
            np.array(self._rewards, np.float64),
        )
        self._observations, self._actions, self._rewards = [], [], []
        return block


def kept_batch(batch: Batch) -> Batch:
    """Return a batch of which nothing is shared with the one that was given, objects included."""
    return map_leaves(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else deepcopy(leaf), batch)


def joined(parts: Sequence[Column]) -> Column:
    """Return one leaf's steps, one part after the other."""
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    return [one for part in parts for one in part]


def _stacked(parts: Sequence[Any]) -> Column:
    return np.stack(parts) if isinstance(parts[0], np.ndarray) else [list(part) for part in parts]


def _of(leaf: Column, row: int) -> Column:
    # A copy where there are several: a view would keep the steps of all lanes as long as one of them plays.
    return np.ascontiguousarray(leaf[:, row]) if isinstance(leaf, np.ndarray) else [part[row] for part in leaf]
