"""Foreign vector environments, with an autoreset of their own, read as lanes.

They step in lockstep, so a lane without an episode is stepped with a filler action and not looked at.
Axes: N lanes, R looked-at lanes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from rlmesh_adapters.batches import Batch, copy_batch, map_leaves, put_rows, take_rows
from rlmesh_adapters.errors import EnvironmentBuildError, Failure, failure_from
from rlmesh_adapters.spaces import SpaceView, zero_value

from .infos import final_info, split_infos
from .spaces import view_of
from .steps import Info, LaneResets, LaneSteps, bad_reward

AnyVectorEnv = VectorEnv[Any, Any, Any]


class ForeignLanes:
    """The lanes of a vector environment that we did not make.

    NEXT_STEP: the step after an episode's end resets; its action, reward and flags are ignored, and the lane
    starts with it. SAME_STEP: the last step already returns the next episode's first observation. DISABLED:
    `reset` with a `reset_mask`.

    env: the vector environment.
    rebuild: builds it anew, after a step or reset raised.

    Raises EnvironmentBuildError if it does not say which autoreset mode it has.
    """

    def __init__(self, env: AnyVectorEnv, rebuild: Callable[[], AnyVectorEnv]) -> None:
        # Typed loosely: a list of seeds is accepted by the environments it is given to, not by the base class.
        self._env: Any = env
        self._rebuild = rebuild
        self.num_envs = env.num_envs
        self._mode = _autoreset_mode(env)
        self.autoreset = self._mode.name.lower()
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space
        self._view = view_of(env.single_observation_space)
        # Only gymnasium's own two are known to hand one seed to one lane.
        self.is_seeded = self._mode is AutoresetMode.DISABLED and isinstance(
            env.unwrapped, (SyncVectorEnv, AsyncVectorEnv)
        )
        self._filler = _filler(view_of(env.single_action_space), self.num_envs)
        self._everyone = list(range(self.num_envs))
        self._forget()

    def _forget(self) -> None:
        self._has_begun = False
        self._rolling: list[int] = []
        self._wanted: set[int] = set()
        self._observations: Batch = None
        self._reset_infos: Sequence[Info] | None = None

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Start new episodes; under NEXT_STEP those lanes come back in `started` of a later step.

        lanes: lane numbers. At the very first call every lane is reset.
        seeds: one a lane; only DISABLED environments that are known to take them do.
        """
        try:
            if self._has_begun:
                return self._restart(lanes, seeds)
            return self._begin(lanes, seeds)
        except Exception as error:
            failure = failure_from(error, "reset")
            self._renew()
            return LaneResets(lanes, None, [{}] * len(lanes), dict.fromkeys(range(len(lanes)), failure))

    def _begin(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        self._has_begun = True
        if self.is_seeded:
            each: list[int | None] = [None] * self.num_envs
            for lane, seed in zip(lanes, seeds, strict=True):
                each[lane] = seed
            observations, infos = self._env.reset(seed=each)
        else:
            observations, infos = self._env.reset(seed=seeds[0])
        self._keep(observations, infos)
        return self._firsts(lanes)

    def _restart(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        if self._mode is AutoresetMode.NEXT_STEP:
            self._wanted.update(lanes)
            return self._firsts([])
        if self._mode is AutoresetMode.DISABLED:
            self._reset_masked(dict(zip(lanes, seeds, strict=True)))
            return self._firsts(lanes)
        # An episode that was given up before its end goes on; the lane starts when it has ended by itself.
        self._wanted.update(lane for lane in lanes if lane not in self._rolling)
        return self._firsts([lane for lane in lanes if lane in self._rolling])

    def _reset_masked(self, seeds: dict[int, int | None]) -> None:
        """Reset some lanes of a DISABLED environment, those that nobody looks at among them."""
        mask = np.zeros(self.num_envs, np.bool_)
        mask[[*seeds, *self._rolling]] = True
        self._rolling = []
        options = {"reset_mask": mask}
        if self.is_seeded:
            each = [seeds.get(lane) for lane in self._everyone]
            observations, infos = self._env.reset(seed=each, options=options)
        else:
            observations, infos = self._env.reset(options=options)
        self._keep(observations, infos)

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step the whole vector, and return the given lanes' rows.

        actions: (R, ...) in the structure of the action space.
        lanes: R lane numbers; the others get a filler action.
        """
        try:
            return self._step(actions, lanes)
        except EnvironmentBuildError:
            raise
        except Exception as error:
            failure = failure_from(error, "step")
            waiting = sorted(self._wanted)
            self._renew()
            started = None
            if waiting:
                failures = dict.fromkeys(range(len(waiting)), failure)
                started = LaneResets(waiting, None, [{}] * len(waiting), failures)
            return LaneSteps(
                None, np.zeros(len(lanes)), [], None, dict.fromkeys(range(len(lanes)), failure), started
            )

    def _step(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        if self._mode is AutoresetMode.DISABLED and self._rolling:
            self._reset_masked({})
        is_everyone = len(lanes) == self.num_envs
        if not is_everyone:
            full = copy_batch(self._filler)
            if lanes:
                put_rows(full, list(lanes), actions)
            actions = full
        observations, rewards, terminated, truncated, infos = self._env.step(actions)
        rolled, self._rolling = self._rolling, []
        if self._mode is AutoresetMode.NEXT_STEP and rolled:
            _check_roll(rolled, rewards, terminated, truncated)
        done = np.logical_or(terminated, truncated)
        if _any(done):
            self._rolling = np.flatnonzero(done).tolist()
        self._keep(observations, infos)
        started = self._start_wanted(rolled) if self._wanted else None
        chosen = None if is_everyone else list(lanes)
        return self._rows(chosen, rewards, done, terminated, truncated, started)

    def _start_wanted(self, rolled: list[int]) -> LaneResets | None:
        fresh = rolled if self._mode is AutoresetMode.NEXT_STEP else self._rolling
        lanes = [lane for lane in fresh if lane in self._wanted]
        self._wanted.difference_update(lanes)
        return self._firsts(lanes) if lanes else None

    def _rows(
        self,
        chosen: list[int] | None,
        rewards: npt.NDArray[Any],
        done: npt.NDArray[np.bool_],
        terminated: npt.NDArray[np.bool_],
        truncated: npt.NDArray[np.bool_],
        started: LaneResets | None,
    ) -> LaneSteps:
        observations, infos = self._observations, self._reset_infos
        paid = np.array(rewards, np.float64)
        if chosen is not None:
            observations, paid, done = take_rows(observations, chosen), paid[chosen], done[chosen]
            terminated, truncated = terminated[chosen], truncated[chosen]
            infos = None if infos is None else [infos[lane] for lane in chosen]
        failures: dict[int, Failure] = {}
        # A sum of squares is finite only if every reward is; where it overflows, the look below finds nothing.
        if not isfinite(paid.dot(paid)):
            failures = {int(row): bad_reward(float(paid[row])) for row in np.flatnonzero(~np.isfinite(paid))}
        ended = [
            (row, bool(terminated[row]), bool(truncated[row]))
            for row in (np.flatnonzero(done).tolist() if self._rolling else ())
            if row not in failures
        ]
        if infos is not None and self._mode is AutoresetMode.SAME_STEP:
            infos = list(infos)
            for row, _, _ in ended:
                infos[row] = final_info(infos[row])
        return LaneSteps(observations, paid, ended, infos, failures, started)

    def _keep(self, observations: Any, infos: dict[str, Any]) -> None:
        # The environment may write into the same arrays at its next step; what we hand out may be kept.
        self._observations = _as_batch(self._view, observations)
        self._reset_infos = split_infos(infos, self.num_envs) if infos else None

    def _firsts(self, lanes: Sequence[int]) -> LaneResets:
        infos = self._reset_infos
        return LaneResets(
            lanes,
            take_rows(self._observations, list(lanes)),
            [{} if infos is None else _without_final(infos[lane]) for lane in lanes],
        )

    def _renew(self) -> None:
        with contextlib.suppress(Exception):  # what is broken may not even close
            self._env.close()
        self._env = self._rebuild()
        self._forget()

    def close(self) -> None:
        """Close the vector environment."""
        self._env.close()


def _any(flags: npt.NDArray[np.bool_]) -> bool:
    # Several times faster than `any` of numpy.
    return b"\x01" in flags.tobytes()


def _autoreset_mode(env: AnyVectorEnv) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    if isinstance(mode, AutoresetMode):
        return mode
    by_name = {known.name: known for known in AutoresetMode} | {known.value: known for known in AutoresetMode}
    if isinstance(mode, str) and mode in by_name:
        return by_name[mode]
    raise EnvironmentBuildError(
        f"{type(env.unwrapped).__name__} does not say how it resets: metadata['autoreset_mode'] is {mode!r}",
        where="vector environment",
        mend="set it to AutoresetMode.NEXT_STEP, SAME_STEP or DISABLED; a guess would count wrong steps",
    )


def _check_roll(lanes: list[int], rewards: Any, terminated: Any, truncated: Any) -> None:
    """A reset step pays nothing and ends nothing; otherwise the environment has another mode than it says."""
    for lane in lanes:
        if float(rewards[lane]) != 0.0 or terminated[lane] or truncated[lane]:
            raise EnvironmentBuildError(
                f"lane {lane} paid {float(rewards[lane])} (terminated {bool(terminated[lane])}, truncated "
                f"{bool(truncated[lane])}) on the step that should have reset it",
                where="vector environment, autoreset mode NEXT_STEP",
                mend="correct metadata['autoreset_mode'] of the environment",
            )


def _filler(view: SpaceView, num_lanes: int) -> Batch:
    return map_leaves(lambda leaf: np.repeat(np.asarray(leaf)[None], num_lanes, axis=0), zero_value(view))


def _as_batch(view: SpaceView, observations: Any) -> Batch:
    if view.kind == "dict":
        return {name: _as_batch(child, observations[name]) for name, child in view.children}
    if view.kind == "tuple":
        return tuple(_as_batch(child, observations[position]) for position, (_, child) in enumerate(view.children))
    # In rows, whatever order the environment keeps them in: everything that comes after goes row by row.
    return np.array(observations, view.dtype, order="C") if view.is_array else list(observations)


def _without_final(info: Info) -> Info:
    return {
        key: value for key, value in info.items() if key not in ("final_info", "final_obs", "final_observation")
    }
