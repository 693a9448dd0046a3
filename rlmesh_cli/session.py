"""Session: one sitting of a run, from the first missing episode to the summary."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from .bars import Bars
from .control_results import ControlResult
from .episodes import Episode, EpisodeResult, plan_episodes
from .estimating import estimator_of
from .evaluation import Evaluation, RunInterruptedError, summary_record
from .gates import Gate
from .judging import note_results
from .rollout import Rollout
from .run_record import RunRecord
from .stage import Stage, staged
from .stats import summarise
from .store import RunStore
from .tallies import Tally
from .watching import Stopper, Watcher

if TYPE_CHECKING:
    from .resuming import Resumption
    from .shards.crew import Crew
    from .shards.crew_rollout import CrewRollout
    from .verifying import Reels


class Session:
    """Plays what a run lacks, writes each row at once, and judges what there is.

    stage: where it is played. record: makes `run.json`. gates: bars to meet. out: folder that holds runs.
    resumption: which run is gone on with, None for a new one. verified: how many episodes are played again.
    crew: who plays, if it is not the stage itself.

    Raises HarnessError where a run cannot be gone on with.
    """

    def __init__(
        self,
        stage: Stage,
        record: RunRecord,
        *,
        gates: tuple[Gate, ...],
        out: Path,
        resumption: Resumption | None,
        verified: int,
        crew: Crew | None = None,
    ) -> None:
        self._crew = crew
        self._stage, self._record, self._out = stage, record, out
        self._rows: list[EpisodeResult] = []
        self._opened: RunStore | None = None
        self._advised = 0
        self._planned = plan_episodes(stage.route.episode_seeds)
        file = record.source.get("route_file")
        self._bars = Bars(stage.route, gates, self._planned, (Path(file).parent, out) if file else (out,))
        if self._bars.baseline is not None:
            record.open()
            self._bars.check_protocol(record.make("running"), out)
        if resumption is not None:
            self._go_on(resumption)
        done = {row.index for row in self._rows}
        is_over = self._record.stopped_at is not None
        self._missing = [] if is_over else [one for one in self._planned if one.index not in done]
        # Only of episodes that this sitting plays are actions and rewards known.
        self._verified: list[Episode] = []
        self._reels: Reels | None = None
        if verified:
            from .verifying import Reels, chosen_episodes  # noqa: PLC0415 - few runs are verified

            self._verified = chosen_episodes(self._missing, verified)
            self._reels = Reels(self._verified, stage.contract.action)

    def _go_on(self, resumption: Resumption) -> None:
        self._record.open()
        reopened = resumption.reopen(self._record.make("running"))
        if reopened is not None:
            self._opened, stored = reopened
            self._record.earlier = stored.record
            self._rows = list(stored.rows)
            self._look_at(self._rows)
            self._opened.remove("summary.json")  # of a sitting before; what it says is no longer all
            self._write_record("running")

    def _look_at(self, rows: Sequence[EpisodeResult]) -> None:
        self._bars.look_at(rows)
        self._record.stopped_at = self._bars.stopped_at

    def play(self, watcher: Watcher, stopper: Stopper) -> Evaluation:
        """Play every missing episode; whatever happens, the record does not stay at `running`."""
        rollout = self._rollout(watcher)

        def stop() -> None:
            rollout.should_stop = True

        stopper.watch(stop)
        try:
            return self._finish(rollout, *self._play_all(rollout, watcher), watcher)
        except BaseException as error:
            if self._opened is None:
                raise
            is_stopped = isinstance(error, KeyboardInterrupt)
            with contextlib.suppress(OSError):  # of a disk that is full, the first error says more
                self._write_record("interrupted" if is_stopped else "failed")
            if is_stopped:
                raise RunInterruptedError(self._opened.path) from error
            raise
        finally:
            if self._opened is not None:
                self._opened.close()

    def verify(self, evaluation: Evaluation) -> None:
        """Play some episodes again on one lane with a fresh policy, and note what came of it."""
        if self._reels is None:
            return
        from .verifying import Reels, verify  # noqa: PLC0415 - few runs are verified

        stage = self._stage
        reels = Reels(self._verified, stage.contract.action)
        with staged(
            msgspec.structs.replace(stage.route, num_envs=1),
            source=self._record.source,
            policy=stage.policy,
            # One lane plays one episode after another; what an instance keeps must not reach the next.
            sharing="episode" if stage.plan.sharing == "episode" else "auto",
        ) as lone:
            again = [row for rows in lone.rollout(self._verified, on_trace=reels.keep).run() for row in rows]
        evaluation.verification = verify(evaluation.rows, again, self._reels, reels)
        self._store().write("summary.json", summary_record(evaluation))

    def _rollout(self, watcher: Watcher) -> Rollout | CrewRollout:
        def open_store() -> None:
            self._store()

        on_trace = None if self._reels is None else self._reels.keep
        on_tick = lambda tally: watcher.tick(tally, len(self._rows))  # noqa: E731
        if self._crew is None or not self._missing:
            return self._stage.rollout(self._missing, on_answer=open_store, on_trace=on_trace, on_tick=on_tick)
        rollout = self._crew.rollout(
            self._stage,
            self._missing,
            source=self._record.source,
            traced=frozenset(episode.index for episode in self._verified),
            on_answer=open_store,
            on_trace=on_trace,
            on_tick=on_tick,
        )
        self._record.open()
        self._stage.release()  # what the workers hold is enough
        self._stage.first = None
        return rollout

    def _store(self) -> RunStore:
        """Return the run's folder; the first time it is asked for, it is made.

        Episodes whose reset failed may have come before; they are written then.
        """
        if self._opened is None:
            self._record.open()
            route, policy = self._stage.route, self._stage.policy
            self._opened = RunStore(self._out, env=route.env.id, policy=policy.label)
            self._write_record("running")
            if self._rows:
                self._opened.append(*self._rows)
        return self._opened

    def _write_record(self, status: str) -> None:
        self._advised = len(self._stage.engine.advisories)
        self._store().write("run.json", self._record.make(status))

    def _play_all(self, rollout: Rollout | CrewRollout, watcher: Watcher) -> tuple[str, float]:
        """Play what is planned, write each row, close the policy; return the status and the loop's seconds."""
        status = "finished"
        watcher.begin(self._stage.route.episodes)
        began = time.perf_counter()
        try:
            with _settled_heap():
                for results in rollout.run() if self._missing else ():
                    self._take(results, rollout.tally)
                    if self._has_too_many_errors():
                        status = "stopped"
                    # Not left at once: workers may have more that is finished.
                    if status == "stopped" or self._record.stopped_at is not None:
                        rollout.should_stop = True
        except KeyboardInterrupt:
            status = "interrupted"
        finally:
            watcher.end()
        seconds = time.perf_counter() - began
        # Before the last record is made, so that it can say what `close` of the policy raised.
        try:
            self._record.take_down(self._stage if isinstance(rollout, Rollout) else rollout)
            self._stage.release()
        except KeyboardInterrupt:  # somebody does not wait for `close` of the policy
            status = "interrupted"
        is_short = len(self._rows) < self._stage.route.episodes and self._record.stopped_at is None
        if rollout.should_stop and status == "finished" and is_short:
            status = "interrupted"
        return status, seconds

    def _take(self, results: list[EpisodeResult], tally: Tally) -> None:
        self._rows.extend(results)
        self._record.played += len(results)
        self._look_at(results)
        if self._opened is not None:
            began = time.perf_counter()
            self._opened.append(*results)
            if len(self._stage.engine.advisories) != self._advised:  # a killed run keeps what was advised
                self._write_record("running")
            tally.recording_seconds += time.perf_counter() - began

    def _has_too_many_errors(self) -> bool:
        most = self._stage.route.max_errors
        return most is not None and sum(row.is_error for row in self._rows) > most

    def _play_controls(self, rows: Sequence[EpisodeResult], watcher: Watcher) -> tuple[ControlResult, ...]:
        stage, route = self._stage, self._stage.route
        if not route.controls:
            return ()
        from .controls import judge_control, note_control, play_control  # noqa: PLC0415 - most runs have none

        counted = {row.index for row in rows}
        episodes = [episode for episode in self._planned if episode.index in counted]
        found = []
        for name in dict.fromkeys(route.controls):
            control = play_control(name, route, episodes, source=self._record.source, watcher=watcher)
            self._store().write_rows(f"control-{name}.jsonl", control)
            found.append(judge_control(name, rows, control, confidence=route.confidence))
            note_control(stage.engine.advisories, found[-1])
        return tuple(found)

    def _compare(self, evaluation: Evaluation) -> None:
        if self._bars.baseline is None:
            return
        from .claims import comparison_record  # noqa: PLC0415 - most runs are not compared
        from .run_reader import StoredRun  # noqa: PLC0415

        record = self._record.make(evaluation.status)
        played = StoredRun(folder=evaluation.folder, record=record, rows=evaluation.rows)
        comparison = self._bars.compare(played)
        if comparison is not None:
            evaluation.baseline = comparison_record(comparison)

    def _finish(self, rollout: Rollout | CrewRollout, status: str, seconds: float, watcher: Watcher) -> Evaluation:
        stage, route = self._stage, self._stage.route
        book = stage.engine.advisories
        stopped_at = self._record.stopped_at
        played = sorted(self._rows, key=lambda row: row.index)
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
        store = self._store()
        controls = self._play_controls(rows, watcher) if status == "finished" else ()
        evaluation = Evaluation(
            folder=store.path,
            status=status,
            rows=rows,
            summary=summary,
            verdicts=self._bars.verdicts(summary, cautions=len(book.cautions)),
            advisories=tuple(book),
            tally=rollout.tally,
            seconds=seconds,
            in_flight=rollout.in_flight,
            lanes=stage.num_lanes,
            workers=stage.workers,
            seeded=stage.env.is_seeded,
            instances=stage.plan.sharing,
            probe=stage.probe,
            stopped_at=stopped_at,
            discarded=len(played) - len(rows),
            controls=controls,
        )
        self._write_record(status)
        if status == "finished":
            self._compare(evaluation)
        store.write("summary.json", summary_record(evaluation))
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
