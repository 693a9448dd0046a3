"""CrewRollout: plays every planned episode once, as Rollout does, by workers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.episodes import Episode, EpisodeResult
from rlmesh_cli.plays import Company
from rlmesh_cli.stage import Stage
from rlmesh_cli.tallies import Tally
from rlmesh_cli.traces import Column

from .executor import Executor
from .ledger import ShardLedger
from .merging import lost_row, merge_uses
from .messages import (
    Answered,
    Asks,
    Bye,
    Close,
    Crashed,
    Gone,
    Grant,
    Hello,
    Recorded,
    Refused,
    Report,
    Stop,
    Task,
    Traced,
    Word,
)

if TYPE_CHECKING:
    from rlmesh_cli.recording.recorder import Deliver

# Seconds after which we look whether an end is wanted.
_LOOK_SECONDS = 0.1
_TICK_SECONDS = 0.25
# Seconds that the first worker has for its first answer once another has given one.
_PATIENCE_SECONDS = 2.0
# Seeds of the global random numbers of two workers, or of one and its successor, are so far from one another.
_FAR_APART = 1_000_003


class WorkerBugError(Exception):
    """An exception in a worker that nobody expects; its traceback is the text."""


class CrewRollout:
    """Hands out episodes, collects what comes of them, and replaces workers that die.

    Has `run`, `should_stop`, `tally`, `in_flight`, `company` and `casts` of Rollout. `muster` comes before it and
    `see_off` after it; then `chunk_length` and `actuators` are what all workers together have made of them.

    Whether anything can be scored is decided by the first worker: it has the first episode of the plan, as a run
    without workers has it first. What others report before its policy has answered is held back, but not for long.

    executor: where the workers live; so many of them have been started. task: what each is told.
    stage: where the policy was looked at; what workers note is noted there too.
    """

    def __init__(
        self,
        executor: Executor,
        task: Task,
        stage: Stage,
        episodes: Sequence[Episode],
        *,
        workers: int,
        on_answer: Callable[[], None],
        on_tick: Callable[[Tally], None],
        on_trace: Callable[[int, Sequence[Column]], None] | None,
        deliver: Deliver | None = None,
    ) -> None:
        self.should_stop = False
        self.tally = Tally()
        self.casts = ""
        self.chunk_length: int | None = None
        self.actuators: list[Any] = []
        self._executor, self._task, self._stage = executor, task, stage
        self._book = stage.engine.advisories
        self._on_answer, self._on_tick, self._on_trace = on_answer, on_tick, on_trace
        self._deliver = deliver
        self._ledger = ShardLedger(episodes, workers=workers, lanes=task.route.num_envs)
        self._living = set(range(workers)) if episodes else set()
        #: Those that are not ready yet.
        self._building: set[int] = set()
        #: Those that have nothing to do and wait for an answer.
        self._idle: set[int] = set()
        self._left: set[int] = set()
        self._successors: set[int] = set()
        self._held_back: list[EpisodeResult] | None = []
        #: Whether the first worker's policy has answered, or came to no call.
        self._is_decided = False
        #: When what is held back is released all the same, because another worker's policy has answered.
        self._release_at = math.inf
        self._first_seed = episodes[0].seed if episodes else 0
        self._instructed = 0
        self._broken_off = 0
        self._is_mustering = self._is_closing = False
        self._tick_at = 0.0

    @property
    def in_flight(self) -> int:
        """Episodes that were started and have no result."""
        return self._broken_off + sum(
            self._ledger.held_by(worker) for worker in self._living if worker not in self._left
        )

    def company(self) -> Company:
        """Return what each worker has in hand."""
        workers = sorted(self._living - self._left)
        return Company(
            workers=[(worker, self._ledger.held_by(worker), worker in self._building) for worker in workers]
        )

    def muster(self) -> None:
        """Wait until every worker has built its policy and environments.

        Raises HarnessError, in the worker's words, where one cannot.
        """
        self._is_mustering = True
        for worker in sorted(self._living):
            self._instruct(worker)
        # Nothing is handed out before all of them are ready, and then to the first one first.
        while self._building or self._idle != self._living:
            self._hear(_LOOK_SECONDS)
        self._is_mustering = False
        waiting, self._idle = sorted(self._idle), set()
        for worker in waiting:
            self._answer(worker, is_idle=True)

    def run(self) -> Iterator[list[EpisodeResult]]:
        """Yield the results of episodes as soon as they end; see Rollout.run.

        Workers may still be closing what they built; see `see_off`.
        """
        while not (self._living <= self._left or self._is_played):
            results = self._hear(_LOOK_SECONDS)
            self._tick()
            if results:
                yield results
            if not self._is_closing and (self.should_stop or self._ledger.is_over):
                self._is_closing = True
                for worker in self._living:
                    self._executor.send(worker, Stop() if self.should_stop else Close())
        if self._held_back:  # no worker is left that could decide
            yield self._release()

    @property
    def _is_played(self) -> bool:
        """Whether every episode has ended and counts; what is left is to close policies, which is no playing."""
        return self._is_closing and self._ledger.is_over and not self._held_back

    def see_off(self) -> None:
        """Wait until the workers have closed policies and environments and are gone, or a first Ctrl-C comes.

        No results come any more, but their last words: sums, advisories, and how actions were used.
        """
        was_stopped = self.should_stop
        while self._living and self.should_stop == was_stopped:
            self._hear(_LOOK_SECONDS)

    def _instruct(self, worker: int) -> None:
        self._building.add(worker)
        task = msgspec.structs.replace(
            self._task,
            first_lane=worker * self._task.route.num_envs,
            # No two workers, no successor and no later sitting draws what another one drew.
            seed=self._first_seed + _FAR_APART * self._instructed,
            has_answered=worker != 0 or self._is_decided or self._stage.is_trusted,
        )
        self._instructed += 1
        self._executor.send(worker, task)

    def _tick(self) -> None:
        now = time.perf_counter()
        if now >= self._tick_at:
            self._tick_at = now + _TICK_SECONDS
            self._on_tick(self.tally)

    def _hear(self, seconds: float) -> list[EpisodeResult]:
        """Take in what workers say; return the results that count by now."""
        results: list[EpisodeResult] = []
        for worker, word in self._executor.receive(seconds):
            results += self._take(worker, word)
        if self._held_back is None:
            return results
        # Only where a policy was asked is it to be known whether any policy can be.
        self._held_back += [row for row in results if row.policy_calls]
        early = [row for row in results if not row.policy_calls]
        if time.perf_counter() < self._release_at and not (self.should_stop and self._release_at < math.inf):
            return early
        return early + self._release()

    def _take(self, worker: int, word: Word) -> list[EpisodeResult]:
        match word:
            case Report():
                return self._take_report(worker, word)
            case Asks():
                self._answer(worker, is_idle=word.is_idle)
            case Answered():
                return self._take_answer(worker)
            case Hello():
                self._welcome(worker, word)
            case Traced():
                if self._on_trace is not None:
                    self._on_trace(word.index, word.columns)
            case Recorded():
                if self._deliver is not None:
                    self._deliver(word.row, word.files)
            case Bye():
                return self._part(worker, word)
            case Gone():
                return self._bury(worker, word.reason)
            case Refused():
                return self._dismiss(worker, word)
            case Crashed():
                raise WorkerBugError(f"in a worker:\n{word.trace}")
        return []

    def _take_report(self, worker: int, report: Report) -> list[EpisodeResult]:
        self.tally.merge(report.tally)
        self._book.merge(report.advisories)
        for row in report.rows:
            self._ledger.settle(worker, row.index)
        return list(report.rows)

    def _answer(self, worker: int, *, is_idle: bool) -> None:
        is_open = not (self._is_closing or self._is_mustering)
        grant = self._ledger.grant(worker) if is_open else None
        if grant is not None:
            self._executor.send(worker, grant)
        elif is_idle:
            self._idle.add(worker)
        else:
            self._executor.send(worker, Grant((), is_last=True))

    def _take_answer(self, worker: int) -> list[EpisodeResult]:
        """Take note of a policy's first answer; return what is released by it."""
        if worker == 0:
            return self._decide()
        self._release_at = min(self._release_at, time.perf_counter() + _PATIENCE_SECONDS)
        return []

    def _decide(self) -> list[EpisodeResult]:
        """Note that the first worker will not end the run any more; return what was held back."""
        self._is_decided = True
        return self._release()

    def _release(self) -> list[EpisodeResult]:
        """Let what was held back count."""
        if self._held_back is None:
            return []
        self._on_answer()
        held, self._held_back = self._held_back, None
        return held

    def _welcome(self, worker: int, hello: Hello) -> None:
        self._building.discard(worker)
        self._stage.plan = hello.plan
        known = self._book.entries()
        self._book.merge({key: one for key, one in hello.advisories.items() if key not in known})

    def _part(self, worker: int, bye: Bye) -> list[EpisodeResult]:
        self._left.add(worker)
        self._broken_off += bye.in_flight
        self.casts = self.casts or bye.casts
        if self.chunk_length is None or worker == 0:
            self.chunk_length = bye.chunk_length
        self.actuators = merge_uses(self.actuators, bye.actuators)
        # The first worker may have come to no call.
        others = self._living - self._left
        released = self._decide() if worker == 0 and (others or self._held_back) else []
        return released + self._take_report(worker, bye.report)

    def _dismiss(self, worker: int, refused: Refused) -> list[EpisodeResult]:
        """Part with a worker that cannot go on; where it is the first word of the run, the run ends with it."""
        error = HarnessError(refused.cause, where=refused.where, mend=refused.mend)
        is_first_call = worker == 0 and not self._is_decided and worker not in self._building
        if is_first_call and self._held_back is None:
            # Others have been scored meanwhile: its successor's failed call is one of its episode.
            self._is_decided = True
            return []
        if worker not in self._successors or is_first_call:
            raise error
        return self._retire(worker, error)

    def _bury(self, worker: int, reason: str) -> list[EpisodeResult]:
        """Take note of a worker's end; start another if it was untimely."""
        self._idle.discard(worker)
        if worker in self._left or worker not in self._living:
            self._living.discard(worker)
            return []
        if worker in self._building and worker not in self._successors:
            raise HarnessError(
                f"a {self._executor.name} ended while it built policy and environments ({reason})",
                where=f"worker {worker}",
                mend="run with --workers 1 to see more; where memory is short, use fewer workers or lanes",
            )
        rows = self._lose(worker, reason)
        if self._is_closing or not self._ledger.has_more_for(worker):
            self._living.discard(worker)
            return rows + (self._decide() if worker == 0 and self._living else [])
        if worker in self._building:  # a successor that did not even begin
            return rows + self._retire(
                worker,
                HarnessError(
                    f"no {self._executor.name} is left: the last one ended while it was built ({reason})",
                    where=f"worker {worker}",
                    mend="go on with --resume and fewer workers",
                ),
            )
        self._successors.add(worker)
        try:
            self._executor.start(worker)
        except HarnessError as error:
            return rows + self._retire(worker, error)
        self._instruct(worker)
        return rows

    def _lose(self, worker: int, reason: str) -> list[EpisodeResult]:
        """Return rows of the episodes at which a worker died the second time."""
        held = self._ledger.held_by(worker)
        twice = self._ledger.lose(worker)
        again = held > len(twice) and not self._is_closing
        self._book.add(
            "worker-died",
            "info",
            f"a {self._executor.name} died ({reason})"
            + (": what it had in hand was played again by another" if again else ""),
        )
        lane, stage = worker * self._task.route.num_envs, self._stage
        action, metrics = stage.contract.action, stage.metrics
        return [lost_row(one, reason, lane=lane, action=action, metrics=metrics) for one in twice]

    def _retire(self, worker: int, error: HarnessError) -> list[EpisodeResult]:
        """Go on without a worker; raise `error` if it was the last."""
        self._building.discard(worker)
        self._living.discard(worker)
        if not self._living:
            raise error
        heir = min(self._living)
        self._ledger.hand_over(worker, heir)
        rows = self._decide() if worker == 0 else []
        if heir in self._idle:
            self._idle.discard(heir)
            self._answer(heir, is_idle=True)
        return rows
