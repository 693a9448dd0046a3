"""Merging: gymnasium's vector environments, whose merged infos keep what each lane said.

Gymnasium makes one array of a key, in the type of the first lane that reports it: where that is a whole number,
the fractions of all others are cut off, and an array of another shape ends the whole vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv


class _WideInfos:
    """Turns an array that cannot hold a lane's value into one of objects, which can."""

    def _add_info(self, vector_infos: dict[str, Any], env_info: dict[str, Any], env_num: int) -> dict[str, Any]:
        for key, value in env_info.items():
            column = vector_infos.get(key)
            if isinstance(column, np.ndarray) and not isinstance(value, dict) and not _holds(column, value):
                vector_infos[key] = _objects(column)
        merged: dict[str, Any] = super()._add_info(vector_infos, env_info, env_num)  # type: ignore[misc]
        return merged


class WideSyncVectorEnv(_WideInfos, SyncVectorEnv):
    """SyncVectorEnv; see above."""


class WideAsyncVectorEnv(_WideInfos, AsyncVectorEnv):
    """AsyncVectorEnv; see above."""


def _holds(column: npt.NDArray[Any], value: Any) -> bool:
    """Tell whether a row of a column can hold a value as it is."""
    if column.dtype.hasobject:
        return True
    given = np.asarray(value)
    return given.shape == column.shape[1:] and np.can_cast(given.dtype, column.dtype)


def _objects(column: npt.NDArray[Any]) -> npt.NDArray[np.object_]:
    objects = np.empty(len(column), np.object_)
    for row, value in enumerate(column):
        objects[row] = value
    return objects
