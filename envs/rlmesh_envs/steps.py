"""What lanes give back: the rows of those that were reset or stepped.

Axes: R stepped lanes in the order they were named, K lanes at their first observation.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import Batch
from rlmesh_adapters.errors import Failure, failure_from

#: One lane's info dict, as its environment gave it.
Info = dict[str, Any]


class LaneResets(msgspec.Struct, gc=False):
    """Lanes that stand at the first observation of an episode.

    lanes: lane numbers.
    observations: (K, ...) in the order of `lanes`; undefined in the rows of failures.
    infos: K info dicts of the resets.
    failures: row -> why the reset failed.
    casts: what loses precision when observations are stored in their space's dtype, or empty.
    """

    lanes: Sequence[int]
    observations: Batch
    infos: Sequence[Info]
    failures: Mapping[int, Failure] = msgspec.field(default_factory=dict)
    casts: str = ""


class LaneSteps(msgspec.Struct, gc=False):
    """One step of R lanes.

    observations: (R, ...); arrays are new at every step and may be kept.
    rewards: R finite numbers, of float64 precision; undefined in the rows of failures.
    ended: (row, terminated, truncated) of the lanes whose episode ended with this step.
    infos: R info dicts, or None if all are empty.
    failures: row -> why the step failed.
    started: lanes that an autoreset brought to the first observation of a new episode.
    finals: row -> last observation of an episode, where the row of an ended lane shows the next one already; None
        where rows show what episodes ended with.
    """

    observations: Batch
    rewards: Sequence[float] | npt.NDArray[np.float64]
    ended: list[tuple[int, bool, bool]]
    infos: Sequence[Info] | None = None
    failures: Mapping[int, Failure] = msgspec.field(default_factory=dict)
    started: LaneResets | None = None
    finals: Mapping[int, Any] | None = None


def scalar_reward(reward: Any) -> float:
    """Return a reward as a float64 number.

    Takes real numbers and arrays of exactly one of them. Raises ValueError, with what came, for the rest.
    """
    if isinstance(reward, (Real, np.bool_)) or _is_decimal(reward):
        try:
            return float(reward)
        except OverflowError:
            raise ValueError(f"the reward is a number of {len(str(reward))} digits") from None
    if isinstance(reward, (str, bytes)) or reward is None:
        raise ValueError(f"the reward is {reward!r}, expected a number")
    array = np.asarray(reward)
    if isinstance(reward, np.ndarray) and array.dtype == object and array.size == 1:
        (inside,) = array.flat
        return scalar_reward(inside)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"the reward is {type(reward).__name__} of {array.dtype}, expected a number")
    if array.size != 1:
        raise ValueError(f"the reward has shape {array.shape}, expected one number")
    return float(array.reshape(-1)[0])


def _is_decimal(reward: Any) -> bool:
    # Whoever pays in decimals has imported them.
    decimal = sys.modules.get("decimal")
    return decimal is not None and isinstance(reward, decimal.Decimal)


def bad_reward(reward: float) -> Failure:
    """Describe a reward that is NaN or infinite."""
    return Failure(phase="step", message=f"the environment's reward is {reward}")


def check_info(info: Any) -> Info:
    """Return an info dict; raise ValueError for what is none."""
    if info.__class__ is not dict and not isinstance(info, Mapping):
        raise ValueError(f"the info is {type(info).__name__}, expected a dict")
    return cast("Info", info)


def reset_pair(answer: Any) -> tuple[Any, Info | None]:
    """Return what a reset gave as (observation, info)."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        shown = f"{len(answer)} values" if isinstance(answer, (tuple, list)) else type(answer).__name__
        raise TypeError(f"reset returned {shown}, expected (observation, info)")
    return answer[0], answer[1]


def step_failure(error: BaseException) -> Failure:
    """Describe what went wrong in a step, also where its answer could not be taken apart."""
    trace = error.__traceback__
    if isinstance(error, (TypeError, ValueError)) and trace is not None and trace.tb_next is None:
        # Raised here and no deeper: the answer could not be taken apart.
        return Failure(
            phase="step",
            message=f"step did not return (observation, reward, terminated, truncated, info): {error}",
            mend="return these five, as gymnasium.Env.step does",
        )
    return failure_from(error, "step")
