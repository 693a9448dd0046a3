"""Infos, lane by lane: copied, merged dicts taken apart, success and metrics read.

A key that a lane did not report is absent. It is never False and never 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import is_fault

from .steps import Info

#: Where environments report success, in the order in which we look.
SUCCESS_KEYS = ("is_success", "success")


# Whatever else an info holds may be changed after it was handed out.
_UNCHANGING = frozenset(np.ScalarType) - {memoryview, np.void} | {type(None)}


def own_info(info: Mapping[str, Any]) -> Info:
    """Return a copy of an info, with copies of the dicts (as plain ones), lists and arrays in it.

    All lanes are stepped before their infos are read, and environments may hand out parts of one and the same dict
    or array. Objects of other types, and infos that are no dict, stay as they are; so does what cannot be copied.
    """
    if not isinstance(info, dict):
        return cast("Info", info)
    if _UNCHANGING.issuperset(map(type, info.values())):
        return dict(info)
    return {key: _own_if_possible(part) for key, part in info.items()}


def _own_if_possible(value: Any) -> Any:
    try:
        return _own(value, {})
    except BaseException as error:  # nested too deep, or of a type of the user's; it may be that nobody reads it
        if not is_fault(error):
            raise
        return value


def _own(value: Any, copies: dict[int, Any]) -> Any:
    """Return a value's copy; copies: of the containers that were met, by id, for one may hold itself."""
    if value.__class__ in _UNCHANGING:
        return value
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, np.ndarray):
        copied_array = value.copy()
        if value.dtype.hasobject and value.dtype.names is None:
            copied_array[...] = _object_array([_own(part, copies) for part in value.flat], value.shape)
        return copied_array
    if isinstance(value, dict):
        copied: dict[Any, Any] = {}
        copies[id(value)] = copied
        copied.update((key, _own(part, copies)) for key, part in value.items())
        return copied
    if isinstance(value, list):
        parts: list[Any] = []
        copies[id(value)] = parts
        parts.extend(_own(part, copies) for part in value)
        return parts
    return tuple(_own(part, copies) for part in value) if value.__class__ is tuple else value


def _object_array(parts: list[Any], shape: tuple[int, ...]) -> npt.NDArray[np.object_]:
    # Filled one by one: numpy would look into lists of equal lengths.
    array = np.empty(len(parts), np.object_)
    for place, part in enumerate(parts):
        array[place] = part
    return array.reshape(shape)


def split_infos(infos: Mapping[str, Any], num_lanes: int) -> list[Info]:
    """Take the merged infos of a vector environment apart.

    Knows the layouts of Gymnasium: arrays with a `_key` mask of the lanes that reported, nested dicts of
    them, and `final_info` as a list of dicts (0.29) or a dict of arrays (1.x, SAME_STEP).

    Returns one dict a lane, holding only what that lane reported.
    """
    lanes: list[Info] = [{} for _ in range(num_lanes)]
    masks = {f"_{key}" for key in infos}
    for key, value in infos.items():
        if key in masks:
            continue
        mask = infos.get(f"_{key}")
        for lane, part in enumerate(_parts(value, num_lanes)):
            if part is not _ABSENT and (mask is None or bool(mask[lane])):
                lanes[lane][key] = part
    return lanes


_ABSENT = object()


def _parts(value: Any, num_lanes: int) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return [part or _ABSENT for part in split_infos(value, num_lanes)]
    if isinstance(value, (list, tuple)) and len(value) == num_lanes:
        return [_ABSENT if part is None else part for part in value]
    if isinstance(value, np.ndarray) and value.ndim and len(value) == num_lanes:
        return [_ABSENT if part is None else part for part in value]
    return [value] * num_lanes


def read_flag(info: Mapping[str, Any], key: str) -> bool | None:
    """Return a yes-or-no value of an info, None if it is absent or is no single truth value.

    Takes bools, the numbers 0 and 1, and one-element arrays of them. Dots lead into nested dicts.
    """
    value = info.get(key)
    if value is True or value is False:
        return value
    number = read_number(info, key)
    # A grade such as 0.3 is neither; a rule on the metric may judge it.
    return bool(number) if number in (0, 1) else None


def read_number(info: Mapping[str, Any], key: str) -> float | None:
    """Return a number of an info, None if it is absent or not one number; it may be nan or infinite.

    Takes bools, numbers and one-element arrays. Dots lead into nested dicts, unless the key itself is there.
    """
    value: Any = info.get(key, _ABSENT)
    if value is _ABSENT:
        value = info
        for part in key.split("."):
            if not isinstance(value, Mapping) or part not in value:
                return None
            value = value[part]
    if isinstance(value, (str, bytes)) or value is None:
        return None
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or array.size != 1:
            return None
        return float(array.reshape(-1)[0])
    except BaseException as error:  # a value of the user's may raise anything when it is looked at
        if not is_fault(error):
            raise
        return None
