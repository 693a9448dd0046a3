"""Plan records: every number of a route's plans as plain values, so that two conversions can be told apart."""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec
import numpy as np

from .paths import show_path
from .resolve.resolving import Resolved


def conversion_record(resolved: Resolved) -> dict[str, Any]:
    """Return what is done to observations and actions: by placement in the model's input, and for the action.

    What is as it is by default is left out. The text that `describe` gives names the steps, but not their numbers:
    statistics may come from a file that nothing else of the route shows.
    """
    return {
        "observation": {show_path(plan.placement): _plain(plan) for plan in resolved.plans},
        "action": _plain(resolved.action),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        defaults = {field.name: field.default for field in msgspec.structs.fields(value)}
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        return {name: _plain(part) for name, part in fields.items() if not _is_same(part, defaults[name])}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.dtype):
        return str(value)
    if isinstance(value, float) and not isfinite(value):
        return repr(value)  # JSON has none
    if callable(value):
        return f"{getattr(value, '__module__', '?')}:{getattr(value, '__qualname__', type(value).__name__)}"
    return value


def _is_same(value: Any, default: Any) -> bool:
    # True is 1, and 0.0 is False.
    return type(value) is type(default) and bool(value == default)
