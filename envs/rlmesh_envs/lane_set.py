"""LaneSet: environments in this process, each lane stepped and seeded on its own.

Axes: N lanes, R stepped lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
from numpy import ndarray

from rlmesh_adapters.batches import Batch, BatchLayout, copy_batch, iterate_rows
from rlmesh_adapters.errors import Failure, failure_from, is_fault

from .first_looks import FirstLooks
from .infos import own_info
from .lane_envs import EnvBuilder, LaneEnvs, Limit
from .spaces import view_of
from .steps import (
    Info,
    LaneResets,
    LaneSteps,
    bad_reward,
    check_info,
    reset_pair,
    scalar_reward,
    step_failure,
)


class LaneSet:
    """N environments of one kind, stepped in this process.

    `reset_lanes` and `step_lanes` touch only the lanes they are given, keep each lane's info as it came, and turn
    an exception of one lane into a failure of that lane: its environment is built anew before its next episode.

    builders: N functions that each build one environment.
    limit: what `step` and `reset` of an environment are called through, such as one that ends those that hang.

    Raises EnvironmentBuildError if the lanes' spaces differ, or two lanes are one object.
    """

    def __init__(self, builders: Sequence[EnvBuilder], limit: Limit | None = None) -> None:
        self._kept = LaneEnvs(builders, limit)
        #: In lane order; what is broken is replaced.
        self.envs = self._kept.envs
        self.num_envs = len(self.envs)
        first = self.envs[0]
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.layout = BatchLayout(view_of(first.observation_space))
        self._is_array = self.layout.is_array
        self._allocate: Callable[[int], Batch] = self.layout.allocate
        self._dtype = self.layout.dtype
        action = view_of(first.action_space)
        # Whether actions come as one array, so that the first row is the first element.
        self._is_flat = action.is_array
        # Rows that are arrays are views of the caller's batch, which an environment might write into.
        self._copies_actions = not (action.is_array and action.shape == ())
        self._has_looked = False
        #: The first exception since this was set to None, for those who want it raised.
        self.first_error: BaseException | None = None
        # Until every lane has stepped once; a lone lane shares nothing.
        self._looks: FirstLooks | None = FirstLooks(self.num_envs) if self.num_envs > 1 else None
        # The company is who stepped together last. A lane's age is the count of company steps since its
        # birth; while it is not of the company, its birth is kept as a negative age.
        self._company: tuple[int, ...] = ()
        self._rows: dict[int, int] = {}
        self._together = 0
        self._birth = [0] * self.num_envs
        self._until: float = inf
        self._steppers: list[Callable[[Any], Any]] = []
        self._batch_shape: tuple[int, ...] = ()
        self._batch_ndim = 1
        self._is_lone = False

    def write_into(self, allocate: Callable[[int], Batch]) -> None:
        """Let steps write what they see into batches that `allocate` returns for a number of rows.

        Small arrays are still batches of their own: it takes longer to fill one row by row than to copy it.
        """
        self._allocate = allocate
        row = self.layout.allocate(1)
        self._is_array = self._is_array and row.nbytes < _LARGE

    def reset_lanes(
        self, lanes: Sequence[int], seeds: Sequence[int | None], options: dict[str, Any] | None = None
    ) -> LaneResets:
        """Reset the given lanes, each with its own seed.

        lanes: lane numbers, each once.
        seeds: as many, None draws from entropy.
        options: of every reset, None gives none.
        """
        kept = self._kept
        more: dict[str, Any] = {} if options is None else {"options": options}
        observations = self.layout.allocate(len(lanes))
        infos: list[Info] = []
        failures: dict[int, Failure] = {}
        casts = ""
        for row, (lane, seed) in enumerate(zip(lanes, seeds, strict=True)):
            info: Info | None = None
            try:
                if kept.is_broken[lane]:
                    self._rebuild(lane)
                observation, info = reset_pair(kept.reset(lane, seed=seed, **more))
                self.layout.write(observations, row, observation)
                if info is not None:
                    check_info(info)
                    info = info if len(lanes) == 1 else own_info(info)
                if not self._has_looked:
                    self._has_looked, casts = True, self.layout.casts(observation)
            except BaseException as error:
                if not is_fault(error):
                    raise
                failures[row] = failure_from(error, "reset")
                self._kept.is_broken[lane] = True
                self.first_error = error if self.first_error is None else self.first_error
                info = None
            self._birth[lane] = self._together if lane in self._rows else 0
            infos.append({} if info is None else info)
        return LaneResets(lanes, observations, infos, failures, casts)

    def _look(self, looks: FirstLooks) -> None:
        """See whether the company's lanes showed what they saw in their first step in one and the same array."""
        if not looks.awaits(self._company):
            return
        looks.settle(self._company)
        if looks.finds_sharing:
            self._kept.guard(looks.guarded)
        self._steppers = [self._kept.steps[lane] for lane in self._company]
        if looks.is_over:
            self._looks = None

    def step_lanes(self, actions: Batch, lanes: Sequence[int], unread: Sequence[bool] | None = None) -> LaneSteps:
        """Step the given lanes and no other.

        actions: (R, ...), one action a given lane, in the structure of the action space.
        lanes: R lane numbers; the same tuple as at the last step is the cheapest.
        unread: (R,) whose observation nobody will read, so that environments that offer it need not render; None
            is nobody's.
        """
        if lanes is not self._company:
            self._regroup(lanes)
        if unread is not None:
            self._kept.skipping.want(lanes, unread)
        if self._copies_actions:
            actions = copy_batch(actions)
        self._together += 1
        if self._is_lone and self._together < self._until:
            return self._step_lone(actions[0])
        rows = actions if actions.__class__ is np.ndarray else iterate_rows(actions, len(lanes))
        if len(rows) != len(lanes):
            raise ValueError(f"{len(rows)} actions for {len(lanes)} lanes")
        seen: list[Any] = []
        rewards: list[float] = []
        infos: list[Info] | None = None
        ended: list[tuple[int, bool, bool]] = []
        failures: dict[int, Failure] = {}
        # They are as many; being strict would ask the array for one more row, and its error is not free.
        pairs = zip(self._steppers, rows, strict=False)
        while True:
            try:
                for step, action in pairs:
                    observation, reward, terminated, truncated, info = step(action)
                    # The row is the count of what was seen before it.
                    if terminated or truncated:
                        ended.append((len(seen), bool(terminated), bool(truncated)))
                    if info:
                        if infos is None:
                            infos = [{} for _ in lanes]
                        infos[len(seen)] = own_info(check_info(info))
                    if reward.__class__ is ndarray:  # which the next lane's step may write into
                        reward = reward.copy()
                    seen.append(observation)
                    rewards.append(reward)
                break
            except BaseException as error:
                if not is_fault(error):
                    raise
                self._fail(failures, len(seen), error)
                seen.append(_MISSING)
                rewards.append(0.0)
        if self._looks is not None:
            self._look(self._looks)
        if not failures and self._is_array:
            # Unlike storing into a row, stacking does not repeat a short value: one look at the whole is enough.
            try:
                # From a float on: whole numbers that none can hold do not cancel out before they are found.
                total = sum(rewards, 0.0)
                if total.__class__ is np.float64 and _FLOATS.issuperset(map(type, rewards)):
                    rewards = list(map(float, rewards))
                    total = float(total)
                batch = np.array(seen)
                if (
                    total.__class__ is float
                    and isfinite(total)
                    and batch.dtype == self._dtype
                    and batch.shape == self._batch_shape
                ):
                    if self._together >= self._until:
                        ended = self._with_late(ended)
                    return LaneSteps(batch, rewards, ended, infos, failures)
            except Exception:  # whose fault it is shows below, lane by lane
                pass
        return self._conclude(seen, rewards, infos, ended, failures)

    def _step_lone(self, action: Any) -> LaneSteps:
        """Step a single lane; what is usual goes past the lists that several lanes need."""
        failures: dict[int, Failure] = {}
        ended, infos = [], None
        try:
            observation, reward, terminated, truncated, info = self._steppers[0](action)
            if terminated or truncated:
                ended.append((0, bool(terminated), bool(truncated)))
            if info:
                infos = [check_info(info)]
        except BaseException as error:
            if not is_fault(error):
                raise
            self._fail(failures, 0, error)
            return self._conclude([_MISSING], [0.0], None, [], failures)
        if self._looks is not None:
            self._look(self._looks)
        if reward.__class__ is np.float64:
            reward = float(reward)
        if (
            reward.__class__ is float
            and isfinite(reward)
            and observation.__class__ is np.ndarray
            and observation.shape == self.layout.shape
            and observation.dtype == self._dtype
        ):
            # A copy with an axis in front.
            return LaneSteps(np.array(observation, ndmin=self._batch_ndim), [reward], ended, infos, failures)
        return self._conclude([observation], [reward], infos, ended, failures)

    def _conclude(
        self,
        seen: list[Any],
        rewards: Sequence[Any],
        infos: list[Info] | None,
        ended: list[tuple[int, bool, bool]],
        failures: dict[int, Failure],
    ) -> LaneSteps:
        """Turn what the company's lanes gave into one record, fault by fault."""
        plain = self._plain_rewards(rewards, failures)
        if self._together >= self._until:
            ended = self._with_late(ended)
        observations = self._stack(seen, failures)
        if failures:
            ended = [end for end in ended if end[0] not in failures]
        return LaneSteps(observations, plain, ended, infos, failures)

    def _fail(self, failures: dict[int, Failure], row: int, error: BaseException) -> None:
        failures[row] = step_failure(error)
        self._kept.is_broken[self._company[row]] = True
        self.first_error = error if self.first_error is None else self.first_error

    def _plain_rewards(self, rewards: Sequence[Any], failures: dict[int, Failure]) -> list[float]:
        """Return the rewards as finite floats; one that is none fails its lane."""
        plain = [0.0] * len(rewards)
        for row, reward in enumerate(rewards):
            if row in failures:
                continue
            try:
                paid = scalar_reward(reward)
            except BaseException as error:  # a reward of the user's own type may raise anything
                if not is_fault(error):
                    raise
                self._fail(failures, row, error)
                continue
            if isfinite(paid):
                plain[row] = paid
            else:
                failures[row] = bad_reward(paid)
                self._kept.is_broken[self._company[row]] = True
        return plain

    def _with_late(self, ended: list[tuple[int, bool, bool]]) -> list[tuple[int, bool, bool]]:
        """Add the lanes that are at their time limit; one may end by itself in the same step."""
        # Resets move births forward without moving this moment, so it may have come too early.
        self._set_until()
        terminated = {row: flag for row, flag, _ in ended}
        late = [
            (row, terminated.get(row, False), True)
            for row, lane in enumerate(self._company)
            if self._together - self._birth[lane] >= self._kept.most[lane]
        ]
        rows = {row for row, _, _ in late}
        return sorted(late + [end for end in ended if end[0] not in rows])

    def _stack(self, seen: list[Any], failures: dict[int, Failure]) -> Batch:
        """Return the lanes' observations as one batch, cast where they must be; a misfit fails its lane."""
        observations = self._allocate(len(seen))
        for row, observation in enumerate(seen):
            if observation is not _MISSING:
                try:
                    self.layout.write(observations, row, observation)
                except BaseException as error:
                    if not is_fault(error):
                        raise
                    self._fail(failures, row, error)
        return observations

    def _set_until(self) -> None:
        """See at which company step a time limit is due next, at the earliest at the next step."""
        due = [self._birth[lane] + self._kept.most[lane] for lane in self._company]
        self._until = max(min(due, default=inf), self._together + 1)

    def _regroup(self, lanes: Sequence[int]) -> None:
        """Make some lanes the company that steps together."""
        for lane in self._company:
            self._birth[lane] -= self._together
        # A list may change behind our back, so it is grouped anew at every step.
        self._company = lanes if isinstance(lanes, tuple) else tuple(lanes)
        self._rows = {lane: row for row, lane in enumerate(lanes)}
        self._together = 0
        self._set_until()
        looks = self._looks
        self._steppers = [
            self._kept.steps[lane] if looks is None else looks.watched(lane, self._kept.steps[lane])
            for lane in lanes
        ]
        self._batch_shape = (len(lanes), *self.layout.shape)
        self._batch_ndim = len(self._batch_shape)
        self._is_lone = len(lanes) == 1 and self._is_array and self._is_flat

    def _rebuild(self, lane: int) -> None:
        self._kept.rebuild(lane)
        if lane in self._rows:
            self._steppers[self._rows[lane]] = self._kept.steps[lane]

    def close_lanes(self) -> None:
        """Close every environment; one that cannot be closed does not stop the others."""
        self._kept.close()


_MISSING = object()
_FLOATS = frozenset((float, np.float64))
# Bytes of a row from which on a second copy takes longer than what a row by itself costs.
_LARGE = 4096
