"""Asking: who is asked for actions at a step, and what each running lane does next.

Axes: R running lanes (rows of the roster), M asking rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import Batch, take_rows
from rlmesh_adapters.chunks import ChunkReplay, with_chunk_axis
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.contract import RoutePlan
from rlmesh_adapters.errors import NO_FAILURES, Failure
from rlmesh_adapters.predictions import Prediction
from rlmesh_adapters.roster import Roster, ids_of

from .plays import Play
from .tallies import Shares, Tally

#: Actions (R, ...), which were clipped, and rows that have none because their policy failed.
NextActions = tuple[Batch, npt.NDArray[np.bool_] | None, Mapping[int, Failure]]


#: Takes observations (M, ...) and their M episodes.
Observe = Callable[[Batch, Sequence[EpisodeContext]], None]


class Asking:
    """Asks the policy for lanes whose queue is empty, and replays what was planned for the others.

    predict: the engine's door. replay: the queues. plan: how the route runs.
    plays, shares, tally: of the loop; calls are counted in them.
    on_answer: called once, when the policy's first call went well. observe: shown every step that is replayed.
    has_answered: whether the first call went well.
    seconds: spent inside the policy since the loop set it to zero; direct calls of `predict` are not in it.
    """

    def __init__(
        self,
        predict: Callable[[Batch, Sequence[EpisodeContext]], Prediction],
        replay: ChunkReplay,
        *,
        plan: RoutePlan,
        plays: Mapping[int, Play],
        shares: Shares,
        tally: Tally,
        on_answer: Callable[[], None],
        observe: Observe | None = None,
    ) -> None:
        self.predict = predict
        self._observe = observe
        self.seconds = 0.0
        self.wants_step = plan.wants_context
        self._is_chunked, self._is_ensembled = plan.is_chunked, plan.is_ensembled
        self._is_batched = plan.is_batched
        self._replay = replay
        self._plays, self._shares, self._tally = plays, shares, tally
        self._on_answer = on_answer
        self.has_answered = False
        # Episodes whose windows hold the present step already: a neighbour failed before it was taken.
        self._shown: set[str] = set()

    def is_direct(self, roster: Roster) -> bool:
        """Tell whether every lane is asked at every step and nothing is queued for any.

        The loop then calls `predict` itself and executes the answer at once.
        """
        return (
            not self._is_chunked and self.has_answered and roster.count > 0 and self._replay.asking(roster) is None
        )

    def next_actions(self, roster: Roster, observations: Batch, since: int) -> NextActions:
        """Return every running lane's next action, or the failures of those that have none.

        observations: (R, ...). since: vector steps since the shares were added up.
        """
        if not roster.count:
            return None, None, NO_FAILURES
        asking = self._replay.asking(roster)
        if self._observe is not None and asking is not None:
            self._show_replayed(roster, observations, asking, self._observe)
        if asking is None or asking:
            prediction = self._ask(roster, observations, asking, since)
            failures = self.queue(roster, asking, prediction)
            if failures:
                return None, None, failures
        self._shown.clear()
        actions, clipped = self._replay.pop(roster)
        return actions, clipped, NO_FAILURES

    def _show_replayed(self, roster: Roster, observations: Batch, asking: Sequence[int], observe: Observe) -> None:
        """Let frame windows see what lanes see that only replay."""
        asked = set(asking)
        rows = [
            row
            for row, episode in enumerate(roster.episodes)
            if row not in asked and episode.episode_id not in self._shown
        ]
        if rows:
            observe(take_rows(observations, rows), [roster.episodes[row] for row in rows])

    def _ask(self, roster: Roster, observations: Batch, asking: Sequence[int] | None, since: int) -> Prediction:
        """Ask for the given rows of the roster; None is all of them."""
        if asking is None:
            batch, episodes = observations, roster.episodes
            self._shares.calls += 1
        else:
            batch = take_rows(observations, asking)
            episodes = tuple(roster.episodes[row] for row in asking)
            for row in asking:
                self._plays[roster.lanes[row]].calls += 1
        if self.wants_step:
            self.set_steps(roster, since)
        prediction = self.predict(batch, episodes)
        self.seconds += prediction.seconds
        self.count_calls(1, len(episodes))
        if not self.has_answered:
            self.has_answered = True
            self._on_answer()
        return prediction

    def count_calls(self, times: int, rows: int) -> None:
        """Count so many questions for so many rows each: a call each, or one for each of their rows."""
        self._tally.add_calls(times if self._is_batched else times * rows, times * rows)

    def set_steps(self, roster: Roster, since: int) -> None:
        """Tell each episode's context the step that its policy is asked for."""
        now = self._shares.steps + since
        for lane, context in zip(roster.lanes, roster.episodes, strict=True):
            context.step = now - self._plays[lane].begun_step

    def queue(self, roster: Roster, asking: Sequence[int] | None, prediction: Prediction) -> Mapping[int, Failure]:
        """Queue what a call gave for the asking rows; return the failures by row of the roster."""
        rows = range(roster.count) if asking is None else asking
        actions, clipped, failures = prediction.actions, prediction.clipped, prediction.failures
        if self._is_chunked:
            self._count_planned(roster, asking, prediction)
        elif actions is not None:
            actions = with_chunk_axis(actions)
            clipped = None if clipped is None else clipped[:, None]
        if not failures:
            self._replay.load(roster, asking, actions, prediction.lengths, clipped)
            return NO_FAILURES
        good = [place for place in range(len(rows)) if place not in failures]
        if good:
            lengths = prediction.lengths
            self._replay.load(
                roster,
                [rows[place] for place in good],
                take_rows(actions, good),
                None if lengths is None else [lengths[place] for place in good],
                None if clipped is None else clipped[good],
            )
        self._shown.update(ids_of(roster.episodes))
        return {rows[place]: failure for place, failure in failures.items()}

    def _count_planned(self, roster: Roster, asking: Sequence[int] | None, prediction: Prediction) -> None:
        if asking is None and prediction.planned_each is None and not prediction.failures:
            self._shares.planned += prediction.planned
            return
        for place, row in enumerate(range(roster.count) if asking is None else asking):
            if place not in prediction.failures:
                self._plays[roster.lanes[row]].planned += prediction.planned_for(place)

    def account(self, play: Play, failure: Failure | None) -> tuple[int | None, int]:
        """Return how many actions were planned for an episode, and how many of them are still queued.

        failure: why it ends, if it could not be finished; a call that gave nothing planned nothing.
        Averaged plans are not counted: none of them is executed as it is.
        """
        if self._is_ensembled:
            return None, 0
        if not self._is_chunked:
            gave_nothing = failure is not None and failure.phase not in ("reset", "step")
            return play.calls_until(self._shares) - gave_nothing, 0
        return play.planned + self._shares.planned - play.before.planned, self._replay.left(play.lane)

    def forget(self, lane: int) -> None:
        """Drop what was planned for a lane's episode."""
        self._replay.clear(lane)
