"""ConfiguredRoute: one policy paired with one environment's spaces, ready to be asked.

Axes: M asking rows, H actions of a chunk.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .advisories import AdvisoryBook
from .batches import Batch, leaves
from .bounds import Bounds
from .context import EpisodeContext
from .contract import RoutePlan
from .errors import ActionError, Failure, PolicyCallError, failure_from
from .instances import Instances
from .predictions import Prediction
from .roster import check_episode_ids
from .spaces import SpaceView


class ConfiguredRoute:
    """The engine's side of one route; calls are serialised by a lock of its own.

    plan: how it runs. instances: the policy. observation: space of one observation.
    advisories: where what is degraded is noted.
    """

    def __init__(
        self, plan: RoutePlan, instances: Instances, observation: SpaceView, advisories: AdvisoryBook
    ) -> None:
        self.plan = plan
        self.chunk_length: int | None = None
        self._instances = instances
        self._ask = instances.predict
        self._advisories = advisories
        self._watches = _watches(observation)
        self._is_inside: Callable[[Batch], bool] = self._is_inside_tree
        if not self._watches:
            self._is_inside = _is_anything
        elif observation.is_array:
            self._is_inside = self._watches[0][2].all_inside
        self._lock = threading.Lock()
        self._known: Sequence[EpisodeContext] | None = None
        self._has_answered = False

    def predict(self, rows: Batch, episodes: Sequence[EpisodeContext]) -> Prediction:
        """Ask the policy for the asking rows' next actions; see AdapterEngine.predict."""
        with self._lock:
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

    def end_episodes(self, episodes: Sequence[EpisodeContext]) -> None:
        """Forget what is kept for ended episodes, and tell the policy."""
        with self._lock:
            self._known = None
            for episode in episodes:
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
        if failure is not None and failure.phase == "policy":
            raise _first_call_failed(failure, episode)
        self._has_answered = True
        if not self.plan.is_chunked or prediction.actions is None:
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
    return PolicyCallError(
        f"the policy failed on its very first call ({episode.episode_id}, step 0): {failure.message}",
        where=failure.detail,
        mend=failure.mend or "run the policy on one observation by hand; nothing was scored",
    )


def _shown(value: Any) -> str:
    text = str(value.tolist())
    return text if len(text) <= 80 else text[:77] + "..."
