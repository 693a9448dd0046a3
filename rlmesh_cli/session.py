"""Session: one sitting of a run, from the first missing episode to the summary."""

from __future__ import annotations

import contextlib
import gc
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.errors import HarnessError, describe_error

from .bars import Bars
from .books import Books
from .episodes import Episode
from .estimating import estimator_of
from .evaluation import Evaluation, RunInterruptedError, summary_record
from .followups import Followups
from .gates import left_open
from .guests import seeded_globals
from .judging import note_frames, note_results
from .rollout import Rollout
from .run_record import RunRecord
from .stage import Stage
from .stats import summarise
from .tallies import Tally
from .unreset import UnresetWatch, watched
from .watching import Stopper, Watcher

if TYPE_CHECKING:
    from .glances import Glance, Standings
    from .recording.keeper import Keeper
    from .resuming import Resumption
    from .shards.crew import Crew
    from .shards.crew_rollout import CrewRollout
    from .verifying import Reels


class Session:
    """Plays what a run lacks, writes each row at once, and judges what there is.

    stage: where it is played. record: makes `run.json`. bars: what it is held against. out: folder of runs.
    resumption: which run is gone on with, None for a new one. verified: how many episodes are played again.
    crew: who plays, if it is not the stage itself. keeper: takes what is recorded, None if nothing is.
    trusts_entrypoints: see evaluate.

    Raises HarnessError where a run cannot be gone on with, or not be judged as asked.
    """

    def __init__(
        self,
        stage: Stage,
        record: RunRecord,
        *,
        bars: Bars,
        out: Path,
        resumption: Resumption | None,
        verified: int,
        crew: Crew | None = None,
        keeper: Keeper | None = None,
        trusts_entrypoints: bool = False,
    ) -> None:
        self._crew, self._trusts_entrypoints = crew, trusts_entrypoints
        self._stage, self._record = stage, record
        self._books = Books(stage, record, bars, out, keeper)
        self._unreset = UnresetWatch(None)
        self._standings: Standings | None = None
        self._bars = bars
        if bars.baseline is not None:
            record.open()
            bars.check_protocol(record.make("running"), out)
        if resumption is not None:
            self._books.go_on(resumption)
        done = {row.index for row in self._books.rows}
        is_over = self._record.stopped_at is not None
        self._missing = [] if is_over else [one for one in record.planned if one.index not in done]
        # Only of episodes that this sitting plays are actions and rewards known.
        self._verified: list[Episode] = []
        self._reels: Reels | None = None
        if verified:
            from .verifying import Reels, chosen_episodes  # noqa: PLC0415 - few runs are verified

            self._verified = chosen_episodes(self._missing, verified)
            self._reels = Reels(self._verified, stage.contract.action)

    def play(self, watcher: Watcher, stopper: Stopper) -> Evaluation:
        """Play every missing episode, and judge; once playing has begun, the record does not stay at `running`.

        Raises FollowupError where the run is complete, but cannot be judged as asked.
        """
        try:
            rollout = self._rollout = self._make_rollout(watcher)

            def stop() -> None:
                rollout.should_stop = True

            stopper.watch(stop)
            self._books.begin()  # only now: a run that cannot be gone on with stays as it is
            evaluation = self._play_to_the_end(rollout, watcher)
            if evaluation.status == "finished":
                followups = Followups(
                    self._stage,
                    self._record,
                    self._books.store(),
                    self._bars,
                    verified=self._verified,
                    reels=self._reels,
                    trusts_entrypoints=self._trusts_entrypoints,
                )
                followups.run(evaluation, watcher, stopper)
            return evaluation
        finally:
            self._books.close()

    @property
    def folder(self) -> Path | None:
        """The run's folder, None before it is made."""
        return self._books.folder

    def _play_to_the_end(self, rollout: Rollout | CrewRollout, watcher: Watcher) -> Evaluation:
        """Play and sum up; where that is not to be, the record says why."""
        try:
            return self._finish(rollout, *self._play_all(rollout, watcher))
        except BaseException as error:
            if self.folder is None:
                raise
            is_stopped = isinstance(error, KeyboardInterrupt)
            self._record.failure = None if is_stopped else describe_error(error)
            with contextlib.suppress(OSError, HarnessError):  # of a disk that is full, the first error says more
                self._books.write_record("interrupted" if is_stopped else "failed")
            if is_stopped:
                raise RunInterruptedError(self.folder) from error
            raise

    def _make_rollout(self, watcher: Watcher) -> Rollout | CrewRollout:
        def open_store() -> None:
            self._books.store()

        def on_tick(tally: Tally) -> None:
            watcher.tick(tally, len(self._books.rows), self._glance)

        on_trace = None if self._reels is None else self._reels.keep
        keeper = self._books.keeper
        deliver = None if keeper is None else keeper.take
        if self._crew is None or not self._missing:
            return self._stage.rollout(
                self._missing, on_answer=open_store, on_trace=on_trace, on_tick=on_tick, deliver=deliver
            )
        rollout = self._crew.rollout(
            self._stage,
            self._missing,
            source=self._record.source,
            traced=frozenset(episode.index for episode in self._verified),
            on_answer=open_store,
            on_trace=on_trace,
            on_tick=on_tick,
            deliver=deliver,
        )
        self._record.open()
        self._stage.release()  # what the workers hold is enough
        self._stage.first = None
        return rollout

    def _glance(self) -> Glance:
        """Return how the run stands; of runs that nobody looks at, nothing is added up."""
        if self._standings is None:
            from .glances import Standings  # noqa: PLC0415 - most runs of scripts are looked at by nobody

            self._standings = Standings(self._stage.route, self._stage.policy.label)
        return self._standings.glance(self._books.rows, self._rollout.company())

    def _play_all(self, rollout: Rollout | CrewRollout, watcher: Watcher) -> tuple[str, float]:
        """Play what is planned, write each row, close the policy; return the status and the loop's seconds."""
        status = "finished"
        self._unreset = UnresetWatch(watched(self._stage))
        watcher.begin(self._stage.route.episodes)
        began = time.perf_counter()
        try:
            with _settled_heap(), self._own_chance():
                for results in rollout.run() if self._missing else ():
                    self._books.take(results, rollout.tally)
                    self._unreset.see_episode()
                    if self._has_too_many_errors():
                        status = "stopped"
                    # Not left at once: workers may have more that is finished.
                    if status == "stopped" or self._record.stopped_at is not None:
                        rollout.should_stop = True
        except KeyboardInterrupt:
            status = "interrupted"
            self._books.read_again()
        finally:
            watcher.end()
        seconds = time.perf_counter() - began
        # Before the last record is made, so that it can say what `close` of the policy raised.
        try:
            if not isinstance(rollout, Rollout) and status != "interrupted":
                rollout.see_off()
            self._record.take_down(self._stage if isinstance(rollout, Rollout) else rollout)
            self._unreset.note(self._stage.engine.advisories)
            self._stage.release()
        except KeyboardInterrupt:  # somebody does not wait for `close` of the policy
            status = "interrupted"
        is_short = len(self._books.rows) < self._stage.route.episodes and self._record.stopped_at is None
        if rollout.should_stop and status == "finished" and is_short:
            status = "interrupted"
        return status, seconds

    def _own_chance(self) -> contextlib.AbstractContextManager[None]:
        """Let a later sitting begin from other global random numbers than the first one used already."""
        if self._record.earlier is None or not self._missing:
            return contextlib.nullcontext()
        return seeded_globals(self._missing[0].seed)

    def _has_too_many_errors(self) -> bool:
        most = self._stage.route.max_errors
        return most is not None and self._bars.errors > most

    def _finish(self, rollout: Rollout | CrewRollout, status: str, seconds: float) -> Evaluation:
        stage, route = self._stage, self._stage.route
        book = stage.engine.advisories
        stopped_at = self._record.stopped_at
        played = sorted(self._books.rows, key=lambda row: row.index)
        rows = played if stopped_at is None else [row for row in played if row.index < stopped_at]
        summary = summarise(
            rows,
            planned=route.episodes,
            rule=route.success_rule,
            metrics=stage.metrics,
            estimator=estimator_of(route),
        )
        summary = self._bars.with_sequence(summary, book)
        note_results(book, summary, stage.env, stage.contract, guard=stage.guard, casts=rollout.casts)
        note_frames(book, rollout.tally)
        if (keeper := self._books.keeper) is not None:
            if status == "finished":
                keeper.finish(math.inf if stopped_at is None else stopped_at)
            keeper.note(book, rows)
        store = self._books.store()
        evaluation = Evaluation(
            folder=store.path,
            status=status,
            rows=rows,
            summary=summary,
            verdicts=left_open(self._bars.verdicts(summary, cautions=len(book.cautions)), status),
            advisories=tuple(book),
            tally=rollout.tally,
            seconds=seconds,
            in_flight=rollout.in_flight,
            lanes=stage.num_lanes,
            workers=stage.workers,
            seeded=stage.env.is_seeded,
            is_chunked=stage.plan.is_chunked,
            corner=stage.plan.corner,
            is_builtin=route.policy.source in BASELINES,
            instances=stage.plan.sharing,
            probe=self._record.probe,
            sittings=self._record.sittings,
            stopped_at=stopped_at,
            discarded=len(played) - len(rows),
        )
        # A run that says it is finished has its summary.
        store.write("summary.json", summary_record(evaluation))
        self._books.write_record(status)
        return evaluation


@contextlib.contextmanager
def _settled_heap() -> Iterator[None]:
    """Keep the garbage collector from going through all that was loaded, again and again, while the loop runs."""
    if gc.get_freeze_count():  # somebody else's
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
