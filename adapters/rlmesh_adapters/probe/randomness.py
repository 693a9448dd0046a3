"""Random sources within reach: put into a known state before a call, and back after all of them."""

from __future__ import annotations

import random
import sys
from collections.abc import Container, Iterator, Sequence
from typing import Any

import numpy as np

from rlmesh_adapters.insides import objects_inside


class RandomSources:
    """The global generators of Python, numpy and torch, and those that are found inside policies.

    `arrange` puts all of them into the state that belongs to a number; `restore` puts the global ones back.
    """

    def __init__(self) -> None:
        self._python = random.getstate()
        self._numpy = np.random.get_state()  # noqa: NPY002 - the legacy global state is what policies draw from
        self._torch = _torch()
        self._torch_state = None if self._torch is None else self._torch.get_rng_state()
        #: Generators that were found inside the policy looked into last.
        self.found: list[Any] = []

    def look_into(self, policy: object, *, but: Container[int] = ()) -> None:
        """Find the generators that a policy holds; called again where it may have made some since.

        but: ids of generators that are left alone.
        """
        self.found = [item for item in _generators(policy, self._torch) if id(item) not in but]

    def arrange(self, number: int) -> None:
        """Put every source into the state that belongs to `number`."""
        random.seed(number)
        np.random.seed(number)  # noqa: NPY002
        if self._torch is not None:
            self._torch.manual_seed(number)
        for generator in self.found:
            _seed(generator, number)

    def states(self, *, but: Container[int] = ()) -> list[Any]:
        """Return something that is equal only where every source is in the state it was in.

        but: ids of generators that are passed by.
        """
        found = [_state_of(generator) for generator in self.found if id(generator) not in but]
        torch_state = None if self._torch is None else self._torch.get_rng_state().numpy().tobytes()
        python, *numpy_state = global_state()
        return [python, tuple(numpy_state), torch_state, *found]

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


def are_drawn_from(moved: Sequence[tuple[list[Any], list[Any]]]) -> bool:
    """Tell whether something drew from a source each time, by the states of all before and after.

    Who sets a seed moves the source as well, but to the same place, and draws the same each time.
    """
    sources = zip(*(zip(before, after, strict=False) for before, after in moved), strict=False)
    return any(
        all(before != after for before, after in states) and len({after for _, after in states}) > 1
        for states in sources
    )


def _state_of(generator: Any) -> Any:
    if isinstance(generator, np.random.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return repr(generator.get_state(legacy=False))
    if isinstance(generator, random.Random):
        return hash(generator.getstate())
    return generator.get_state().numpy().tobytes()


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


def _generators(policy: object, torch: Any) -> Iterator[Any]:
    kinds: tuple[Any, ...] = (np.random.Generator, np.random.RandomState, random.Random)
    if torch is not None and hasattr(torch, "Generator"):
        kinds = (*kinds, torch.Generator)
    # The system's own source has no state.
    found = (item for item in objects_inside(policy) if isinstance(item, kinds))
    return (item for item in found if not isinstance(item, random.SystemRandom))
