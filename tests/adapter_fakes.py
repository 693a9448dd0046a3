"""What the tests of the adapters share: spaces, episodes, policies made of functions, networks and tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from gymnasium import spaces

from rlmesh_adapters.actions import ActionSeam
from rlmesh_adapters.calls import PolicyCaller
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.contract import RouteContract, RoutePlan
from rlmesh_adapters.corners import choose_corner
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.spaces import SpaceView
from rlmesh_envs.spaces import view_of

UNEVEN = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))

OBSERVATION = view_of(spaces.Box(-np.inf, np.inf, (1,)))
NUMBER = view_of(spaces.Box(-1e6, 1e6, (), np.float64))
BODY = spaces.Dict({"arm": UNEVEN, "legs": spaces.MultiBinary(2), "head": spaces.Discrete(2)})

ACTION_SPACES: dict[str, spaces.Space[Any]] = {
    "box": UNEVEN,
    "box of float64": spaces.Box(-1, 1, (2, 2), np.float64),
    "box of one number": spaces.Box(-1, 1, (), np.float32),
    "unbounded box": spaces.Box(-np.inf, np.inf, (3,), np.float32),
    "discrete": spaces.Discrete(4, start=-1),
    "multi-discrete": spaces.MultiDiscrete([3, 5]),
    "multi-binary": spaces.MultiBinary(3),
    "dict": spaces.Dict({"z": UNEVEN, "a": spaces.Discrete(3)}),
    "tuple": spaces.Tuple((spaces.Discrete(3), spaces.Dict({"body": BODY}))),
}


def contexts(*indices: int) -> tuple[EpisodeContext, ...]:
    """Return episodes of these indices; each has its index as seed."""
    return tuple(EpisodeContext(f"ep-{index + 1:06d}", index, index) for index in indices)


def column(*values: float) -> np.ndarray[Any, Any]:
    """Return observations (M, 1) float32, one number a row."""
    return np.array(values, np.float32)[:, None]


def seam_of(space: spaces.Space[Any]) -> ActionSeam:
    return ActionSeam(view_of(space))


def caller_of(
    space: spaces.Space[Any],
    *,
    horizon: int = 1,
    clock: Callable[[], float] = lambda: 0.0,
    **corners: Callable[..., Any],
) -> PolicyCaller:
    """Return the caller of a policy whose corners are these functions."""
    corner = choose_corner(SimpleNamespace(**corners), horizon)
    return PolicyCaller(corner, seam_of(space), horizon=horizon, clock=clock)


def box_view(low: Any, high: Any, shape: tuple[int, ...], dtype: Any) -> SpaceView:
    """Return a Box as a view, also of shapes and dtypes that gymnasium has no space for."""
    lows, highs = (np.array(np.broadcast_to(np.asarray(bound, dtype), shape)) for bound in (low, high))
    return SpaceView(kind="box", shape=shape, dtype=np.dtype(dtype), low=lows, high=highs)


def rows_of(tree: Any, rows: Any) -> Any:
    """Index every array of a tree of dicts and tuples."""
    if isinstance(tree, dict):
        return {name: rows_of(part, rows) for name, part in tree.items()}
    if isinstance(tree, tuple):
        return tuple(rows_of(part, rows) for part in tree)
    return tree[rows]


def leaf_arrays(tree: Any) -> list[np.ndarray[Any, Any]]:
    """Return the arrays of a tree, dict keys in sorted order."""
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaf_arrays(tree[name])]
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaf_arrays(part)]
    return [np.asarray(tree)]


class Net:
    """A module as Torch has them: a flag, and parts that follow it."""

    def __init__(self, *parts: Net, training: bool = True) -> None:
        self.parts = list(parts)
        self.training = training

    def train(self, mode: bool = True) -> Net:
        self.training = mode
        for part in self.parts:
            part.train(mode)
        return self

    def eval(self) -> Net:
        return self.train(False)


class NetWithoutSetter(Net):
    """A module whose flag can only be changed through `train`."""

    def __init__(self, *parts: Net, training: bool = True) -> None:
        self.parts = list(parts)
        self._mode = training

    @property
    def training(self) -> bool:  # type: ignore[override]
        return self._mode

    def train(self, mode: bool = True) -> Net:
        self._mode = mode
        for part in self.parts:
            part.train(mode)
        return self


class Tensor:
    """A Torch-like tensor: needs `detach` and `cpu` before numpy may read it."""

    def __init__(self, values: Any, *, needs: Sequence[str] = ("detach", "cpu"), half: bool = False) -> None:
        self.values, self.needs, self.half = values, tuple(needs), half

    def detach(self) -> Tensor:
        return self._without("detach")

    def cpu(self) -> Tensor:
        return self._without("cpu")

    def float(self) -> Tensor:
        return Tensor(np.asarray(self.values, np.float32), needs=self.needs)

    def _without(self, need: str) -> Tensor:
        return Tensor(self.values, needs=[other for other in self.needs if other != need], half=self.half)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, row: int) -> Tensor:
        if row >= len(self.values):
            raise IndexError(row)
        return Tensor(self.values[row], needs=self.needs, half=self.half)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.needs:
            raise RuntimeError(f"call {self.needs[0]}() first")
        if self.half:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return np.array(self.values, dtype)


class DlpackOnly:
    """A tensor that can be read through DLPack and in no other way."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self._values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._values.__dlpack_device__()


class UnprintableError(Exception):
    """An error whose own text cannot be made."""

    def __str__(self) -> str:
        raise ValueError("no text")


class Counting:
    """Adds up what it saw since its reset, and writes down its life."""

    built: list[Counting]

    def __init__(self) -> None:
        self.total, self.life = 0.0, list[str]()
        type(self).built.append(self)

    def reset(self, context: EpisodeContext) -> None:
        self.total = 0.0
        self.life.append(f"reset {context.index}")

    def predict(self, obs: Any) -> float:
        self.total += float(obs[0])
        self.life.append("predict")
        return self.total

    def on_episode_end(self, context: EpisodeContext) -> None:
        self.life.append(f"end {context.index}")

    def close(self) -> None:
        self.life.append("close")


class OneRoute:
    """One configured route, asked by episode index."""

    def __init__(self, build: Any, *, num_lanes: int = 2, horizon: int = 1, sharing: str = "auto") -> None:
        self.engine = AdapterEngine()
        self.plan: RoutePlan = self.engine.configure(
            "route",
            build,
            RouteContract(
                observation=OBSERVATION, action=NUMBER, num_lanes=num_lanes, horizon=horizon, sharing=sharing
            ),
        )

    def ask(self, episodes: Sequence[EpisodeContext], *values: float) -> Any:
        return self.engine.predict("route", column(*values), tuple(episodes))

    def end(self, *episodes: EpisodeContext) -> None:
        self.engine.end_episodes("route", episodes)
