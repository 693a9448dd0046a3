"""A vector environment as other people write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from env_fakes import Tape
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


class TapeVec(VectorEnv[Any, Any, Any]):
    """Somebody else's vector environment: lane i's k-th episode is tape number `100 i + k`, whatever the seed.

    Every array it returns is its own buffer, overwritten at the next call.

    mode: what it says in its metadata; None says nothing. behaves: what it does, if that is something else.
    change: gets lane, tape and the observation, reward and info of a step, and returns all three.
    """

    def __init__(
        self,
        num_envs: int = 2,
        mode: AutoresetMode | str | None = AutoresetMode.NEXT_STEP,
        behaves: AutoresetMode | None = None,
        change: Callable[[int, Tape, Any], Any] | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        self.metadata = {} if mode is None else {"autoreset_mode": mode}
        self.num_envs = num_envs
        self._does = behaves or (AutoresetMode(mode) if mode else AutoresetMode.NEXT_STEP)
        self._change, self._limit = change, max_episode_steps
        self.tapes = [Tape() for _ in range(num_envs)]
        self.begun = [0] * num_envs
        self.actions: list[Any] = []
        self.single_observation_space, self.single_action_space = Tape.observation_space, Tape.action_space
        self.observation_space = batch_space(Tape.observation_space, num_envs)
        self.action_space = batch_space(Tape.action_space, num_envs)
        self._rows = np.zeros((num_envs, 3), np.float32)
        self._rewards = np.zeros(num_envs)
        self._flags = np.zeros((2, num_envs), np.bool_)

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        mask = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        infos: dict[str, Any] = {}
        for lane in np.flatnonzero(mask).tolist():
            infos = self._add_info(infos, self._begin(lane), lane)
        return self._rows, infos

    def _begin(self, lane: int) -> dict[str, Any]:
        self._rows[lane], info = self.tapes[lane].reset(seed=100 * lane + self.begun[lane])
        self.begun[lane] += 1
        self._flags[:, lane] = False
        self._rewards[lane] = 0.0
        return info

    def step(self, actions: Any) -> Any:
        self.actions.append(np.array(actions))
        infos: dict[str, Any] = {}
        for lane, action in enumerate(actions):
            is_over = bool(self._flags[:, lane].any())
            if is_over and self._does is AutoresetMode.NEXT_STEP:
                infos = self._add_info(infos, self._begin(lane), lane)
                continue
            assert not (is_over and self._does is AutoresetMode.DISABLED), f"lane {lane} was not reset"
            info = self._play(lane, action)
            if self._does is AutoresetMode.SAME_STEP and self._flags[:, lane].any():
                last = {"final_obs": self._rows[lane].copy(), "final_info": info}
                infos = self._add_info(infos, last, lane)
                reward, flags = self._rewards[lane], self._flags[:, lane].copy()
                info = self._begin(lane)
                self._rewards[lane], self._flags[:, lane] = reward, flags
            infos = self._add_info(infos, info, lane)
        return self._rows, self._rewards, *self._flags, infos

    def _play(self, lane: int, action: Any) -> dict[str, Any]:
        tape = self.tapes[lane]
        observation, reward, terminated, truncated, info = tape.step(action)
        if self._change is not None:
            observation, reward, info = self._change(lane, tape, (observation, reward, info))
        self._rows[lane], self._rewards[lane] = observation, reward
        self._flags[:, lane] = terminated, truncated or (self._limit is not None and tape.time >= self._limit)
        return info


def make_vector(num_envs: int) -> TapeVec:
    """Return a vector environment; how many lanes it has must be said."""
    return TapeVec(num_envs)
