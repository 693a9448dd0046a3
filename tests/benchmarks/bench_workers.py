"""What worker processes gain: ratios of rates against lanes in this process and gymnasium's AsyncVectorEnv.

    python tests/benchmarks/bench_workers.py [--repeats 9] [--workers 2] [--only cartpole]

Every set of lanes is built once and rests while others are measured. Each round runs every case once, in turn; a
ratio is the median over the rounds of (ours / theirs in the same round). Lanes are stepped with drawn actions and
reset, with a seed each, where they end. Environments that are not installed are passed by.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np

from rlmesh_envs.make import make_lanes
from rlmesh_envs.request import EnvRequest

LANES = 8


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


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One environment, and what workers must gain on it.

    against: `sync` for lanes in this process, `gymnasium` for AsyncVectorEnv. steps: vector steps a round.
    """

    name: str
    id: str
    kwargs: dict[str, Any] = {}
    package: str = "gymnasium"
    against: str
    steps: int
    must: float
    aim: float


_HERE = "bench_workers:Idle"
_PIXELS = {"obs_type": "pixels_agent_pos"}
_PUSHT = {"id": "gym_pusht:gym_pusht/PushT-v0", "kwargs": _PIXELS, "package": "gym_pusht"}
CASES = (
    Case(name="cartpole", id="CartPole-v1", against="gymnasium", steps=600, must=3.0, aim=4.0),
    Case(name="sleeping 1 ms", id=_HERE, against="sync", steps=25, must=1.8, aim=1.9),
    Case(name="busy 1 ms", id=_HERE, kwargs={"is_busy": True}, against="sync", steps=25, must=1.8, aim=1.9),
    Case(name="cheetah", id="HalfCheetah-v5", package="mujoco", against="sync", steps=300, must=1.35, aim=1.5),
    Case(name="pusht pixels", **_PUSHT, against="sync", steps=15, must=1.6, aim=1.8),
)

Play = Callable[[int], float]


def lanes_player(case: Case, vectorization: str, workers: int) -> tuple[Play, Callable[[], object]]:
    """Return a function that takes vector steps and returns lane-steps a second, and one that closes."""
    is_async = vectorization == "async"
    request = EnvRequest(
        id=case.id,
        kwargs=case.kwargs,
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


def gymnasium_player(case: Case) -> tuple[Play, Callable[[], object]]:
    """Return the same for gymnasium's AsyncVectorEnv; a step that only resets is not counted."""
    env = gym.make_vec(case.id, num_envs=LANES, vectorization_mode="async", **case.kwargs)
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


def measure(cases: Sequence[Case], repeats: int, workers: int) -> dict[str, tuple[list[float], list[float]]]:
    """Return for every case our rates and theirs by round; a first round warms up and is not counted."""
    pairs, closers = [], []
    for case in cases:
        ours, close_ours = lanes_player(case, "async", workers)
        theirs, close_theirs = (
            gymnasium_player(case) if case.against == "gymnasium" else lanes_player(case, "sync", workers)
        )
        pairs.append((case, ours, theirs))
        closers += [close_ours, close_theirs]
    rates: dict[str, tuple[list[float], list[float]]] = {case.name: ([], []) for case in cases}
    for turn in range(repeats + 1):
        for case, *players in pairs:
            for number in (0, 1) if turn % 2 else (1, 0):
                gc.collect()
                rate = players[number](case.steps)
                if turn:
                    rates[case.name][number].append(rate)
    for close in closers:
        close()
    return rates


def main() -> int:
    """Print the table; return 1 if a ratio is below what must be reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", action="append", help="the beginning of a case's name")
    options = parser.parse_args()
    cases = [
        case
        for case in CASES
        if importlib.util.find_spec(case.package) is not None
        and (not options.only or case.name.startswith(tuple(options.only)))
    ]
    rates = measure(cases, options.repeats, options.workers)
    print(f"python {sys.version.split()[0]}, gymnasium {gym.__version__}, {LANES} lanes, {options.repeats} rounds")
    missed = 0
    for case in cases:
        ours, theirs = rates[case.name]
        ratios = [one / two for one, two in zip(ours, theirs, strict=True)]
        middle = statistics.median(ratios)
        missed += middle < case.must
        mine, other = statistics.median(ours), statistics.median(theirs)
        against = "AsyncVectorEnv" if case.against == "gymnasium" else "in process"
        print(
            f"{case.name:14s} {mine:9,.0f} steps/s, {against:14s} {other:9,.0f}"
            f"  x{middle:.2f}  ({min(ratios):.2f} - {max(ratios):.2f})  must {case.must:.2f}  aim {case.aim:.2f}"
        )
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
