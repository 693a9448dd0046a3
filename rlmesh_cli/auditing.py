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
from .outcomes import InfoReader, Outcome

_SEEDS = (11, 12, 13, 14)
_MOST_STEPS = 100
# What is played of an episode before a reset breaks it off.
_BROKEN_OFF = 5


class _Moment(msgspec.Struct, frozen=True):
    """The reset or a step, as hashes.

    seen: observation, and of a step reward and end. told: what a run reads of its info.
    """

    seen: str
    told: str


class _Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One seeded episode of random actions, which are the same in every episode.

    moments: the reset, and each step. failure: why it could not go on, or "".
    """

    moments: tuple[_Moment, ...] = ()
    failure: str = ""


class _Difference(msgspec.Struct, frozen=True):
    """Where two episodes part. place: `the reset`, or a step from 0. how: what more there is to say."""

    place: str
    how: str = ""

    def __str__(self) -> str:
        return f"from {self.place} on{self.how}"


def audit(
    make: Callable[[], tuple[Lanes, EnvInfo]],
    action: SpaceView,
    reader: InfoReader,
    *,
    clock: Callable[[], float],
    most_seconds: float,
) -> tuple[TestResult, ...]:
    """Test an environment by short episodes of random actions; return a result a test.

    make: builds the environment anew, as one lane. action: space of one action.
    reader: of infos, what a run would read: success and metrics. clock: returns seconds.
    most_seconds: episodes are cut short, down to five steps, to take about no more.

    Raises HarnessError where the environment cannot be built.
    """
    lanes, env = make()
    with closing(lanes):
        if env.autoreset != "disabled" or not env.is_seeded:
            return (_noted("same seed", "Its episodes cannot be seeded one by one, so none can be played again."),)
        # What imports and constructors draw, they draw before anything is seeded.
        before, began = global_state(), clock()
        first = _play(lanes, action, reader, _SEEDS[0], _MOST_STEPS)
        if first.failure:
            return (_failed("episode", f"Random actions cannot be played on it: {first.failure}."),)
        each = (clock() - began) / len(first.moments)
        planned = most_seconds / (len(_SEEDS) + 2) / max(each, 1e-9)
        steps = max(_BROKEN_OFF, min(_MOST_STEPS, int(planned)))
        others = [_play(lanes, action, reader, seed, steps) for seed in _SEEDS[1:]]
        _play(lanes, action, reader, _SEEDS[1], _BROKEN_OFF)
        again = _play(lanes, action, reader, _SEEDS[0], steps)
        is_untouched = global_state() == before
    lanes, _ = make()
    with closing(lanes):
        anew = _play(lanes, action, reader, _SEEDS[0], steps)
    return (
        _same_seed(first, anew),
        _reset_order(first, again),
        _seeds_differ([first, *others]),
        _random_state(is_untouched=is_untouched),
        _time_limit(env),
    )


def _play(lanes: Lanes, action: SpaceView, reader: InfoReader, seed: int, steps: int) -> _Episode:
    rng = np.random.default_rng(_SEEDS[0])
    resets = lanes.reset_lanes([0], [seed])
    if resets.failures:
        return _Episode(failure=resets.failures[0].message)
    begun = Outcome()
    reader.read_reset(resets.infos[0], begun)
    moments = [_Moment(start_hash(row_of(resets.observations, 0), {}), _told(begun))]
    for _ in range(steps):
        step = lanes.step_lanes(one_row(sample_value(action, rng)), (0,))
        if step.failures:
            return _Episode(moments=tuple(moments), failure=step.failures[0].message)
        ends = [flag for _, *flags in step.ended for flag in flags]
        outcome = Outcome()
        for info in step.infos or ():
            reader.read(info, outcome)
        seen = start_hash([row_of(step.observations, 0), float(step.rewards[0]), ends], {})
        moments.append(_Moment(seen, _told(outcome)))
        if step.ended:
            break
    return _Episode(moments=tuple(moments))


def _told(outcome: Outcome) -> str:
    """Return a hash of what one info reported: success, under which key, and metrics."""
    return start_hash([outcome.at_reset, outcome.final, outcome.source, outcome.reported], {})


def _difference(one: _Episode, other: _Episode) -> _Difference | None:
    """Return where two episodes part, None if the shorter is the beginning of the longer."""
    for step, (moment, beside) in enumerate(zip(one.moments, other.moments, strict=False)):
        if moment != beside:
            how = ", in the success or a metric that its infos report" if moment.seen == beside.seen else ""
            return _Difference(f"step {step - 1}" if step else "the reset", how)
    if one.failure != other.failure:
        last = min(len(one.moments), len(other.moments)) - 1
        return _Difference(f"step {last}", f", which fails ({one.failure or other.failure})")
    return None


def _same_seed(one: _Episode, anew: _Episode) -> TestResult:
    parted = _difference(one, anew)
    if parted is None:
        return _passed("same seed", "Two environments give one seed the same episode.")
    return _failed(
        "same seed",
        f"Two environments give one seed different episodes, {parted}: no run repeats.",
        parted.place,
    )


def _reset_order(one: _Episode, again: _Episode) -> TestResult:
    parted = _difference(one, again)
    if parted is None:
        return _passed("reset order", "A seed gives the same episode whatever was played before it.")
    return _failed(
        "reset order",
        f"A seed gives another episode after others, {parted}: rows depend on the number of lanes.",
        parted.place,
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
