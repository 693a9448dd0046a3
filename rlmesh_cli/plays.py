"""Play: an episode while it runs, and the result it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.errors import Failure
from rlmesh_envs.steps import Info

from .episodes import End, EpisodeError, EpisodeResult, Seconds
from .fingerprints import start_hash
from .outcomes import InfoReader, Outcome
from .tallies import Shares


class Before(msgspec.Struct, frozen=True, gc=False):
    """Sums from which an episode's part is counted; see Shares."""

    calls: int
    planned: int
    env: float
    policy: float
    predict: float


class Play(msgspec.Struct):
    """One episode on one lane.

    context: what the policy may know of it. lane: where it runs. seed: as planned, taken or not.
    begun_clock: seconds at which its reset began.
    begun_step, ready_clock, before: vector step, seconds and other shares when its first observation was there.
    calls: policy calls in which only some lanes were asked; planned: actions in the answers that had not the same
        number for all. clipped: executed actions that were clipped.
    attempt: 2 when it is played again after its environment failed.
    is_alone: whether no other episode is played beside it.
    first: the first observation until it has a row in the batch.
    """

    context: EpisodeContext
    lane: int
    seed: int
    begun_clock: float
    begun_step: int = 0
    ready_clock: float = 0.0
    before: Before = Before(0, 0, 0.0, 0.0, 0.0)
    calls: int = 0
    planned: int = 0
    clipped: int = 0
    attempt: int = 1
    is_alone: bool = False
    first: Any = None
    outcome: Outcome = msgspec.field(default_factory=Outcome)
    reset_seconds: float = 0.0
    start_hash: str | None = None

    def begin(self, shares: Shares, now: float) -> None:
        """Note the sums from which this episode's part is counted; now: seconds by the clock."""
        self.begun_step, self.ready_clock = shares.steps, now
        self.before = Before(shares.calls, shares.planned, shares.env, shares.policy, shares.predict)

    def calls_until(self, shares: Shares) -> int:
        """Return in how many policy calls this episode was asked for."""
        return self.calls + shares.calls - self.before.calls

    def read_start(self, info: Info, reader: InfoReader) -> None:
        """Take over what the reset gave."""
        self.start_hash = start_hash(self.first, info)
        if info:
            reader.read_reset(info, self.outcome)


class Company(msgspec.Struct, frozen=True):
    """Who is playing at a moment.

    lanes: (lane, episode index, steps so far) in lane order; None for steps while a reset is waited for.
    workers: (worker, episodes in its hand, whether it is being built), where workers play.
    """

    lanes: Sequence[tuple[int, int, int | None]] = ()
    workers: Sequence[tuple[int, int, bool]] = ()


class Ending(msgspec.Struct, frozen=True, gc=False):
    """How an episode ended.

    row: of the roster. terminated, truncated: as the environment gave them.
    cap: `step_cap` or `time_cap` if we ended it, else empty. failure: why it could not be finished.
    """

    row: int
    terminated: bool = False
    truncated: bool = False
    cap: str = ""
    failure: Failure | None = None

    @property
    def name(self) -> End:
        """The ending's name in the record."""
        if self.failure is not None:
            return "error"
        if self.terminated:
            return "terminated"
        if self.truncated:
            return "truncated"
        return "time_cap" if self.cap == "time_cap" else "step_cap"


def finish(
    play: Play,
    traced: tuple[int, float, str],
    ending: Ending,
    reader: InfoReader,
    shares: Shares,
    now: float,
    *,
    planned: tuple[int | None, int] = (0, 0),
) -> EpisodeResult:
    """Return the result of an episode.

    traced: (length, return, trace hash). shares, now: the sums and the clock at its end.
    planned: actions that were planned for it, and those still queued.
    """
    failure = ending.failure
    length, total, trace = traced
    outcome = play.outcome
    before = play.before
    success, source = (None, None) if failure is not None else outcome.judge(reader.rule, total)
    policy = shares.policy - before.policy
    return EpisodeResult(
        index=play.context.index,
        seed=play.context.seed,
        episode_id=play.context.episode_id,
        lane=play.lane,
        length=length,
        return_=total,
        end=ending.name,
        terminated=ending.terminated,
        truncated=ending.truncated,
        success=success,
        # What was reported before a crash is not how the episode ended.
        success_final=None if failure is not None else outcome.final,
        success_any=None if failure is not None else outcome.any,
        success_at_reset=outcome.at_reset,
        success_source=source,
        start_hash=play.start_hash,
        trace_hash=trace,
        policy_calls=play.calls_until(shares),
        clipped_actions=play.clipped,
        metrics=outcome.numbers(reader.metrics),
        error=None if failure is None else _error(failure, length),
        seconds=Seconds(
            env=play.reset_seconds + shares.env - before.env,
            policy=policy,
            adapter=max(0.0, shares.predict - before.predict - policy),
            total=now - play.begun_clock,
        ),
        success_held=None if failure is not None or outcome.final is None else outcome.held,
        planned_actions=planned[0],
        dropped_actions=planned[1],
        attempts=play.attempt,
    )


def _error(failure: Failure, length: int) -> EpisodeError:
    return EpisodeError(
        phase=failure.phase,
        step=None if failure.phase == "reset" else length,
        message=failure.message,
        place=failure.detail or None,
    )
