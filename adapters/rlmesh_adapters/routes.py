"""ConfiguredRoute: one policy paired with one environment's spaces, ready to be asked.

Axes: M asking rows, H actions of a chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .advisories import AdvisoryBook
from .apply.errors import ApplyError, failures_of
from .batches import Batch, leaves, take_rows
from .bounds import Bounds
from .context import EpisodeContext
from .contract import RoutePlan
from .errors import ActionError, Failure, PolicyCallError, failure_from, shortened
from .instances import Instances
from .predictions import Prediction, merge
from .roster import check_episode_ids, ids_of
from .spaces import SpaceView

if TYPE_CHECKING:  # a route without conversion does not need them
    from .adapter import Adapter
    from .ensembles import Ensembler


class ConfiguredRoute:
    """The engine's side of one route; calls are serialised by a lock of its own.

    plan: how it runs. instances: the policy. observation: space of one observation.
    advisories: where what is degraded is noted. adapter: converts, None hands everything on as it is.
    ensembler: averages overlapping chunks, None executes them one after the other.
    has_answered: whether a call that fails is a failure of its episode from the first one on.
    """

    def __init__(
        self,
        plan: RoutePlan,
        instances: Instances,
        observation: SpaceView,
        advisories: AdvisoryBook,
        *,
        adapter: Adapter | None = None,
        ensembler: Ensembler | None = None,
        has_answered: bool = False,
    ) -> None:
        self.plan = plan
        self.adapter = adapter
        self.chunk_length: int | None = None
        self._instances = instances
        self._ensembler = ensembler
        self._ask_policy = instances.predict
        self._ask = self._ask_policy
        if adapter is not None or ensembler is not None:
            self._ask = self._ask_converted
        self._advisories = advisories
        self._watches = _watches(observation)
        self._is_inside: Callable[[Batch], bool] = self._is_inside_tree
        if not self._watches:
            self._is_inside = _is_anything
        elif observation.is_array:
            self._is_inside = self._watches[0][2].all_inside
        self._lock = threading.Lock()
        self._acquire, self._release = self._lock.acquire, self._lock.release
        self._known: Sequence[EpisodeContext] | None = None
        self._has_answered = has_answered

    def watch(self, see: Callable[[Batch, Sequence[EpisodeContext]], None]) -> None:
        """Show the inputs (M, ...) of every policy call to somebody, before the policy gets them."""
        ask, is_direct = self._ask_policy, self._ask == self._ask_policy

        def predict(inputs: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
            see(inputs, episodes)
            return ask(inputs, episodes)

        self._ask_policy = predict
        if is_direct:
            self._ask = predict

    def trust(self) -> None:
        """Take the policy for one that has answered before."""
        self._has_answered = True

    def begin_episodes(self, episodes: Sequence[EpisodeContext]) -> None:
        """Tell the policy of episodes before it is asked in them; see AdapterEngine.begin_episodes."""
        with self._lock:
            self._instances.begin(episodes)

    def predict(self, rows: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask the policy for the asking rows' next actions; see AdapterEngine.predict."""
        # `with` takes twice as long, at every step.
        self._acquire()
        try:
            if episodes is not self._known:
                check_episode_ids(episodes)
                self._known = episodes
            if not self._is_inside(rows):
                self._note_outside(rows, episodes)
            try:
                prediction = self._ask(rows, episodes)
            except ActionError as error:
                if not self._has_answered:
                    raise
                failure = failure_from(error, "policy")
                return Prediction(None, failures=dict.fromkeys(range(len(episodes)), failure))
            if not self._has_answered:
                self._check_first(prediction, episodes[0])
            if prediction.lengths is not None or prediction.was_repeated:
                self._note_unusual(prediction)
            return prediction
        finally:
            self._release()

    def _ask_converted(self, rows: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask through the adapter; rows that cannot be assembled are not asked for."""
        prediction = self._ask_adapted(rows, episodes)
        if self._ensembler is not None and prediction.actions is not None:
            self._ensemble(prediction, episodes, self._ensembler)
        return prediction

    def _ask_adapted(self, rows: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        adapter = self.adapter
        if adapter is None:
            return self._ask_policy(rows, episodes)
        failures: dict[int, Failure] = {}
        good = list(range(len(episodes)))
        chosen, company = rows, episodes
        while True:
            try:
                # Only windows are kept by id.
                known = ids_of(company) if adapter.observations.has_windows else ()
                payload = adapter.observations.apply(chosen, known, len(company))
                break
            except ApplyError as error:
                failures.update({good[place]: failure for place, failure in failures_of(error).items()})
                good = [row for row in range(len(episodes)) if row not in failures]
                if not good:
                    return Prediction(None, failures=failures)
                chosen, company = take_rows(rows, good), [episodes[row] for row in good]
        prediction = self._ask_policy(payload, company)
        # Only now: a call that raised has not moved any window on.
        adapter.observations.commit()
        answer = adapter.adapt(prediction, chosen)
        if not failures:
            return answer
        merged = merge(len(episodes), [(good, answer)], failures, is_chunked="_chunk" in self.plan.corner)
        merged.planned, merged.was_repeated = answer.planned, answer.was_repeated
        return merged

    def _ensemble(self, prediction: Prediction, episodes: Sequence[EpisodeContext], ensembler: Ensembler) -> None:
        """Put the average of all that was planned for this step in the place of the new chunks."""
        chunks = prediction.actions
        good = [row for row in range(len(episodes)) if row not in prediction.failures]
        actions = chunks[:, 0].copy()
        if good:
            lengths = None if prediction.lengths is None else [prediction.lengths[row] for row in good]
            names = [episodes[row].episode_id for row in good]
            actions[good] = ensembler.average(names, chunks[good], lengths)
        prediction.actions, prediction.lengths = actions, None
        if prediction.clipped is not None:
            prediction.clipped = prediction.clipped[:, 0]

    def observe(self, rows: Batch, episodes: Sequence[EpisodeContext]) -> None:
        """Let frame windows see a step that is replayed without asking."""
        if self.adapter is None or not self.adapter.observations.has_windows:
            return
        with self._lock:
            known = list(range(len(episodes)))
            chosen, company = rows, episodes
            while known:
                try:
                    self.adapter.observations.observe(chosen, ids_of(company))
                    return
                except ApplyError as error:
                    # What cannot be assembled fails when it is asked for; the others' windows move on.
                    known = [row for place, row in enumerate(known) if place not in error.rows]
                    chosen, company = take_rows(rows, known), [episodes[row] for row in known]

    def end_episodes(self, episodes: Sequence[EpisodeContext]) -> None:
        """Forget what is kept for ended episodes, and tell the policy."""
        with self._lock:
            self._known = None
            for episode in episodes:
                if self.adapter is not None:
                    self.adapter.observations.evict(episode.episode_id)
                if self._ensembler is not None:
                    self._ensembler.evict(episode.episode_id)
                failure = self._instances.end(episode)
                if failure is not None:
                    self._advisories.add(
                        "episode-end-raised", "caution", f"on_episode_end raised: {failure.message}"
                    )

    def close(self) -> None:
        """Put training modes back and close the policy."""
        with self._lock:
            failure = self._instances.close()
        if failure is not None:
            self._advisories.add("close-raised", "info", f"close of the policy raised: {failure.message}")

    def _check_first(self, prediction: Prediction, episode: EpisodeContext) -> None:
        """Refuse to go on where the very first answer shows that none can be used."""
        failure = prediction.failures.get(0)
        if failure is not None and failure.phase in ("policy", "adapter"):
            raise _first_call_failed(failure, episode)
        self._has_answered = True
        if "_chunk" not in self.plan.corner or prediction.actions is None:
            return
        self.chunk_length = prediction.planned
        if prediction.planned < self.plan.horizon:
            raise ActionError(
                f"horizon is {self.plan.horizon}, but the policy's chunk holds {prediction.planned} actions",
                where=f"{self.plan.corner} of the policy",
                mend=f"use --horizon {prediction.planned} or less",
            )

    def _note_unusual(self, prediction: Prediction) -> None:
        if prediction.was_repeated:
            self._advisories.add(
                "batch-raised",
                "caution",
                f"`{self.plan.corner}` raised for a whole batch, and was asked again row by row",
            )
        lengths = [length for row, length in enumerate(prediction.lengths or []) if row not in prediction.failures]
        short = sum(length < self.plan.horizon for length in lengths)
        if short:
            self._advisories.add(
                "short-chunks",
                "info",
                f"chunks shorter than the horizon of {self.plan.horizon} (first: {min(lengths)}): "
                "those lanes ask earlier",
                count=short,
            )

    def _is_inside_tree(self, rows: Batch) -> bool:
        parts = leaves(rows)
        return all(bounds.all_inside(parts[leaf]) for _, leaf, bounds in self._watches)

    def _note_outside(self, rows: Batch, episodes: Sequence[EpisodeContext]) -> None:
        parts = leaves(rows)
        for name, leaf, bounds in self._watches:
            outside = bounds.outside(parts[leaf]).nonzero()[0].tolist()
            if not outside:
                continue
            code = f"observation-outside{'-' + name if name else ''}"
            message = ""
            if code not in self._advisories:  # a message with a whole image in it is not made at every step
                what = f"`{name}` of the observation" if name else "the observation"
                first, shown = episodes[outside[0]].episode_id, _shown(parts[leaf][outside[0]])
                message = f"{what} is outside its space, first in {first}: {shown}"
            self._advisories.add(code, "caution", message, count=len(outside))


def _is_anything(rows: Batch) -> bool:
    return True


def _watches(view: SpaceView) -> tuple[tuple[str, int, Bounds], ...]:
    """Return (name, number of the leaf, bounds) of every array leaf that could be outside its bounds."""
    found: list[tuple[str, SpaceView]] = []
    _walk(view, "", found)
    return tuple(
        (leaf, number, bounds)
        for number, (leaf, child) in enumerate(found)
        if child.is_array and not (bounds := Bounds(child)).is_free
    )


def _walk(view: SpaceView, path: str, found: list[tuple[str, SpaceView]]) -> None:
    if view.kind not in ("dict", "tuple"):
        found.append((path, view))
    for name, child in view.children:
        _walk(child, f"{path}.{name}" if path else str(name), found)


def _first_call_failed(failure: Failure, episode: EpisodeContext) -> PolicyCallError:
    who = "the adapter" if failure.phase == "adapter" else "the policy"
    return PolicyCallError(
        f"{who} failed on its very first call ({episode.episode_id}, step 0): {failure.message}",
        where=failure.detail,
        mend=failure.mend or "run the policy on one observation by hand; nothing was scored",
    )


def _shown(value: Any) -> str:
    return shortened(str(value.tolist()))
