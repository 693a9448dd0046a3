"""LaneEnvs: the environments of a set of lanes - built, called within limits, built anew when broken, closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym

from rlmesh_adapters.errors import EnvironmentBuildError, faults_suppressed

from .first_looks import Step
from .pixels import SkippingSteps
from .shortcuts import shortcut
from .spaces import check_alike

EnvBuilder = Callable[[], gym.Env[Any, Any]]
#: Takes a function and its name, returns what is called in its place.
Limit = Callable[[Callable[..., Any], str], Callable[..., Any]]


class LaneEnvs:
    """N environments of one kind, and what each lane is stepped and reset through.

    builders, limit: see LaneSet.
    envs: the environments, in lane order. steps: what steps each, past wrappers that only look on. most: its time
        limit in steps, infinite where there is none. is_broken: whether it is built anew before its next episode.
    skipping: which of them need not render, see SkippingSteps.

    Raises EnvironmentBuildError if the lanes' spaces differ, or two lanes are one object.
    """

    def __init__(self, builders: Sequence[EnvBuilder], limit: Limit | None) -> None:
        self._builders, self._within = list(builders), limit
        self.envs: list[gym.Env[Any, Any]] = []
        try:
            for build in self._builders:
                self.envs.append(build())
            self._check_spaces()
        except BaseException:
            self.close()
            raise
        count = len(self.envs)
        self.skipping = SkippingSteps()
        self.steps: list[Step] = []
        self.most: list[float] = []
        for lane, env in enumerate(self.envs):
            inner, most = shortcut(env)
            self.most.append(most)
            self.steps.append(self._limited(self.skipping.step_of(lane, env, inner.step), "step"))
        # The first reset goes through every wrapper, later ones where steps go.
        self._resets = [self._limited(env.reset, "reset") for env in self.envs]
        self._is_fresh = [True] * count
        self.is_broken = [False] * count
        self._guard: Callable[[Step], Step] | None = None

    def _check_spaces(self) -> None:
        if len({id(env) for env in self.envs}) < len(self.envs):
            raise EnvironmentBuildError(
                f"{len(self.envs)} lanes were built from one and the same environment object",
                where="environment",
                mend="return a new environment each time it is built",
            )
        check_alike(dict(enumerate(self.envs)))

    def reset(self, lane: int, **options: Any) -> Any:
        """Reset an environment and return its answer as it came; raises what the environment raises."""
        if self.skipping.has_any:
            self.skipping.want_whole(lane)
        answer = self._resets[lane](**options)
        if self._is_fresh[lane]:
            inner, _ = shortcut(self.envs[lane])
            self._resets[lane] = self._limited(inner.reset, "reset")
            self._is_fresh[lane] = False
        return answer

    def guard(self, guarded: Callable[[Step], Step]) -> None:
        """Step every environment through something more from now on; a second time changes nothing."""
        if self._guard is None:
            self._guard = guarded
            self.steps = list(map(guarded, self.steps))

    def rebuild(self, lane: int) -> None:
        """Put a new environment in the place of a broken one; raises what building it raises."""
        with faults_suppressed():  # what is broken may not even close
            self._limited(self.envs[lane].close, "close")()
        env = self.envs[lane] = self._builders[lane]()
        inner, self.most[lane] = shortcut(env)
        step = self._limited(self.skipping.step_of(lane, env, inner.step), "step")
        self.steps[lane] = step if self._guard is None else self._guard(step)
        self._resets[lane] = self._limited(env.reset, "reset")
        self._is_fresh[lane] = True
        self.is_broken[lane] = False

    def _limited(self, call: Callable[..., Any], name: str) -> Callable[..., Any]:
        return call if self._within is None else self._within(call, name)

    def close(self) -> None:
        """Close every environment; one that cannot be closed does not stop the others."""
        for env in self.envs:
            with faults_suppressed():
                self._limited(env.close, "close")()
