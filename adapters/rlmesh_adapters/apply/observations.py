"""Observations: a batch as the environment gives it becomes a batch as the model wants it.

Axes: M rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from rlmesh_adapters.batches import Batch, row_of
from rlmesh_adapters.documents.trees import Tree
from rlmesh_adapters.errors import describe_error, is_fault
from rlmesh_adapters.frames import FrameWindow
from rlmesh_adapters.paths import show_path, walk
from rlmesh_adapters.plans import CustomPlan, ImagePlan, ObservationPlan, StatePlan, TextPlan

from .errors import ApplyError
from .images import ImageStage
from .states import StateStage


class ObservationStage:
    """Assembles the model's input, and keeps the windows of inputs that stack frames.

    skeleton: the structure of the input, the number of a plan at each leaf. plans: of the leaves.
    """

    def __init__(self, skeleton: Tree, plans: Sequence[ObservationPlan]) -> None:
        self._skeleton = skeleton
        self._stages = [_stage(plan) for plan in plans]
        self._windows = {
            number: FrameWindow(plan.stack)
            for number, plan in enumerate(plans)
            if isinstance(plan, (ImagePlan, StatePlan)) and plan.stack > 1
        }
        self._pending: list[tuple[FrameWindow, Sequence[str], Any]] = []

    @property
    def has_windows(self) -> bool:
        """Whether every step of an episode must be seen, asked or not."""
        return bool(self._windows)

    def apply(self, observations: Batch, ids: Sequence[str], rows: int | None = None) -> Batch:
        """Return the model's input for M rows, in memory of its own; windows move on with `commit`.

        observations: (M, ...). ids: of the M episodes. rows: M, where no window needs the ids.

        Raises ApplyError, naming rows, for values that are not what was promised.
        """
        rows = len(ids) if rows is None else rows
        if not self._windows:
            return _filled(self._skeleton, [stage.apply(observations, rows) for stage in self._stages])
        self._pending.clear()
        leaves = []
        for number, stage in enumerate(self._stages):
            leaf = stage.apply(observations, rows)
            window = self._windows.get(number)
            if window is not None:
                # The frame itself is kept: the policy may write into the window that it is handed.
                self._pending.append((window, ids, leaf))
                leaf = window.look(ids, leaf)
            leaves.append(leaf)
        return _filled(self._skeleton, leaves)

    def commit(self) -> None:
        """Keep the frames of the last `apply`; what failed before that has not moved anything on."""
        for window, ids, frames in self._pending:
            window.keep(ids, frames)
        self._pending.clear()

    def observe(self, observations: Batch, ids: Sequence[str]) -> None:
        """Let the windows see a step that is replayed without asking."""
        # All inputs first: either every window of an episode moves on, or none.
        seen = [
            (window, self._stages[number].apply(observations, len(ids)))
            for number, window in self._windows.items()
        ]
        for window, frames in seen:
            window.keep(ids, frames)

    def evict(self, episode_id: str) -> None:
        """Forget an episode's frames."""
        for window in self._windows.values():
            window.evict(episode_id)


def _filled(skeleton: Tree, leaves: Sequence[Any]) -> Batch:
    if isinstance(skeleton, dict):
        return {key: _filled(inner, leaves) for key, inner in skeleton.items()}
    if isinstance(skeleton, tuple):
        return tuple(_filled(inner, leaves) for inner in skeleton)
    return leaves[skeleton]


def _stage(plan: ObservationPlan) -> Any:
    if isinstance(plan, ImagePlan):
        return _Camera(plan)
    if isinstance(plan, StatePlan):
        return StateStage(plan)
    return _Texts(plan) if isinstance(plan, TextPlan) else _Custom(plan)


class _Camera:
    """An image input: finds its camera in the batch."""

    def __init__(self, plan: ImagePlan) -> None:
        self._plan = plan
        self._stage = ImageStage(plan)

    def apply(self, observations: Batch, rows: int) -> Any:
        source = None if self._plan.source is None else walk(observations, self._plan.source)
        try:
            return self._stage.apply(source, rows)
        except ApplyError:
            raise
        except ValueError as error:
            message = f'image "{show_path(self._plan.placement)}": {error}'
            raise ApplyError(dict.fromkeys(range(rows), message)) from error


class _Texts:
    """A text input: a list of M texts, or of M lists of one."""

    def __init__(self, plan: TextPlan) -> None:
        self._plan = plan

    def apply(self, observations: Batch, rows: int) -> list[Any]:
        plan = self._plan
        texts = [plan.fill] * rows if plan.source is None else walk(observations, plan.source)
        wrong = [row for row, text in enumerate(texts) if not isinstance(text, str)]
        if wrong:
            name = f'text "{show_path(plan.placement)}"'
            raise ApplyError.each(wrong, lambda row: f"{name}: expected text, got {type(texts[row]).__name__}")
        return [[text] for text in texts] if plan.container == "list" else list(texts)


class _Custom:
    """An input of the user's own, row by row; arrays of one shape are stacked."""

    def __init__(self, plan: CustomPlan) -> None:
        self._plan = plan

    def apply(self, observations: Batch, rows: int) -> Any:
        made: list[Any] = []
        wrong: dict[int, str] = {}
        name = f'custom input "{show_path(self._plan.placement)}" ({self._plan.reference})'
        for row in range(rows):
            try:
                # A copy: what it writes into is what other inputs are made of, too.
                value = self._plan.transform(deepcopy(row_of(observations, row)))
                made.append(np.asarray(value) if isinstance(value, (int, float)) else value)
            except BaseException as error:  # a function of the user's may raise anything
                if not is_fault(error):
                    raise
                wrong[row] = f"{name}: {describe_error(error)}"
        if wrong:
            raise ApplyError(wrong)
        if all(isinstance(value, (np.ndarray, np.generic)) for value in made):
            arrays = [np.asarray(value) for value in made]
            if len({array.shape for array in arrays}) == 1:
                return np.stack(arrays)
        return made
