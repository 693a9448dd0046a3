"""Random sources within reach: put into a known state before a call, and back after all of them."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

_MOST_OBJECTS = 5_000
_MOST_ITEMS = 1_000
_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.ndarray)


class RandomSources:
    """The global generators of Python, numpy and torch, and those that are found inside policies.

    `arrange` puts all of them into the state that belongs to a number; `restore` puts the global ones back.
    """

    def __init__(self) -> None:
        self._python = random.getstate()
        self._numpy = np.random.get_state()  # noqa: NPY002 - the legacy global state is what policies draw from
        self._torch = _torch()
        self._torch_state = None if self._torch is None else self._torch.get_rng_state()
        self._found: list[Any] = []

    def look_into(self, policy: object) -> None:
        """Find the generators that a policy holds; called again where it may have made some since."""
        self._found = list(_generators(policy, self._torch))

    def arrange(self, number: int) -> None:
        """Put every source into the state that belongs to `number`."""
        random.seed(number)
        np.random.seed(number)  # noqa: NPY002
        if self._torch is not None:
            self._torch.manual_seed(number)
        for generator in self._found:
            _seed(generator, number)

    def restore(self) -> None:
        """Put the global sources back as they were when this object was made."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)  # noqa: NPY002
        if self._torch is not None:
            self._torch.set_rng_state(self._torch_state)


def global_state() -> tuple[Any, ...]:
    """Return something that is equal only where the global sources of Python and numpy are in one state."""
    state: Any = np.random.get_state()  # noqa: NPY002
    return hash(random.getstate()), state[1].tobytes(), state[2]


def _torch() -> Any:
    # A policy that uses torch has imported it by now.
    torch = sys.modules.get("torch")
    return torch if torch is not None and hasattr(torch, "get_rng_state") else None


def _seed(generator: Any, number: int) -> None:
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        bits.state = type(bits)(number).state
    elif isinstance(generator, (np.random.RandomState, random.Random)):
        generator.seed(number)
    else:
        generator.manual_seed(number)


def _generators(root: object, torch: Any) -> Iterator[Any]:
    """Yield the generators inside an object: through attributes, containers, and what functions close over."""
    kinds: tuple[Any, ...] = (np.random.Generator, np.random.RandomState, random.Random)
    if torch is not None and hasattr(torch, "Generator"):
        kinds = (*kinds, torch.Generator)
    seen: set[int] = set()
    waiting: list[object] = [root]
    while waiting and len(seen) < _MOST_OBJECTS:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, _PLAIN):
            continue
        seen.add(id(item))
        if isinstance(item, kinds):
            yield item
        elif isinstance(item, (dict, list, tuple, set)):
            if len(item) <= _MOST_ITEMS:
                waiting.extend(item.values() if isinstance(item, dict) else item)
        else:
            waiting.extend(_inside(item))


def _inside(item: object) -> Iterator[object]:
    for cell in getattr(item, "__closure__", None) or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield getattr(item, "__self__", None)
    yield getattr(item, "__func__", None)
    yield getattr(item, "__wrapped__", None)
    defaults = getattr(item, "__defaults__", None)
    if isinstance(defaults, tuple):
        yield from defaults
    values = getattr(item, "__dict__", None)
    if isinstance(values, dict):
        names = values.items()
        if type(item).__name__ == "module":
            # Of a module only what it defines, not what it imports.
            names = [(name, value) for name, value in names if not name.startswith("__") and not _is_module(value)]  # type: ignore[assignment]
        yield from (value for _, value in names)
    for kind in type(item).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            yield getattr(item, name, None)
    # Functions of the file that the policy is from may use a generator of that file.
    scope = getattr(item, "__globals__", None)
    if isinstance(scope, dict):
        names_used = getattr(getattr(item, "__code__", None), "co_names", ())
        yield from (scope[name] for name in names_used if name in scope and not _is_module(scope[name]))


def _is_module(value: object) -> bool:
    return type(value).__name__ == "module"
