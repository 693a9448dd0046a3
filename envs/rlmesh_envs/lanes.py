"""LaneVectorEnv: environments in this process, each lane stepped and seeded on its own.

Axes: N lanes, R stepped lanes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from math import inf, isfinite
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rlmesh_adapters.batches import Batch, BatchLayout, iterate_rows
from rlmesh_adapters.errors import EnvironmentBuildError, Failure, failure_from

from .rewards import find_tap
from .spaces import view_of
from .steps import Info, LaneResets, LaneSteps, bad_reward, scalar_reward

EnvBuilder = Callable[[], gym.Env[Any, Any]]


class LaneVectorEnv(VectorEnv[Any, Any, Any]):
    """N environments of one kind, stepped in this process.

    As a gymnasium vector environment it does not reset by itself (`DISABLED`): `reset` takes one seed a lane
    and `options={"reset_mask": (N,) bool}`. Beyond that, `reset_lanes` and `step_lanes` touch only the lanes
    they are given, keep each lane's info as it came, and turn an exception of one lane into a failure of that
    lane: its environment is built anew before its next episode.

    builders: N functions that each build one environment.

    Raises EnvironmentBuildError if the lanes' spaces differ.
    """

    def __init__(self, builders: Sequence[EnvBuilder]) -> None:
        self._builders = list(builders)
        self.num_envs = len(self._builders)
        self.envs = [build() for build in self._builders]
        self._taps = [find_tap(env) for env in self.envs]
        self._has_taps = any(tap is not None for tap in self._taps)
        self._is_broken = [False] * self.num_envs
        first = self.envs[0]
        self._check_spaces()
        self.metadata = {**first.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.render_mode = first.render_mode
        self.spec = first.spec
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, self.num_envs)
        self.action_space = batch_space(first.action_space, self.num_envs)
        self.layout = BatchLayout(view_of(first.observation_space))
        # Whether observations are single arrays and rewards the environment's own.
        self._is_plain = self.layout.is_array and not self._has_taps
        self._dtype = self.layout.dtype
        # The company is who stepped together last. A lane's age is the count of company steps since its birth;
        # while it is not of the company, its birth is kept as a negative age.
        self._company: Sequence[int] = ()
        self._together = 0
        self._birth = [0] * self.num_envs
        self._limit: float = inf
        self._until: float = inf
        self._steppers: list[Callable[[Any], Any]] = []
        self._batch_shape: tuple[int, ...] = ()
        self._is_lone = False
        self._members: frozenset[int] = frozenset()
        self._has_looked = False
        # Whether actions come as one array, so that the first row is the first element.
        self._is_flat = view_of(first.action_space).is_array
        self._step: list[Callable[[Any], Any]] = []
        for env in self.envs:
            stepper, self._limit = _shortcut(env)
            self._step.append(stepper)
        self._current: Batch = self.layout.allocate(self.num_envs)

    def _check_spaces(self) -> None:
        first = self.envs[0]
        for lane, env in enumerate(self.envs):
            for what in ("observation_space", "action_space"):
                if getattr(env, what) != getattr(first, what):
                    raise EnvironmentBuildError(
                        f"lanes differ: {what} of lane {lane} is {getattr(env, what)}, "
                        f"of lane 0 {getattr(first, what)}",
                        where="environment",
                        mend="make the environment's spaces the same each time it is built",
                    )

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset the given lanes, each with its own seed.

        lanes: lane numbers, each once.
        seeds: as many, None draws from entropy.
        """
        now = self._together
        company = self._members
        casts = ""
        observations = self.layout.allocate(len(lanes))
        infos: list[Info] = []
        failures: dict[int, Failure] = {}
        for row, (lane, seed) in enumerate(zip(lanes, seeds, strict=True)):
            try:
                if self._is_broken[lane]:
                    self._rebuild(lane)
                observation, info = self.envs[lane].reset(seed=seed)
                self._birth[lane] = now if lane in company else 0
                self.layout.write(observations, row, observation)
                if not self._has_looked:
                    self._has_looked, casts = True, self.layout.casts(observation)
            except Exception as error:
                failures[row] = failure_from(error, "reset")
                self._is_broken[lane] = True
                info = {}
            infos.append(info)
        return LaneResets(lanes, observations, infos, failures, casts)

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step the given lanes and no other.

        actions: (R, ...), one action a given lane, in the structure of the action space.
        lanes: R lane numbers; the same tuple as at the last step is the cheapest.
        """
        if lanes is not self._company:
            self._regroup(lanes)
        self._together += 1
        if self._is_lone and self._together < self._until:
            return self._step_lone(actions[0])
        seen: list[Any] = []
        rewards: list[float] = []
        infos: list[Info] | None = None
        ended: list[tuple[int, bool, bool]] = []
        failures: dict[int, Failure] = {}
        row = 0
        pairs = zip(self._steppers, iterate_rows(actions, len(lanes)), strict=True)
        while True:
            try:
                for step, action in pairs:
                    observation, reward, terminated, truncated, info = step(action)
                    if terminated or truncated:
                        ended.append((row, bool(terminated), bool(truncated)))
                    if info:
                        if infos is None:
                            infos = [_NO_INFO] * len(lanes)
                        infos[row] = info
                    seen.append(observation)
                    rewards.append(reward)
                    row += 1
                break
            except Exception as error:
                self._fail(failures, row, error)
                seen.append(_MISSING)
                rewards.append(0.0)
                row += 1
        total = sum(rewards)
        if total.__class__ is float and isfinite(total) and self._is_plain and not failures:
            batch = _stacked(seen)
            if batch.dtype == self._dtype and batch.shape == self._batch_shape:
                if self._together >= self._until:
                    ended = self._with_late(ended)
                return LaneSteps(batch, rewards, ended, infos, failures)
        return self._conclude(seen, rewards, infos, ended, failures)

    def _step_lone(self, action: Any) -> LaneSteps:
        """Step a single lane; what is usual goes past the lists that several lanes need."""
        failures: dict[int, Failure] = {}
        ended = []
        try:
            observation, reward, terminated, truncated, info = self._steppers[0](action)
            if terminated or truncated:
                ended.append((0, bool(terminated), bool(truncated)))
        except Exception as error:
            self._fail(failures, 0, error)
            return self._conclude([_MISSING], [0.0], None, [], failures)
        if (
            reward.__class__ is float
            and isfinite(reward)
            and observation.__class__ is np.ndarray
            and observation.shape == self.layout.shape
            and observation.dtype == self._dtype
        ):
            batch = observation[None].copy()
            return LaneSteps(batch, [reward], ended, [info] if info else None, failures)
        return self._conclude([observation], [reward], [info] if info else None, ended, failures)

    def _conclude(
        self,
        seen: list[Any],
        rewards: list[float],
        infos: list[Info] | None,
        ended: list[tuple[int, bool, bool]],
        failures: dict[int, Failure],
    ) -> LaneSteps:
        """Turn what the company's lanes gave into one record, fault by fault."""
        if self._has_taps or sum(rewards).__class__ is not float:
            rewards = self._plain_rewards(rewards, failures)
        if not isfinite(sum(rewards)):
            _note_bad(rewards, failures)
        if self._together >= self._until:
            ended = self._with_late(ended)
        observations = self._stack(seen, failures)
        if failures:
            ended = [end for end in ended if end[0] not in failures]
        return LaneSteps(observations, rewards, ended, infos, failures)

    def _fail(self, failures: dict[int, Failure], row: int, error: Exception) -> None:
        failures[row] = failure_from(error, "step")
        self._is_broken[self._company[row]] = True

    def _plain_rewards(self, rewards: Sequence[Any], failures: dict[int, Failure]) -> list[float]:
        """Return the rewards as floats: those underneath the route's wrappers where there are any."""
        plain = [0.0] * len(rewards)
        for row, reward in enumerate(rewards):
            if row in failures:
                continue
            tap = self._taps[self._company[row]]
            try:
                plain[row] = scalar_reward(reward) if tap is None else tap.take()
            except (TypeError, ValueError) as error:
                self._fail(failures, row, error)
        return plain

    def _with_late(self, ended: list[tuple[int, bool, bool]]) -> list[tuple[int, bool, bool]]:
        """Add the lanes that are at their time limit; one may end by itself in the same step."""
        # Resets move births forward without moving this moment, so it may have come too early.
        self._set_until()
        terminated = {row: flag for row, flag, _ in ended}
        late = [
            (row, terminated.get(row, False), True)
            for row, lane in enumerate(self._company)
            if self._together - self._birth[lane] >= self._limit
        ]
        rows = {row for row, _, _ in late}
        return sorted(late + [end for end in ended if end[0] not in rows])

    def _stack(self, seen: list[Any], failures: dict[int, Failure]) -> Batch:
        """Return the lanes' observations as one batch, cast where they must be; a misfit fails its lane."""
        observations = self.layout.allocate(len(seen))
        for row, observation in enumerate(seen):
            if observation is not _MISSING:
                try:
                    self.layout.write(observations, row, observation)
                except Exception as error:
                    self._fail(failures, row, error)
        return observations

    def _set_until(self) -> None:
        """See at which company step the first time limit is due."""
        if self._limit != inf:
            due = [self._birth[lane] + self._limit for lane in self._company]
            self._until = max(min(due, default=inf), self._together + 1)

    def _regroup(self, lanes: Sequence[int]) -> None:
        """Make some lanes the company that steps together."""
        for lane in self._company:
            self._birth[lane] -= self._together
        # A list may change behind our back, so it is grouped anew at every step.
        self._company = lanes if isinstance(lanes, tuple) else tuple(lanes)
        self._members = frozenset(lanes)
        self._together = 0
        self._set_until()
        self._steppers = [self._step[lane] for lane in lanes]
        self._batch_shape = (len(lanes), *self.layout.shape)
        self._is_lone = len(lanes) == 1 and self._is_plain and self._is_flat

    def _rebuild(self, lane: int) -> None:
        with contextlib.suppress(Exception):  # what is broken may not even close
            self.envs[lane].close()
        self.envs[lane] = self._builders[lane]()
        self._taps[lane] = find_tap(self.envs[lane])
        self._step[lane], self._limit = _shortcut(self.envs[lane])
        self._is_broken[lane] = False
        self._regroup(())

    def reset(
        self,
        *,
        seed: int | list[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Reset all lanes, or those of `options["reset_mask"]`, as gymnasium's vector environments do.

        seed: an int gives lane i the seed `seed + i`; a list gives one a lane; None draws from entropy.

        Raises what an environment raises.
        """
        seeds = self._seeds(seed)
        mask = None if options is None else options.get("reset_mask")
        lanes = list(range(self.num_envs)) if mask is None else np.flatnonzero(mask).tolist()
        resets = self.reset_lanes(lanes, [seeds[lane] for lane in lanes])
        self._raise_first(resets.failures)
        infos: dict[str, Any] = {}
        for row, lane in enumerate(lanes):
            infos = self._add_info(infos, resets.infos[row], lane)
        return self._show(lanes, resets.observations), infos

    def step(
        self, actions: Any
    ) -> tuple[Batch, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """Step all lanes, as gymnasium's vector environments do; raises what an environment raises."""
        lanes = list(range(self.num_envs))
        steps = self.step_lanes(actions, lanes)
        self._raise_first(steps.failures)
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
        for row, lane in enumerate(lanes):
            self.layout.write(self._current, lane, iterate_rows(observations, len(lanes))[row])
        fresh = self.layout.allocate(self.num_envs)
        for lane, value in enumerate(iterate_rows(self._current, self.num_envs)):
            self.layout.write(fresh, lane, value)
        return fresh

    def _raise_first(self, failures: Mapping[int, Failure]) -> None:
        for row, failure in failures.items():
            raise RuntimeError(f"row {row}: {failure.message} ({failure.detail})")

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
        for env in self.envs:
            with contextlib.suppress(Exception):
                env.close()


_NO_INFO: Info = {}
_MISSING = object()
_RAGGED: npt.NDArray[Any] = np.empty(0, np.object_)


def _shortcut(env: gym.Env[Any, Any]) -> tuple[Callable[[Any], Any], float]:
    """Return what steps an environment, and the limit in steps that is then ours to keep.

    The time limit and the order check that `gymnasium.make` puts outermost are three Python frames a step.
    Lanes count their own steps and never step before a reset, so those two are passed by; resets still go
    through them. Any other wrapper is left in place.
    """
    limit = inf
    while type(env) in (gym.wrappers.TimeLimit, gym.wrappers.OrderEnforcing):
        if isinstance(env, gym.wrappers.TimeLimit):
            limit = min(limit, env._max_episode_steps)
        env = env.env  # type: ignore[attr-defined]
    return env.step, limit


def _stacked(seen: list[Any]) -> npt.NDArray[Any]:
    # Unlike storing into a row, stacking does not repeat a short value, so the whole can be checked at once.
    try:
        return np.array(seen)
    except ValueError:
        return _RAGGED


def _note_bad(rewards: Sequence[float], failures: dict[int, Failure]) -> None:
    for row, reward in enumerate(rewards):
        if not isfinite(reward):
            failures.setdefault(row, bad_reward(reward))
