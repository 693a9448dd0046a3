"""Environments of every kind of space, named to the command as `init_toys:Kinds` with `kind=...`."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

_INF = np.inf


def _between(low: Any, high: Any, dtype: Any) -> spaces.Box:
    return spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype)


_BOX = spaces.Box(-1, 1, (2,), np.float32)
_ODD = 'it\'s a "key" # with: {odd}\nletters \\ é'

#: Kind -> (observation space, action space).
SPACES: dict[str, tuple[spaces.Space[Any], spaces.Space[Any]]] = {
    "discrete": (spaces.Discrete(5), spaces.Discrete(3)),
    "discrete_start": (spaces.Discrete(5, start=-2), spaces.Discrete(3, start=7)),
    "many_choices": (spaces.Discrete(5), spaces.Discrete(1000)),
    "multi_discrete": (spaces.MultiDiscrete([3, 4]), spaces.MultiDiscrete([3, 4, 2])),
    "multi_discrete_alike": (spaces.MultiDiscrete([3, 4]), spaces.MultiDiscrete([3, 3], start=[1, 1])),
    "multi_binary": (spaces.MultiBinary(3), spaces.MultiBinary((2, 2))),
    "float16": (spaces.Box(-1, 1, (3,), np.float16), spaces.Box(-1, 1, (2,), np.float16)),
    "float64": (spaces.Box(-1, 1, (3,), np.float64), spaces.Box(0, 512, (2,), np.float64)),
    "target": (spaces.Dict(agent_pos=spaces.Box(0, 9, (2,), np.float64)), spaces.Box(0, 9, (2,), np.float32)),
    "unbounded": (spaces.Box(-_INF, _INF, (3,)), spaces.Box(-_INF, _INF, (2,))),
    "one_sided": (spaces.Box(0, _INF, (3,)), _between([2, -_INF], [_INF, 3], np.float32)),
    "largest": (spaces.Box(-3e38, 3e38, (3,)), spaces.Box(-1.7e308, 1.7e308, (2,), np.float64)),
    "narrow": (spaces.Box(0, 1, (3,)), _between([1, 5], [1, 6], np.float32)),
    "bytes": (spaces.Box(0, 255, (4,), np.uint8), spaces.Box(3, 250, (2,), np.uint8)),
    "int8": (spaces.Box(-128, 127, (4,), np.int8), _between([-5, 2], [5, 3], np.int8)),
    "int64": (spaces.Box(-(2**62), 2**62, (4,), np.int64), spaces.Box(0, 9, (1,), np.int64)),
    "bools": (spaces.Box(0, 1, (4,), np.bool_), spaces.Box(0, 1, (2,), np.bool_)),
    "one_number": (spaces.Box(-1, 1, (), np.float32), spaces.Box(-1, 1, (), np.float32)),
    "matrix": (spaces.Box(-1, 1, (3, 4), np.float32), spaces.Box(-1, 1, (2, 2), np.float32)),
    "nothing": (spaces.Box(-1, 1, (0,), np.float32), spaces.Discrete(2)),
    "image": (spaces.Box(0, 255, (32, 48, 3), np.uint8), spaces.Discrete(4)),
    "image_chw": (spaces.Box(0, 255, (3, 32, 48), np.uint8), _BOX),
    "grey": (spaces.Box(0, 255, (32, 32, 1), np.uint8), _BOX),
    "float_image": (spaces.Box(0, 1, (32, 32, 3), np.float32), _BOX),
    "grid": (spaces.Box(0, 255, (7, 7, 3), np.uint8), spaces.Discrete(4)),
    "cameras": (
        spaces.Dict(
            {name: spaces.Box(0, 255, (20, 20, 3), np.uint8) for name in ("front", "wrist", "side", "top")}
        ),
        spaces.Box(-1, 1, (7,), np.float32),
    ),
    "robot": (
        spaces.Dict(
            robot=spaces.Dict(
                eef_pos=spaces.Box(-2, 2, (3,)),
                eef_quat=spaces.Box(-1, 1, (4,)),
                gripper_qpos=spaces.Box(0, 1, (2,)),
                joint_pos=spaces.Box(-3, 3, (7,)),
                joint_vel=spaces.Box(-_INF, _INF, (7,)),
            ),
            task=spaces.Text(20),
        ),
        spaces.Box(-1, 1, (7,), np.float32),
    ),
    "dict": (
        spaces.Dict(a=_BOX, b=spaces.Dict(c=spaces.Discrete(3), a=_BOX)),
        spaces.Dict(move=_BOX, use=spaces.Discrete(2)),
    ),
    "tuple": (
        spaces.Tuple((_BOX, spaces.Dict(x=_BOX, y=spaces.Tuple((_BOX,))))),
        spaces.Tuple((_BOX, spaces.Discrete(2))),
    ),
    "one_tuple": (spaces.Tuple((_BOX,)), spaces.Tuple((spaces.Discrete(2, start=1),))),
    "text": (spaces.Text(12), spaces.Discrete(2)),
    "text_in_tuple": (spaces.Tuple((spaces.Text(12), _BOX)), spaces.Discrete(2)),
    "graph": (spaces.Graph(_BOX, None), spaces.Discrete(2)),
    "sequence": (spaces.Dict(items=spaces.Sequence(_BOX), place=_BOX), spaces.Discrete(2)),
    "graph_in_tuple": (spaces.Tuple((spaces.Graph(_BOX, None), _BOX)), spaces.Discrete(2)),
    "type_key": (spaces.Dict({"type": _BOX, "<obs>": _BOX, "other": _BOX}), _BOX),
    "odd_keys": (
        spaces.Dict({_ODD: _BOX, "": _BOX, "null": _BOX, "1e3": _BOX, "a.b": _BOX, '"""': _BOX, "\u2028": _BOX}),
        spaces.Dict({_ODD: _BOX, "no": spaces.Discrete(2)}),
    ),
    "odd_keys_flat": (
        spaces.Dict({_ODD: _BOX, "": _BOX, "null": _BOX, "1e3": _BOX, "a": _BOX, '"""': _BOX, "\u2028": _BOX}),
        _BOX,
    ),
}


