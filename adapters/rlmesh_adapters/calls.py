"""One call of a policy's corner: rows in, checked actions out, failures by row.

Axes: M asking rows, H actions of a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from .accepting import Acceptance
from .actions import ActionSeam
from .batches import Batch, copy_batch, leaves, row_of, signature, take_rows
from .context import EpisodeContext
from .corners import Corner
from .errors import NO_FAILURES, ActionError, Failure, failure_from, is_fault
from .outputs import to_array
from .predictions import Prediction

#: Bytes up to which a batch is copied before a call.
_MOST_SPARE = 65_536
_UNCHANGING = frozenset((int, float, bool, str, type(None)))


class PolicyCaller:
    """Calls one corner of one policy instance.

    corner: the corner the route uses.
    seam: the action space's seam.
    horizon: most actions of a call that are executed.
    clock: returns seconds; tells the policy's own time from ours.
    """

    def __init__(self, corner: Corner, seam: ActionSeam, *, horizon: int, clock: Callable[[], float]) -> None:
        self.corner = corner
        self.states: dict[str, Any] = {}
        self._seam = seam
        self._horizon = horizon
        self._clock = clock
        self._acceptance = Acceptance(corner, seam, horizon)
        self._where = f"{corner.name} of the policy"
        self._seconds = 0.0
        self._is_plain = not (corner.horizon_name or corner.wants_context or corner.wants_state)
        self._is_quick = self._is_plain and corner.name == "predict_batch" and seam.view.is_array
        self._quick_call, self._accepts, self._dtypes = corner.call, seam.accepts, seam.quick_dtypes
        self._keeps_spare = False
        self._quick_rows, self._quick_shape = 0, (0, *seam.view.shape)

    def predict(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask for the actions of M rows.

        Exceptions of the policy become failures of their rows: a batched call that raises is repeated row by
        row, so that one bad row does not take its neighbours.

        Raises ActionError where the answer for the whole batch does not fit the space.
        """
        if not self._is_quick:
            return self._ask(batch, episodes)
        # The usual answer, an array that fits as it is, goes past the general conversion.
        rows = len(episodes)
        if rows != self._quick_rows:
            self._quick_rows, self._quick_shape = rows, (rows, *self._seam.view.shape)
            self._keeps_spare = _is_worth_keeping(batch, rows)
        spare = batch
        if self._keeps_spare:
            spare = batch.copy("K") if batch.__class__ is np.ndarray else copy_batch(batch)
        started = self._clock()
        try:
            raw = self._quick_call(batch)
        except BaseException as error:
            if not is_fault(error):
                raise
            before, self._seconds = self._seconds, self._seconds + self._clock() - started
            prediction = self._ask_again(error, spare, episodes)
            prediction.seconds = self._seconds - before
            return prediction
        spent = self._clock() - started
        if (
            raw.__class__ is np.ndarray
            and raw.shape == self._quick_shape
            and raw.dtype in self._dtypes
            and self._accepts(raw)
        ):
            return Prediction(raw, None, None, NO_FAILURES, 1, spent)
        prediction = self._acceptance.of_batch(raw, rows)
        prediction.seconds = spent
        return prediction

    def _ask(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        before = self._seconds
        prediction = (
            self._ask_batch(batch, episodes) if self.corner.is_batched else self._ask_each(batch, episodes)
        )
        prediction.seconds = self._seconds - before
        return prediction

    def _ask_batch(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask a batched corner once for all rows."""
        spare = copy_batch(batch) if _is_worth_keeping(batch, len(episodes)) else batch
        is_repeatable = self.corner.wants_context and len(episodes) > 1
        drawn = [episode.drawn for episode in episodes] if is_repeatable else []
        try:
            raw = self._call_batch(batch, episodes)
        except ActionError:
            raise
        except BaseException as error:
            if not is_fault(error):
                raise
            for episode, before in zip(episodes, drawn, strict=False):
                episode.draw_again(before)  # what the call drew is drawn once more
            return self._ask_again(error, spare, episodes)
        return self._acceptance.of_batch(raw, len(episodes))

    def _ask_again(self, error: BaseException, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        if len(episodes) == 1:
            return Prediction(None, failures={0: self._failure(error, batch)})
        return self._ask_alone(batch, episodes)

    def _call_batch(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Any:
        options = {} if self._is_plain else self._options(list(episodes))
        if self.corner.wants_state:
            options["state"] = [self.states.get(episode.episode_id) for episode in episodes]
        started = self._clock()
        try:
            answer = self.corner.call(batch, **options)
        finally:
            self._seconds += self._clock() - started
        if not self.corner.wants_state:
            return answer
        actions, states = self._with_state(answer)
        try:
            states = list(states)
        except TypeError:
            states = []
        if len(states) != len(episodes):
            raise ActionError(
                f"expected {len(episodes)} states, one a lane, got {len(states)}",
                where=self._where,
                mend="return the actions and a list of states, one for each observation",
            )
        self.states.update(zip((episode.episode_id for episode in episodes), states, strict=True))
        return actions

    def _call_row(self, row: Any, episode: EpisodeContext) -> Any:
        if self._is_plain:
            return self.corner.call(row)
        options = self._options(episode)
        if not self.corner.wants_state:
            return self.corner.call(row, **options)
        options["state"] = self.states.get(episode.episode_id)
        action, self.states[episode.episode_id] = self._with_state(self.corner.call(row, **options))
        return action

    def _options(self, context: EpisodeContext | list[EpisodeContext]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if self.corner.horizon_name:
            options[self.corner.horizon_name] = self._horizon
        if self.corner.wants_context:
            options["context"] = context
        return options

    def _with_state(self, answer: Any) -> tuple[Any, Any]:
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise ActionError(
                f"a corner that takes `state` returns (action, state), got {type(answer).__name__}",
                where=self._where,
                mend="return the new state beside the action",
            )
        return answer

    def _ask_each(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask an unbatched corner once a row, in row order."""
        raws: dict[int, Any] = {}
        failures: dict[int, Failure] = {}
        started = self._clock()
        for row, episode in enumerate(episodes):
            try:
                raws[row] = kept_answer(self._call_row(row_of(batch, row), episode))
            except BaseException as error:
                if not is_fault(error):
                    raise
                failures[row] = self._failure(error, row_of(batch, row))
        self._seconds += self._clock() - started
        return self._acceptance.of_rows(raws, failures, len(episodes))

    def _ask_alone(self, batch: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask a batched corner once a row, after it raised for all of them together."""
        raws: dict[int, Any] = {}
        failures: dict[int, Failure] = {}
        for row in range(len(episodes)):
            alone = take_rows(batch, [row])
            try:
                raws[row] = kept_answer(self._call_batch(alone, episodes[row : row + 1]))
            except BaseException as error:
                if not is_fault(error):
                    raise
                failures[row] = self._failure(error, alone)
        prediction = self._acceptance.of_rows(raws, failures, len(episodes), is_alone=True)
        prediction.was_repeated = True
        return prediction

    def _failure(self, error: BaseException, batch: Batch) -> Failure:
        failure = failure_from(error, "policy")
        return msgspec.structs.replace(
            failure, message=f"{failure.message} (in {self.corner.name}, input {signature(batch)})"
        )


def kept_answer(answer: Any) -> Any:
    """Return an answer that no later call changes: policies may write into one array again and again."""
    if answer.__class__ in _UNCHANGING or isinstance(answer, np.generic):
        return answer
    if isinstance(answer, np.ndarray):
        return answer.copy()
    if isinstance(answer, Mapping):
        return {key: kept_answer(part) for key, part in answer.items()}
    if isinstance(answer, (list, tuple)):
        parts = map(kept_answer, answer)
        return list(parts) if isinstance(answer, list) else tuple(parts)
    try:
        return to_array(answer).copy()
    except Exception:  # the seam says what it is
        return answer


def _is_worth_keeping(batch: Batch, rows: int) -> bool:
    """Tell whether a batch is copied before a call, for a policy that writes into it and then raises.

    Asking its rows again is for rare faults; copying images at every call would cost more than it is worth.
    """
    return rows > 1 and sum(map(_bytes_of, leaves(batch))) < _MOST_SPARE


def _bytes_of(leaf: Any) -> int:
    if isinstance(leaf, np.ndarray):
        return leaf.nbytes
    # Text cannot be written into.
    return 0 if all(isinstance(value, str) for value in leaf) else _MOST_SPARE
