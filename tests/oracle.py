"""The independent answer: one `gymnasium.make` environment, one episode at a time, one policy an episode."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

Row = dict[str, Any]


def play_alone(
    env_id: str,
    make_policy: Callable[[], Any],
    seeds: Sequence[int],
    *,
    horizon: int = 1,
    max_steps: int | None = None,
    metrics: Sequence[str] = (),
    **kwargs: Any,
) -> list[Row]:
    """Return the rows of `episodes.jsonl` that do not depend on the arrangement, without hashes."""
    options = {} if max_steps is None else {"max_episode_steps": max_steps}
    rows = []
    for index, seed in enumerate(seeds):
        env = gym.make(env_id, disable_env_checker=True, **options, **kwargs)
        try:
            row = _episode(env, make_policy(), seed, horizon, metrics)
        finally:
            env.close()
        rows.append({"index": index, "seed": seed, "episode_id": f"ep-{index + 1:06d}", **row})
    return rows


def _episode(env: gym.Env, policy: Any, seed: int, horizon: int, metrics: Sequence[str]) -> Row:
    flags: list[bool] = []
    reported: dict[str, float] = {}
    total, length, calls, clipped, planned = 0.0, 0, 0, 0, 0
    terminated = truncated = False
    at_reset = error = None
    queue: list[Any] = []
    try:
        obs, info = env.reset(seed=seed)
        at_reset = info.get("is_success")
    except Exception as reason:
        error = _error("reset", None, reason)
    while error is None and not (terminated or truncated):
        if not queue:
            calls += 1
            try:
                chunk = list(_plan(policy, obs))
            except Exception as reason:
                error = _error("policy", length, reason)
                break
            planned += len(chunk)
            queue = chunk[:horizon]
        action = queue.pop(0)
        inside = clip(action, env.action_space)
        clipped += not _same(action, inside)
        try:
            obs, reward, terminated, truncated, info = env.step(inside)
        except Exception as reason:
            error = _error("step", length, reason)
            break
        if not math.isfinite(reward):
            error = {"phase": "step", "step": length, "message": "the environment's reward is nan"}
            break
        total += float(reward)
        length += 1
        if "is_success" in info:
            flags.append(bool(info["is_success"]))
        reported.update({name: value for name in metrics if (value := _nested(info, name)) is not None})
    if error is not None:
        terminated = truncated = False
        flags = []
    return {
        "length": length,
        "return": total,
        "end": "error" if error else "terminated" if terminated else "truncated",
        "terminated": terminated,
        "truncated": truncated,
        "success": flags[-1] if flags else None,
        "success_final": flags[-1] if flags else None,
        "success_any": any(flags) if flags else None,
        "success_at_reset": at_reset,
        "success_source": "is_success" if flags else None,
        "policy_calls": calls,
        "clipped_actions": clipped,
        "metrics": {name: reported.get(name) for name in metrics},
        "error": error,
        "success_held": max(len(list(run)) * held for held, run in itertools.groupby(flags)) if flags else None,
        "planned_actions": planned,
        "dropped_actions": len(queue),
        # These environments fail again in the same way.
        "attempts": 2 if error is not None and error["phase"] in ("reset", "step") else 1,
    }


def _error(phase: str, step: int | None, reason: Exception) -> Row:
    return {"phase": phase, "step": step, "message": f"{type(reason).__name__}: {reason}"}


def _plan(policy: Any, obs: Any) -> Iterator[Any]:
    """Yield the actions that one call of the policy plans, in order."""
    if hasattr(policy, "predict_chunk"):
        chunk = policy.predict_chunk(obs)
        steps = len(chunk["push"]) if isinstance(chunk, dict) else len(chunk)
        yield from (_at(chunk, step) for step in range(steps))
    elif hasattr(policy, "predict_batch"):
        rows = {name: part[None] for name, part in obs.items()} if isinstance(obs, dict) else obs[None]
        yield _at(policy.predict_batch(rows), 0)
    else:
        yield policy.predict(obs)


def _at(actions: Any, step: int) -> Any:
    return {name: part[step] for name, part in actions.items()} if isinstance(actions, dict) else actions[step]


def clip(action: Any, space: spaces.Space) -> Any:
    """Return an action with every Box in it kept to its bounds."""
    if isinstance(space, spaces.Dict):
        return {name: clip(action[name], part) for name, part in space.items()}
    return np.clip(action, space.low, space.high) if isinstance(space, spaces.Box) else action


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return all(_same(one[name], other[name]) for name in one)
    return bool(np.array_equal(one, other))


def _nested(info: Any, name: str) -> float | None:
    for part in name.split("."):
        info = info.get(part) if isinstance(info, dict) else None
    return info
