"""Modules left in training mode: put into eval mode for a run, and put back as they were."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .errors import faults_suppressed, is_fault
from .insides import get_quietly, objects_inside


class EvalMode:
    """Holds the training flags that a policy had before `enter`, and restores them in `leave`."""

    def __init__(self) -> None:
        self._flags: list[tuple[Any, bool]] = []

    def enter(self, policy: object) -> None:
        """Put every module found in `policy` that is in training mode into eval mode.

        A module is whatever has a boolean `training`, as in Torch; its `eval` switches it. Found through
        attributes, containers and functions, and through `modules()` where there is one.
        """
        known = {id(module) for module, _ in self._flags}
        found = [
            (module, bool(get_quietly(module, "training")))
            for module in _modules(policy)
            if id(module) not in known
        ]
        self._flags.extend(found)
        for module, was_training in found:
            switch = get_quietly(module, "eval")
            if was_training and get_quietly(module, "training") and callable(switch):
                switch()

    @property
    def count_training(self) -> int:
        """How many modules stood in training mode."""
        return sum(flag for _, flag in self._flags)

    def leave(self) -> None:
        """Restore every module's own flag; parts that were frozen in eval mode stay so."""
        # `train` of a parent reaches its children, so each pass settles one more level.
        for _ in self._flags:
            wrong = [
                (module, flag) for module, flag in self._flags if bool(get_quietly(module, "training")) != flag
            ]
            if not wrong:
                break
            for module, flag in wrong:
                _set(module, flag)
        self._flags.clear()


def _set(module: Any, flag: bool) -> None:
    try:
        module.training = flag
    except BaseException as error:
        if not is_fault(error):
            raise
        with faults_suppressed():
            module.train(flag)


def _modules(policy: object) -> Iterator[Any]:
    seen: set[int] = set()
    for item in objects_inside(policy):
        if _has_flag(item) and id(item) not in seen:
            parts = get_quietly(item, "modules")
            # Torch keeps children in a place of its own, and lists them in the order of their making.
            for module in (item, *(parts() if callable(parts) else ())):
                if id(module) not in seen:
                    seen.add(id(module))
                    yield module


def _has_flag(item: object) -> bool:
    return isinstance(get_quietly(item, "training"), bool)
