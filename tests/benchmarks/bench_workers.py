"""What worker processes gain: ratios of rates against lanes in this process and gymnasium's AsyncVectorEnv.

    python -m tests.benchmarks.bench_workers

Every set of lanes is built once and rests while others are measured. Lanes are stepped with drawn actions, and
reset with a seed each where they end. Environments that are not installed are passed by.
"""

from __future__ import annotations

import atexit
import importlib.util
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np

from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvRequest

from .measuring import Case, Skip

LANES, WORKERS = 8, 2


class Idle(gym.Env[Any, Any]):
    """Takes `seconds` a step, asleep or busy, and sees nothing."""

    observation_space = gym.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, seconds: float = 1e-3, is_busy: bool = False) -> None:
        self.seconds, self.is_busy = seconds, is_busy

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> Any:
        if self.is_busy:
            until = time.perf_counter() + self.seconds
            while time.perf_counter() < until:
                pass
        else:
            time.sleep(self.seconds)
        return np.zeros(4, np.float32), 0.0, False, False, {}


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One environment, and what workers must gain on it.

    against: `sync` for lanes in this process, `gymnasium` for AsyncVectorEnv. steps: vector steps a round.
    """

    name: str
    id: str
    kwargs: dict[str, Any] = {}
    package: str = "gymnasium"
    what: str
    against: str
    steps: int
    must: float
    aim: float


_HERE = "tests.benchmarks.bench_workers:Idle"
_PIXELS = {"obs_type": "pixels_agent_pos"}
_PUSHT = {"id": "gym_pusht:gym_pusht/PushT-v0", "kwargs": _PIXELS, "package": "gym_pusht"}
WORLDS = (
    World(name="cartpole", what="CartPole", id="CartPole-v1", against="gymnasium", steps=1500, must=3.0, aim=4.0),
    World(name="sleeping", what="steps that sleep 1 ms", id=_HERE, against="sync", steps=25, must=1.8, aim=1.9),
    World(
        name="busy",
        what="steps that compute 1 ms",
        id=_HERE,
        kwargs={"is_busy": True},
        against="sync",
        steps=25,
        must=1.8,
        aim=1.9,
    ),
    World(
        name="cheetah",
        what="HalfCheetah",
        id="HalfCheetah-v5",
        package="mujoco",
        against="sync",
        steps=700,
        must=1.35,
        aim=1.5,
    ),
    World(name="pusht", what="PushT, pixels", **_PUSHT, against="sync", steps=25, must=1.6, aim=1.8),
)

Play = Callable[[int], float]


def lanes_player(world: World, vectorization: str, workers: int) -> tuple[Play, Callable[[], object]]:
    """Return a function that takes vector steps and returns lane-steps a second, and one that closes."""
    is_async = vectorization == "async"
    request = EnvRequest(
        id=world.id,
        kwargs=world.kwargs,
        num_envs=LANES,
        vectorization=vectorization,
        workers=workers if is_async else None,
    )
    lanes, _ = make_lanes(request)
    lanes.single_action_space.seed(0)
    actions = [np.stack([lanes.single_action_space.sample() for _ in range(LANES)]) for _ in range(16)]
    everyone = tuple(range(LANES))
    lanes.reset_lanes(everyone, everyone)

    def play(steps: int) -> float:
        began = time.perf_counter()
        for step in range(steps):
            done = lanes.step_lanes(actions[step % 16], everyone)
            if done.ended:
                ended = [row for row, _, _ in done.ended]
                lanes.reset_lanes(ended, ended)
            assert not done.failures
        return steps * LANES / (time.perf_counter() - began)

    return play, lanes.close


def gymnasium_player(world: World) -> tuple[Play, Callable[[], object]]:
    """Return the same for gymnasium's AsyncVectorEnv; a step that only resets is not counted."""
    env = gym.make_vec(world.id, num_envs=LANES, vectorization_mode="async", **world.kwargs)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(16)]
    env.reset(seed=0)

    def play(steps: int) -> float:
        resets = 0
        began = time.perf_counter()
        for step in range(steps):
            _, _, terminated, truncated, _ = env.step(actions[step % 16])
            resets += int(np.count_nonzero(terminated | truncated))
        return (steps * LANES - resets) / (time.perf_counter() - began)

    return play, env.close


@cache
def player(name: str, whose: str) -> Play:
    """Return what takes vector steps of a world: `async` (our workers), `sync` (in process) or `gymnasium`."""
    world = next(world for world in WORLDS if world.name == name)
    if whose == "gymnasium":
        play, close = gymnasium_player(world)
    else:
        play, close = lanes_player(world, whose, WORKERS)
    atexit.register(close)
    return play


def rate(name: str, whose: str, steps: int) -> float:
    """Return lane-steps a second."""
    return player(name, whose)(steps)


def cases(folder: Path) -> list[Case | Skip]:
    """Return what is measured."""
    found: list[Case | Skip] = []
    for world in WORLDS:
        against = "AsyncVectorEnv" if world.against == "gymnasium" else "in process"
        name, what = f"workers-{world.name}", f"{world.what}, {WORKERS} workers / {against}"
        if importlib.util.find_spec(world.package) is None:
            found.append(Skip(name, what, f"{world.package} is not installed"))
            continue
        ours, theirs = (partial(rate, world.name, whose, world.steps) for whose in ("async", world.against))
        found.append(Case(name, what, "rate", "steps/s", ours, theirs, world.must, world.aim))
    return found


if __name__ == "__main__":
    from .running import main

    raise SystemExit(main(["bench_workers"]))
