"""Plays of toy environments: one episode alone, by plain gymnasium, and many over lanes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np


@dataclass
class Played:
    """One episode as it was seen: `number` is from its first observation, then step by step."""

    number: int = -1
    observations: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    infos: list[Any] = field(default_factory=list)
    end: tuple[bool, bool] | str = ""

    @property
    def length(self) -> int:
        return len(self.rewards)

    @property
    def total(self) -> float:
        return float(np.add.accumulate([0.0, *self.rewards])[-1])

    def row(self) -> tuple[Any, ...]:
        """Return everything that can be compared with `==`."""
        seen = tuple(tuple(np.asarray(observation).tolist()) for observation in self.observations)
        return self.number, seen, tuple(self.rewards), self.infos, self.end


def act(observation: Any) -> np.int64:
    """Answer an observation of a tape; depends on nothing else."""
    return np.int64((observation[0] + 3 * observation[1]) % 8)


def play_alone(
    make: Callable[[], gym.Env[Any, Any]],
    seed: int | None,
    *,
    limit: int | None = None,
    options: dict[str, Any] | None = None,
) -> Played:
    """Play one episode in an environment of its own, at most `limit` steps."""
    env = make()
    observation, info = env.reset(seed=seed, options=options)
    played = Played(int(observation[0]), [observation], infos=[info])
    is_over = False
    while not is_over and played.length != limit:
        observation, reward, terminated, truncated, info = env.step(act(observation))
        played.observations.append(observation)
        played.rewards.append(float(np.asarray(reward, np.float64).reshape(())))
        played.infos.append(info)
        is_over = terminated or truncated
        played.end = (bool(terminated), bool(truncated)) if is_over else ""
    env.close()
    return played


def play_lanes(
    lanes: Any, seeds: Sequence[int | None], *, shares: bool = False, give_up: Iterable[int] = ()
) -> list[list[Played]]:
    """Play one episode a seed over lanes, as the rollout does; return each lane's episodes.

    shares: each lane gets a fixed share of the seeds, instead of the next one when it is free.
    give_up: plays, counted in the order of their ends, that are left after one step.
    """
    return _Player(lanes, seeds, shares, set(give_up)).play()


def same(left: Any, right: Any) -> bool:
    """Tell whether two observations have the same structure, types and values; Graph instances are tuples."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, str) or left is None:
        return bool(left == right)
    left, right = np.asarray(left), np.asarray(right)
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def in_order(done: list[list[Played]]) -> list[Played]:
    """Return the episodes of all lanes by their number."""
    return sorted((played for lane in done for played in lane), key=lambda played: played.number)


class _Player:
    def __init__(self, lanes: Any, seeds: Sequence[int | None], shares: bool, give_up: set[int]) -> None:
        self._lanes, self._give_up = lanes, give_up
        count = lanes.num_envs
        one = deque(seeds)
        self._queues = [deque(seeds[lane::count]) for lane in range(count)] if shares else [one] * count
        self._running: dict[int, Played] = {}
        self._waiting: set[int] = set()
        self._done: list[list[Played]] = [[] for _ in range(count)]

    def play(self) -> list[list[Played]]:
        self._start(range(self._lanes.num_envs))
        vector_steps = 0
        while self._running or self._waiting:
            self._step()
            vector_steps += 1
            assert vector_steps < 2000, "the lanes never come to an end"
        return self._done

    def _start(self, free: Iterable[int]) -> None:
        seeds, lanes = [], []
        for lane in free:
            if self._queues[lane]:
                seeds.append(self._queues[lane].popleft())
                lanes.append(lane)
        if lanes:
            self._waiting.update(lanes)
            self._join(self._lanes.reset_lanes(lanes, seeds))

    def _join(self, resets: Any) -> None:
        for row, lane in enumerate(resets.lanes):
            assert lane in self._waiting, f"lane {lane} started without being asked to"
            self._waiting.remove(lane)
            if row in resets.failures:
                self._done[lane].append(Played(end=resets.failures[row].message))
                continue
            observation = resets.observations[row]
            self._running[lane] = Played(int(observation[0]), [observation], infos=[resets.infos[row]])
        self._start([lane for row, lane in enumerate(resets.lanes) if row in resets.failures])

    def _step(self) -> None:
        named = tuple(sorted(self._running))
        actions = np.array([act(self._running[lane].observations[-1]) for lane in named], np.int64)
        steps = self._lanes.step_lanes(actions, named)
        ended = {row: (terminated, truncated) for row, terminated, truncated in steps.ended}
        free = []
        for row, lane in enumerate(named):
            played = self._running[lane]
            if row in steps.failures:
                played.end = steps.failures[row].message
            else:
                played.observations.append(steps.observations[row])
                played.rewards.append(float(steps.rewards[row]))
                played.infos.append({} if steps.infos is None else steps.infos[row])
                played.end = ended.get(row, "")
                if not played.end and sum(map(len, self._done)) in self._give_up:
                    played.end = "given up"
            if played.end:
                self._done[lane].append(self._running.pop(lane))
                free.append(lane)
        if steps.started is not None:
            self._join(steps.started)
        self._start(free)
