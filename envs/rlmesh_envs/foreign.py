"""Foreign vector environments, with an autoreset of their own, read as lanes.

They step in lockstep, so a lane without an episode is stepped with a filler action and not looked at.
Axes: N lanes, R looked-at lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv
from gymnasium.vector.async_vector_env import AsyncState

from rlmesh_adapters.batches import Batch, BatchLayout, copy_batch, map_leaves, put_rows, take_rows
from rlmesh_adapters.errors import (
    NO_FAILURES,
    EnvironmentBuildError,
    Failure,
    failure_from,
    faults_suppressed,
    is_fault,
)
from rlmesh_adapters.spaces import SpaceView, zero_value

from .autoresets import autoreset_mode, check_roll, without_final
from .infos import split_infos
from .lane_envs import Limit
from .sights import as_batch, first_row
from .spaces import view_of
from .steps import Info, LaneResets, LaneSteps, bad_reward, check_info

_TOGETHER = "all lanes of a vector environment fail together"
_TOGETHER_OURS = f"{_TOGETHER}; without --autoreset only the one that raised does"

AnyVectorEnv = VectorEnv[Any, Any, Any]


class ForeignLanes:
    """The lanes of a vector environment that we did not make.

    NEXT_STEP: the step after an episode's end resets; its action, reward and flags are ignored, and the lane
    starts with it. SAME_STEP: the last step already returns the next episode's first observation. DISABLED:
    `reset` with a `reset_mask`.

    env: the vector environment.
    rebuild: builds it anew, after a step or reset raised. limit: as of LaneSet.

    Raises EnvironmentBuildError if it does not say which autoreset mode it has.
    """

    def __init__(self, env: AnyVectorEnv, rebuild: Callable[[], AnyVectorEnv], limit: Limit | None = None) -> None:
        # Typed loosely: a list of seeds is taken by the environments it is given to, not by the base class.
        self._env: Any = env
        self._rebuild, self._within = rebuild, limit
        self.num_envs = env.num_envs
        self._mode = autoreset_mode(env)
        self.autoreset = self._mode.name.lower()
        self.single_observation_space = env.single_observation_space
        self.single_action_space = env.single_action_space
        self._layout = BatchLayout(view_of(env.single_observation_space))
        self._shape = (self.num_envs, *self._layout.shape)
        # Only gymnasium's own two are known to reset one lane alone, and to hand it a seed.
        self._is_gymnasium = isinstance(env.unwrapped, (SyncVectorEnv, AsyncVectorEnv))
        self.is_seeded = self._mode is AutoresetMode.DISABLED and self._is_gymnasium
        self._filler = _filler(view_of(env.single_action_space), self.num_envs)
        self._everyone = tuple(range(self.num_envs))
        # The sequence that was last found to be all lanes in order.
        self._last_everyone: Sequence[int] = self._everyone
        self._has_looked = False
        # What is lost when a reset raises: the others' episodes until their lanes are reset, and the beginnings
        # that lanes were waiting for until they have been told.
        self._lost: dict[int, Failure] = {}
        self._stranded: dict[int, Failure] = {}
        self._forget()

    def _forget(self) -> None:
        within = self._within
        self._call_reset = self._env.reset if within is None else within(self._env.reset, "reset")
        self._call_step = self._env.step if within is None else within(self._env.step, "step")
        self._has_begun = False
        self._rolling: list[int] = []
        self._wanted: set[int] = set()
        self._observations: Batch = None
        self._infos: Sequence[Info] | None = None
        self._casts = ""
        self._failure: Failure | None = None

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Start new episodes; under NEXT_STEP those lanes come back in `started` of a later step.

        lanes: lane numbers. At the very first call every lane is reset.
        seeds: one a lane; only DISABLED environments that are known to take them do.
        """
        for lane in lanes:
            self._lost.pop(lane, None)
        try:
            if self._failure is not None:
                self._renew()
            return self._restart(lanes, seeds) if self._has_begun else self._begin(lanes, seeds)
        except BaseException as error:
            if not is_fault(error):
                raise
            self._failure = failure = failure_from(error, "reset")
        # The next reset builds the environment anew, and the other lanes' episodes end where they are.
        self._lost.update({lane: failure for lane in self._everyone if lane not in lanes})
        self._stranded.update(dict.fromkeys(sorted(self._wanted.difference(lanes)), failure))
        self._wanted.clear()
        return _all_failed(lanes, failure)

    def _begin(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        if self.is_seeded:
            known = dict(zip(lanes, seeds, strict=True))
            observations, infos = self._call_reset(seed=[known.get(lane) for lane in self._everyone])
        else:
            observations, infos = self._call_reset(seed=seeds[0])
        self._has_begun = True
        self._keep(observations, infos)
        return self._firsts(lanes)

    def _restart(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        if self._mode is AutoresetMode.DISABLED:
            self._reset_alone(dict(zip(lanes, seeds, strict=True)))
            return self._firsts(lanes)
        # An episode that was given up before its end: it is reset alone where that is known to work, else it
        # goes on, and the lane starts when it has ended by itself.
        ended = set(self._rolling)
        given_up = [lane for lane in lanes if lane not in ended]
        if given_up and self._is_gymnasium:
            self._reset_alone(dict.fromkeys(given_up))
            started = given_up
        else:
            self._wanted.update(given_up)
            started = []
        if self._mode is AutoresetMode.NEXT_STEP:
            self._wanted.update(ended.intersection(lanes))
        else:
            ended.update(started)
            started = [lane for lane in lanes if lane in ended]
        return self._firsts(started)

    def _reset_alone(self, seeds: dict[int, int | None]) -> None:
        """Reset some lanes and no other."""
        mask = np.zeros(self.num_envs, np.bool_)
        mask[list(seeds)] = True
        self._rolling = [lane for lane in self._rolling if lane not in seeds]
        options = {"reset_mask": mask}
        if self._is_gymnasium:
            each = [seeds.get(lane) for lane in self._everyone]
            observations, infos = self._call_reset(seed=each, options=options)
        else:
            observations, infos = self._call_reset(options=options)
        before = self._infos
        self._keep(observations, infos)
        if before is not None:  # what other lanes began with may not have been asked for yet
            fresh = self._infos
            self._infos = [
                before[lane] if lane not in seeds else {} if fresh is None else fresh[lane]
                for lane in self._everyone
            ]

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step the whole vector, and return the given lanes' rows.

        actions: (R, ...) in the structure of the action space.
        lanes: R lane numbers; the others get a filler action.

        Raises EnvironmentBuildError where it turns out to reset in another way than it says.
        """
        if self._lost or self._stranded:
            return self._step_after_loss(actions, lanes)
        return self._try_step(actions, lanes)

    def _step_after_loss(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Fail the episodes that a failed reset took with it; step if any lane began after that."""
        failures = {row: self._lost[lane] for row, lane in enumerate(lanes) if lane in self._lost}
        if len(failures) < len(lanes):
            steps = self._try_step(actions, lanes)
            failures = {**steps.failures, **failures}
        else:
            steps = LaneSteps(None, np.zeros(len(lanes)), [])
        steps.failures = failures
        steps.ended = [end for end in steps.ended if end[0] not in failures]
        if self._stranded and steps.started is None:
            told, self._stranded = self._stranded, {}
            steps.started = _failed(told)
        return steps

    def _try_step(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        waiting = sorted(self._wanted) if self._wanted else []
        try:
            return self._step(actions, lanes)
        except EnvironmentBuildError:
            raise
        except BaseException as error:
            if not is_fault(error):
                raise
            # One exception ends a vector environment: all its episodes fail, and the next reset builds it anew.
            failure = failure_from(error, "step")
            mend = failure.mend or (_TOGETHER_OURS if self._is_gymnasium else _TOGETHER)
            self._failure = failure = msgspec.structs.replace(failure, mend=mend)
            started = _all_failed(waiting, failure) if waiting else None
            failures = dict.fromkeys(range(len(lanes)), failure)
            return LaneSteps(None, np.zeros(len(lanes)), [], None, failures, started)

    def _step(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        if self._mode is AutoresetMode.DISABLED and self._rolling:
            # Lanes that nobody looks at any more; stepping one that has ended is not allowed.
            self._reset_alone(dict.fromkeys(self._rolling))
        is_everyone = lanes is self._last_everyone or tuple(lanes) == self._everyone
        if is_everyone and isinstance(lanes, tuple):
            self._last_everyone = lanes
        # A copy either way: the environment may write into its actions.
        if is_everyone:
            actions = actions.copy() if actions.__class__ is np.ndarray else copy_batch(actions)
        else:
            full = copy_batch(self._filler)
            if lanes:
                put_rows(full, list(lanes), actions)
            actions = full
        observations, rewards, terminated, truncated, infos = self._call_step(actions)
        rolled, self._rolling = self._rolling, []
        if self._mode is AutoresetMode.NEXT_STEP and rolled:
            check_roll(rolled, rewards, terminated, truncated)
        terminated, truncated = np.asarray(terminated, np.bool_), np.asarray(truncated, np.bool_)
        done = terminated | truncated
        paid = _rewards(rewards, self.num_envs)
        if _any(done):
            self._rolling = np.flatnonzero(done).tolist()
        self._keep(observations, infos)
        started = self._start_wanted(rolled) if self._wanted else None
        if is_everyone and not self._rolling and _are_finite(paid):
            return LaneSteps(self._observations, paid, [], self._infos, NO_FAILURES, started)
        chosen = None if is_everyone else list(lanes)
        return self._read(chosen, paid, (done, terminated, truncated), started)

    def _start_wanted(self, rolled: list[int]) -> LaneResets | None:
        fresh = rolled if self._mode is AutoresetMode.NEXT_STEP else self._rolling
        lanes = [lane for lane in fresh if lane in self._wanted]
        self._wanted.difference_update(lanes)
        return self._firsts(lanes) if lanes else None

    def _read(
        self,
        chosen: list[int] | None,
        paid: npt.NDArray[np.float64],
        flags: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.bool_]],
        started: LaneResets | None,
    ) -> LaneSteps:
        """Return what the step gave the chosen lanes; None is all of them."""
        done, terminated, truncated = flags
        observations, infos = self._observations, self._infos
        if chosen is not None:
            observations, paid, done = take_rows(observations, chosen), paid[chosen], done[chosen]
            terminated, truncated = terminated[chosen], truncated[chosen]
            infos = None if infos is None else [infos[lane] for lane in chosen]
        failures: dict[int, Failure] = {}
        if not _are_finite(paid):
            failures = {int(row): bad_reward(float(paid[row])) for row in np.flatnonzero(~np.isfinite(paid))}
        ended = [
            (row, bool(terminated[row]), bool(truncated[row]))
            for row in (np.flatnonzero(done).tolist() if self._rolling else ())
            if row not in failures
        ]
        finals: dict[int, Any] | None = {} if self._mode is AutoresetMode.SAME_STEP and ended else None
        if infos is not None and self._mode is AutoresetMode.SAME_STEP:
            # What else stands in the info of an ended lane is the next episode's.
            infos = list(infos)
            for row in np.flatnonzero(done).tolist():
                final = infos[row].get("final_info")
                if finals is not None and "final_obs" in infos[row]:
                    finals[row] = infos[row]["final_obs"]
                infos[row] = final if isinstance(final, dict) else {}
        return LaneSteps(observations, paid, ended, infos, failures, started, finals)

    def _keep(self, observations: Any, infos: Any) -> None:
        # The environment may write into the same arrays at its next step; what we hand out may be kept.
        if (
            self._layout.is_array
            and observations.__class__ is np.ndarray
            and observations.dtype == self._layout.dtype
            and observations.shape == self._shape
        ):
            self._observations = observations.copy("K")
        else:
            self._observations = as_batch(self._layout.view, observations, self.num_envs)
        if not self._has_looked:
            self._has_looked = True
            self._casts = self._layout.casts(first_row(self._layout.view, observations))
        self._infos = split_infos(check_info(infos), self.num_envs) if infos else None

    def _firsts(self, lanes: Sequence[int]) -> LaneResets:
        infos = self._infos
        casts, self._casts = self._casts, ""
        return LaneResets(
            lanes,
            take_rows(self._observations, list(lanes)),
            [{} if infos is None else without_final(infos[lane]) for lane in lanes],
            casts=casts,
        )

    def _renew(self) -> None:
        self.close()
        self._env = self._rebuild()
        self._forget()

    def close(self) -> None:
        """Close the vector environment; workers that are in the middle of something are not waited for.

        What it raises then takes nothing away from what was played.
        """
        with faults_suppressed():
            self._close()

    def _close(self) -> None:
        vector = self._env.unwrapped
        if isinstance(vector, AsyncVectorEnv) and vector._state is not AsyncState.DEFAULT:
            for process in vector.processes:
                process.kill()
                process.join()
            vector._state = AsyncState.DEFAULT  # nobody is left who could answer
            self._env.close(terminate=True)
            return
        self._env.close()


def _all_failed(lanes: Sequence[int], failure: Failure) -> LaneResets:
    return _failed(dict.fromkeys(lanes, failure))


def _failed(failures: Mapping[int, Failure]) -> LaneResets:
    """Return resets that failed, given as lane -> why."""
    return LaneResets(list(failures), None, [{} for _ in failures], dict(enumerate(failures.values())))


def _rewards(rewards: Any, num_lanes: int) -> npt.NDArray[np.float64]:
    """Return one float64 number a lane, in memory of our own."""
    paid = np.array(rewards, np.float64)
    if paid.shape != (num_lanes,):
        if paid.size != num_lanes:
            raise ValueError(f"the rewards have shape {paid.shape}, expected ({num_lanes},)")
        paid = paid.reshape(num_lanes)
    return paid


def _are_finite(paid: npt.NDArray[np.float64]) -> bool:
    return b"\x00" not in np.isfinite(paid).tobytes()


def _any(flags: npt.NDArray[np.bool_]) -> bool:
    # Several times faster than `any` of numpy.
    return b"\x01" in flags.tobytes()


def _filler(view: SpaceView, num_lanes: int) -> Batch:
    """Return N actions for lanes that nobody looks at."""
    try:
        zero = zero_value(view)
    except TypeError as error:
        raise EnvironmentBuildError(
            f"actions of {view} are not supported", where="action space", mend="use array actions"
        ) from error
    return map_leaves(lambda leaf: np.repeat(np.asarray(leaf)[None], num_lanes, axis=0), zero)
