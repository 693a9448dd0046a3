"""Adapter: a resolved route at work, between an environment's batches and a model's.

Axes: M rows, H actions of a chunk.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .actions import ActionSeam
from .apply.actions import ActionStage
from .apply.errors import ApplyError, failures_of
from .apply.observations import ObservationStage
from .batches import Batch, take_rows
from .errors import Failure
from .predictions import Prediction
from .resolve.resolving import Resolved
from .spaces import SpaceView, frozen_array

#: Types in which a model may put out its numbers.
_NUMBERS = frozenset(np.dtype(name) for name in ("bool", "int32", "int64", "float16", "float32", "float64"))


class Adapter:
    """Assembles what the model sees, and makes actions of what it puts out.

    resolved: the plans. action: space of one action of the environment.
    """

    def __init__(self, resolved: Resolved, action: SpaceView) -> None:
        self.resolved = resolved
        self.observations = ObservationStage(resolved.skeleton, resolved.plans)
        self.actions = ActionStage(resolved.action, action)
        #: Checks shape and type of the model's flat output.
        self.seam = ActionSeam(_flat_view(resolved.action.in_dim))
        self.seam.accepts = _all_finite
        self.seam.quick_dtypes = _NUMBERS
        #: What the model put out last, before it was made into actions.
        self.outputs: npt.NDArray[Any] | None = None

    def adapt(self, prediction: Prediction, rows: Batch) -> Prediction:
        """Return a prediction of the model as one of the environment's actions.

        prediction: with actions (M, in_dim) or (M, H, in_dim). rows: (M, ...) observations it was asked for.
        """
        self.outputs = prediction.actions
        if prediction.actions is None:
            return prediction
        failures = dict(prediction.failures)
        if not failures:
            try:
                actions, clipped = self.actions.apply(prediction.actions, rows)
            except ApplyError as error:
                failures = failures_of(error)
            else:
                prediction.actions, prediction.clipped = actions, clipped
                return prediction
        return self._adapt_rest(prediction, rows, failures)

    def _adapt_rest(self, prediction: Prediction, rows: Batch, failures: dict[int, Failure]) -> Prediction:
        """Convert the rows that can be; the others keep undefined actions, which nobody executes."""
        outputs = prediction.actions
        while True:
            good = [row for row in range(len(outputs)) if row not in failures]
            if not good:
                return _replaced(prediction, None, None, failures)
            chosen = take_rows(rows, good) if self.actions.needs_observation else None
            try:
                part, cut = self.actions.apply(outputs[good], chosen)
                break
            except ApplyError as error:
                failures.update({good[place]: failure for place, failure in failures_of(error).items()})
        actions = np.zeros((len(outputs), *part.shape[1:]), part.dtype)
        actions[good] = part
        clipped = None
        if cut is not None:
            clipped = np.zeros((len(outputs), *cut.shape[1:]), np.bool_)
            clipped[good] = cut
        return _replaced(prediction, actions, clipped, failures)


def _all_finite(outputs: npt.NDArray[Any]) -> bool:
    return outputs.dtype.kind != "f" or b"\x00" not in np.isfinite(outputs).tobytes()


def _replaced(prediction: Prediction, actions: Any, clipped: Any, failures: dict[int, Failure]) -> Prediction:
    prediction.actions, prediction.clipped, prediction.failures = actions, clipped, failures
    return prediction


def _flat_view(width: int) -> SpaceView:
    return SpaceView(
        kind="box",
        shape=(width,),
        dtype=np.dtype(np.float64),
        low=frozen_array(-np.inf, shape=(width,)),
        high=frozen_array(np.inf, shape=(width,)),
    )
