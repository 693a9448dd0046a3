"""What policies return, as numpy arrays; no tensor library is imported for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def to_array(value: Any) -> npt.NDArray[Any]:
    """Return a policy's output as a numpy array.

    Takes arrays, numbers, nested lists, and tensors of Torch, JAX and the like: through `detach()` and
    `cpu()` where they exist, then `__array__` or DLPack. Half-precision floats that numpy has no type for
    are widened to float32.

    Raises ValueError for ragged lists, TypeError for what is no array at all.
    """
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) and _holds_tensors(value):
        return np.stack([to_array(part) for part in value])
    if hasattr(value, "detach"):
        return _from_tensor(value)
    array = _as_array(value)
    if array.dtype.kind == "O":
        raise TypeError(f"{type(value).__name__} is not an array of numbers")
    return array


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_tensors, value))
    return hasattr(value, "detach") or _is_dlpack_only(value)


def _is_dlpack_only(value: Any) -> bool:
    return hasattr(value, "__dlpack__") and not hasattr(value, "__array__")


def _as_array(value: Any) -> npt.NDArray[Any]:
    return np.from_dlpack(value) if _is_dlpack_only(value) else np.asarray(value)


def _from_tensor(tensor: Any) -> npt.NDArray[Any]:
    tensor = tensor.detach()
    if hasattr(tensor, "cpu"):
        tensor = tensor.cpu()
    try:
        return _as_array(tensor)
    except TypeError:
        # numpy has no bfloat16
        return np.asarray(tensor.float())