class Kinds(gym.Env[Any, Any]):
    """Observations are samples of a space that is named by its kind; refuses actions that are none; five steps.

    reports: the info key under which each step says that it went well.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - as gymnasium has it

    def __init__(self, kind: str, reports: str = "", render_mode: str | None = None) -> None:
        self.observation_space, self.action_space = SPACES[kind]
        self.reports, self.render_mode = reports, render_mode

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.t = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        if self.action_space.shape == () and isinstance(self.action_space, spaces.Box):
            action = np.asarray(action)  # gymnasium warns of numpy's scalars
        assert self.action_space.contains(action), f"{action!r} is no member of {self.action_space}"
        self.t += 1
        info = {self.reports: self.t == 5, "height": 0.5, "odd: # key": self.t} if self.reports else {}
        return self.observation_space.sample(), 0.5, self.t == 5, False, info


class Acting(Kinds):
    """Wants actions that no policy can give."""

    def __init__(self) -> None:
        super().__init__("discrete")
        self.action_space = spaces.Dict(word=spaces.Text(5))


class Stuck(Kinds):
    """Cannot be reset."""

    def __init__(self) -> None:
        super().__init__("discrete")

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        raise RuntimeError("the arm is stuck\nat joint 3")


class Breaks(Kinds):
    """Breaks in its second step."""

    def __init__(self) -> None:
        super().__init__("discrete")

    def step(self, action: Any) -> Any:
        if self.t == 1:
            raise RuntimeError("[red]gear[/red] is broken")
        return super().step(action)


class Tagged(Kinds):
    """Says itself what it gives."""

    def __init__(self) -> None:
        super().__init__("float64")
        self.metadata = {
            "rlmesh.adapters.v1.env_tags": {
                "observation": {"type": "state", "role": "proprio/joint_pos"},
                "action": {"components": [{"role": "action/joint_pos", "dim": 2}]},
            }
        }


class BadlyTagged(Kinds):
    """Says itself what it gives, in words that nobody knows."""

    def __init__(self) -> None:
        super().__init__("float64")
        self.metadata = {"rlmesh.adapters.v1.env_tags": {"observation": {"type": "smell"}}}


class Bare(gym.Env[Any, Any]):
    """Has no spaces."""


class OddMetadata(Kinds):
    """Says of itself what gymnasium does not foresee."""

    def __init__(self, what: str) -> None:
        super().__init__("discrete")
        odd: Any = {"list": ["rgb_array"], "text": {"render_modes": "human"}, "number": {"render_modes": 5}}
        self.metadata = odd[what]
