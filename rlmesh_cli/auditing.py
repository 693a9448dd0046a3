"""Auditing: does an environment keep to what seeded episodes rest on?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import msgspec
import numpy as np

from rlmesh_adapters.batches import one_row, row_of
from rlmesh_adapters.probe.randomness import global_state
from rlmesh_adapters.probe.verdicts import TestResult
from rlmesh_adapters.spaces import SpaceView, sample_value
from rlmesh_envs.make import Lanes
from rlmesh_envs.request import EnvInfo

from .fingerprints import start_hash

_SEEDS = (11, 12, 13, 14)
_MOST_STEPS = 100
# What is played of an episode before a reset breaks it off.
_BROKEN_OFF = 5


class _Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One seeded episode of random actions, which are the same in every episode.

    moments: a hash for the reset's observation, and one for each step's observation, reward and end.
    failure: why it could not go on, or "".
    """

    moments: tuple[str, ...] = ()
    failure: str = ""


def audit(
    make: Callable[[], tuple[Lanes, EnvInfo]],
    action: SpaceView,
    *,
    clock: Callable[[], float],
    most_seconds: float,
) -> tuple[TestResult, ...]:
    """Test an environment by short episodes of random actions; return a result a test.

    make: builds the environment anew, as one lane. action: space of one action. clock: returns seconds.
    most_seconds: episodes are cut short, down to five steps, to take about no more.

    Raises HarnessError where the environment cannot be built.
    """
    lanes, env = make()
    with closing(lanes):
        if env.autoreset != "disabled" or not env.is_seeded:
            return (_noted("same seed", "Its episodes cannot be seeded one by one, so none can be played again."),)
        # What imports and constructors draw, they draw before anything is seeded.
        before, began = global_state(), clock()
        first = _play(lanes, action, _SEEDS[0], _MOST_STEPS)
        if first.failure:
            return (_failed("episode", f"Random actions cannot be played on it: {first.failure}."),)
        each = (clock() - began) / len(first.moments)
        planned = most_seconds / (len(_SEEDS) + 2) / max(each, 1e-9)
        steps = max(_BROKEN_OFF, min(_MOST_STEPS, int(planned)))
        others = [_play(lanes, action, seed, steps) for seed in _SEEDS[1:]]
        _play(lanes, action, _SEEDS[1], _BROKEN_OFF)
        again = _play(lanes, action, _SEEDS[0], steps)
        is_untouched = global_state() == before
    lanes, _ = make()
    with closing(lanes):
        anew = _play(lanes, action, _SEEDS[0], steps)
    return (
        _same_seed(first, anew),
        _reset_order(first, again),
        _seeds_differ([first, *others]),
        _random_state(is_untouched=is_untouched),
        _time_limit(env),
    )


def _play(lanes: Lanes, action: SpaceView, seed: int, steps: int) -> _Episode:
    rng = np.random.default_rng(_SEEDS[0])
    resets = lanes.reset_lanes([0], [seed])
    if resets.failures:
        return _Episode(failure=resets.failures[0].message)
    moments = [start_hash(row_of(resets.observations, 0), {})]
    for _ in range(steps):
        step = lanes.step_lanes(one_row(sample_value(action, rng)), (0,))
        if step.failures:
            return _Episode(moments=tuple(moments), failure=step.failures[0].message)
        ends = [flag for _, *flags in step.ended for flag in flags]
        moments.append(start_hash([row_of(step.observations, 0), float(step.rewards[0]), ends], {}))
        if step.ended:
            break
    return _Episode(moments=tuple(moments))


def _difference(one: _Episode, other: _Episode) -> str | None:
    """Return where two episodes part, None if the shorter is the beginning of the longer."""
    for step, (moment, beside) in enumerate(zip(one.moments, other.moments, strict=False)):
        if moment != beside:
            return f"step {step - 1}" if step else "the reset"
    if one.failure != other.failure:
        return (
            f"step {min(len(one.moments), len(other.moments)) - 1}, which fails ({one.failure or other.failure})"
        )
    return None


def _same_seed(one: _Episode, anew: _Episode) -> TestResult:
    place = _difference(one, anew)
    if place is None:
        return _passed("same seed", "Two environments give one seed the same episode.")
    return _failed(
        "same seed", f"Two environments give one seed different episodes, from {place} on: no run repeats.", place
    )


def _reset_order(one: _Episode, again: _Episode) -> TestResult:
    place = _difference(one, again)
    if place is None:
        return _passed("reset order", "A seed gives the same episode whatever was played before it.")
    return _failed(
        "reset order",
        f"A seed gives another episode after others, from {place} on: rows depend on the number of lanes.",
        place,
    )


def _seeds_differ(episodes: Sequence[_Episode]) -> TestResult:
    shortest = min(len(episode.moments) for episode in episodes)
    starts = len({episode.moments[:1] for episode in episodes})
    courses = len({episode.moments[:shortest] for episode in episodes})
    numbers = {"seeds": len(episodes), "distinct_starts": starts, "distinct_episodes": courses}
    if starts > 1:
        return _passed("seeds differ", f"{starts} of {len(episodes)} seeds begin differently.", numbers)
    if courses > 1:
        return _passed(
            "seeds differ", "All seeds begin alike; the same actions lead them to different places.", numbers
        )
    return _noted(
        "seeds differ",
        f"All {len(episodes)} seeds give one episode: one episode of a deterministic policy says all.",
        numbers,
    )


def _random_state(*, is_untouched: bool) -> TestResult:
    if is_untouched:
        return _passed("random state", "It leaves the random numbers of random and numpy.random alone.")
    return _failed(
        "random state",
        "It draws from, or seeds, the random numbers of the whole process: what a policy draws there changes.",
    )


def _time_limit(env: EnvInfo) -> TestResult:
    if env.max_episode_steps is not None:
        limit = env.max_episode_steps
        return _passed("time limit", f"Episodes end after {limit:,} steps.", {"max_episode_steps": limit})
    return _noted("time limit", "It states no limit: where it does not end episodes itself, set a limit.")


def _passed(name: str, sentence: str, numbers: dict[str, Any] | None = None) -> TestResult:
    return TestResult(name=name, outcome="pass", sentence=sentence, numbers=numbers or {})


def _noted(name: str, sentence: str, numbers: dict[str, Any] | None = None) -> TestResult:
    return TestResult(name=name, outcome="noted", sentence=sentence, numbers=numbers or {})


def _failed(name: str, sentence: str, place: str | None = None) -> TestResult:
    return TestResult(
        name=name, outcome="fail", sentence=sentence, numbers={} if place is None else {"first_difference": place}
    )
