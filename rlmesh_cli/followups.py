"""Follow-ups: what is done with a run once its episodes are played - controls, comparison, verification.

The run is complete on disk by then. What goes wrong here is told, and takes nothing of it away.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from rlmesh_adapters.errors import HarnessError

from .bars import Bars
from .episodes import Episode
from .evaluation import Evaluation, RunInterruptedError, summary_record
from .rollout import Rollout
from .run_record import RunRecord
from .stage import Stage, staged
from .store import RunStore
from .watching import Stopper, Watcher

if TYPE_CHECKING:
    from .verifying import Reels


class FollowupError(HarnessError):
    """A run is complete, but was not judged as asked; `folder` is where it is."""

    def __init__(self, error: HarnessError, folder: Path) -> None:
        mend = f"{error.mend}; the run itself is complete" if error.mend else "the run itself is complete"
        super().__init__(error.cause, where=error.where, mend=f"{mend}, in {folder}")
        self.folder = folder


class Followups:
    """Does what a route asks for after its episodes.

    stage: where they were played. record, store: of the run. bars: what it is held against.
    verified: episodes to be played again on one lane, and reels: what they were; None if none are.
    trusts_entrypoints: see evaluate.
    """

    def __init__(
        self,
        stage: Stage,
        record: RunRecord,
        store: RunStore,
        bars: Bars,
        *,
        verified: Sequence[Episode],
        reels: Reels | None,
        trusts_entrypoints: bool = False,
    ) -> None:
        self._stage, self._record, self._store, self._bars = stage, record, store, bars
        self._verified, self._reels = verified, reels
        self._trusts_entrypoints = trusts_entrypoints
        self._is_stopping = False

    def run(self, evaluation: Evaluation, watcher: Watcher, stopper: Stopper) -> None:
        """Put what comes of it into the evaluation, and write the run's summary and record again.

        Raises FollowupError for what cannot be done, RunInterruptedError where the end was not waited for.
        """
        route = self._stage.route
        if not route.controls and self._bars.baseline is None and self._reels is None:
            return
        try:
            self._control(evaluation, watcher, stopper)
            self._compare(evaluation)
            self._verify(evaluation, stopper)
        except HarnessError as error:
            raise FollowupError(error, evaluation.folder) from error
        except KeyboardInterrupt as error:
            raise RunInterruptedError(evaluation.folder) from error
        finally:
            book = self._stage.engine.advisories
            evaluation.advisories = tuple(book)
            evaluation.verdicts = self._bars.verdicts(evaluation.summary, cautions=len(book.cautions))
            self._store.write("summary.json", summary_record(evaluation))
            self._store.write("run.json", self._record.make(evaluation.status))

    def _watch(self, rollout: Rollout, stopper: Stopper) -> None:
        def stop() -> None:
            rollout.should_stop = self._is_stopping = True

        stopper.watch(stop)
        rollout.should_stop = self._is_stopping

    def _control(self, evaluation: Evaluation, watcher: Watcher, stopper: Stopper) -> None:
        route = self._stage.route
        if not route.controls:
            return
        from .controls import judge_control, note_control, play_control  # noqa: PLC0415 - most runs have none

        counted = _playable_here(evaluation)
        episodes = [episode for episode in self._record.planned if episode.index in counted]
        for name in dict.fromkeys(route.controls):
            control = play_control(
                name,
                route,
                episodes,
                source=self._record.source,
                watcher=watcher,
                watch=lambda rollout: self._watch(rollout, stopper),
            )
            if self._is_stopping:
                self._note_broken_off(evaluation, "the controls")
                return
            self._store.write_rows(f"control-{name}.jsonl", control)
            result = judge_control(name, evaluation.rows, control, confidence=route.confidence)
            evaluation.controls = (*evaluation.controls, result)
            note_control(self._stage.engine.advisories, result)

    def _compare(self, evaluation: Evaluation) -> None:
        if self._bars.baseline is None:
            return
        from .claims import comparison_record, undecided_record  # noqa: PLC0415 - most runs are not compared
        from .comparing import MetricError  # noqa: PLC0415 - the same
        from .pairing import PairingError  # noqa: PLC0415 - the same
        from .run_reader import StoredRun  # noqa: PLC0415 - the same

        record = self._record.make(evaluation.status)
        played = StoredRun(folder=evaluation.folder, record=record, rows=evaluation.rows)
        try:
            comparison = self._bars.compare(played)
        except (PairingError, MetricError) as error:
            # What was played cannot tell, such as where every episode errored.
            evaluation.baseline = undecided_record(self._bars.baseline.run, error)
            return
        if comparison is not None:
            evaluation.baseline = comparison_record(comparison)

    def _verify(self, evaluation: Evaluation, stopper: Stopper) -> None:
        """Play some episodes again on one lane with a fresh policy, and note what came of it."""
        if self._reels is None:
            return
        counted = _playable_here(evaluation)
        verified = [episode for episode in self._verified if episode.index in counted]
        book = self._stage.engine.advisories
        if not verified:
            book.add(
                "lanes-not-verified", "caution", "no episode was played in this sitting that could be verified"
            )
            return
        if len(verified) < len(self._verified):
            book.add(
                "fewer-verified",
                "info",
                f"{len(verified)} of {len(self._verified)} chosen episodes were verified: the others do not "
                "count, or ended their worker",
            )
        from .verifying import Reels, verify  # noqa: PLC0415 - few runs are verified

        stage = self._stage
        policy = stage.policy
        if policy.renew is not None:  # what classes and modules keep is of the run
            policy = msgspec.structs.replace(policy, build=policy.renew())
        reels = Reels(verified, stage.contract.action)
        with staged(
            msgspec.structs.replace(stage.route, num_envs=1),
            source=self._record.source,
            policy=policy,
            # One lane plays one episode after another; what an instance keeps must not reach the next.
            sharing="episode" if stage.plan.sharing == "episode" else "auto",
            has_answered=True,
            trusts_entrypoints=self._trusts_entrypoints,
        ) as lone:
            rollout = lone.rollout(verified, on_trace=reels.keep)
            self._watch(rollout, stopper)
            again = [row for rows in rollout.run() for row in rows]
        if self._is_stopping:
            self._note_broken_off(evaluation, "the verification of lanes")
        else:
            evaluation.verification = verify(evaluation.rows, again, self._reels, reels)

    def _note_broken_off(self, evaluation: Evaluation, what: str) -> None:
        evaluation.broken_off = what
        self._stage.engine.advisories.add(
            "followup-broken-off", "caution", f"{what} was broken off; the run itself is complete", subject=what
        )


def _playable_here(evaluation: Evaluation) -> set[int]:
    """Return the indices of the episodes that count; what ended a worker would end us, and is left out."""
    return {row.index for row in evaluation.rows if row.error is None or row.error.phase != "worker"}
