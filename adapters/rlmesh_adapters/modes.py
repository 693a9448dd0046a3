"""Modules left in training mode: put into eval mode for a run, and put back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MAX_OBJECTS = 20_000
# Longer containers hold data, not modules.
_MAX_CONTAINER = 1_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None))


class EvalMode:
    """Holds the training flags that a policy had before `enter`, and restores them in `leave`."""

    def __init__(self) -> None:
        self._flags: list[tuple[Any, bool]] = []

    def enter(self, policy: object) -> None:
        """Put every module found in `policy` that is in training mode into eval mode.

        A module is whatever has a boolean `training`, as in Torch; its `eval` switches it. Found through
        attributes, lists, tuples and dicts, and through `modules()` where there is one.
        """
        known = {id(module) for module, _ in self._flags}
        found = [(module, bool(module.training)) for module in _modules(policy) if id(module) not in known]
        self._flags.extend(found)
        for module, was_training in found:
            if was_training and module.training and callable(getattr(module, "eval", None)):
                module.eval()

    @property
    def count_training(self) -> int:
        """How many modules stood in training mode."""
        return sum(flag for _, flag in self._flags)

    def leave(self) -> None:
        """Restore every module's own flag; parts that were frozen in eval mode stay so."""
        # `train` of a parent reaches its children, so each pass settles one more level.
        for _ in self._flags:
            wrong = [(module, flag) for module, flag in self._flags if bool(module.training) != flag]
            if not wrong:
                break
            for module, flag in wrong:
                _set(module, flag)
        self._flags.clear()


def _set(module: Any, flag: bool) -> None:
    try:
        module.training = flag
    except (Exception, SystemExit):
        try:
            module.train(flag)
        except (Exception, SystemExit):
            return


def _modules(root: object) -> Iterator[Any]:
    seen: set[int] = set()
    waiting: list[object] = [root]
    while waiting and len(seen) < _MAX_OBJECTS:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (_PLAIN, type)) or _is_array(item):
            continue
        seen.add(id(item))
        if isinstance(item, (dict, list, tuple, set)):
            if len(item) <= _MAX_CONTAINER:
                waiting.extend(item.values() if isinstance(item, dict) else item)
        else:
            if _has_flag(item):
                yield item
            waiting.extend(reversed(list(_attributes(item))))


def _is_array(item: object) -> bool:
    return _get(item, "__array_interface__") is not None or _get(item, "__dlpack__") is not None


def _get(item: object, name: str) -> Any:
    try:
        return getattr(item, name, None)
    except (Exception, SystemExit):  # a user's attribute may raise anything
        return None


def _has_flag(item: object) -> bool:
    try:
        return isinstance(getattr(item, "training", None), bool)
    except (Exception, SystemExit):  # a user's property may raise anything
        return False


def _attributes(item: object) -> Iterator[object]:
    if callable(modules := _get(item, "modules")) and _has_flag(item):
        yield from modules()
    for kind in type(item).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        yield from (_get(item, name) for name in ([slots] if isinstance(slots, str) else slots))
    values = _get(item, "__dict__")
    if isinstance(values, dict) and type(item).__name__ != "module":
        yield from values.values()
    elif isinstance(values, dict):
        # Of a module that is itself the policy only what the file defines, not what it imports.
        yield from (
            value
            for name, value in values.items()
            if not name.startswith("__") and type(value).__name__ != "module"
        )
