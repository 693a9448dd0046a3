"""Statistics of a data set, by which states are normalised and actions are put back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from .checks import nullable, numbers, one_of, text
from .schema import DocumentError, Record, entry, kind_name, mapping

#: Kind of normalisation -> the two statistics it needs.
NEEDED = {"mean_std": ("mean", "std"), "min_max": ("min", "max"), "quantile": ("q01", "q99")}


@dataclasses.dataclass(frozen=True)
class Statistics(Record):
    """How numbers are normalised: `mean_std` to mean 0 and deviation 1; `min_max` and `quantile` to -1..1.

    The two statistics of the kind stand here, one number a dimension, or in a JSON `file` under `key` (dots lead
    into nested mappings, or are part of a name). A dimension without spread (std 0, max = min) becomes 0, and
    comes back as its centre.
    """

    what: ClassVar[str] = "normalize"

    kind: str = entry(one_of(*NEEDED))
    mean: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    std: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    min: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    max: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    q01: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    q99: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    file: str | None = entry(nullable(text), default=None)
    key: str | None = entry(nullable(text), default=None)

    def check(self) -> None:
        """Refuse what is incomplete, of two lengths, or has its ends the wrong way round."""
        if self.file is not None:
            return
        first, second = NEEDED[self.kind]
        low, high = getattr(self, first), getattr(self, second)
        for name, values in ((first, low), (second, high)):
            if values is None:
                given = [known for pair in NEEDED.values() for known in pair if getattr(self, known) is not None]
                raise DocumentError(
                    f"{self.kind} needs `{name}`, which is missing; given: {', '.join(given) or 'nothing'}",
                    mend=f"add `{name}`, or a `file` that holds it",
                )
        if len(low) != len(high):
            raise DocumentError(f"`{first}` has {len(low)} numbers, `{second}` {len(high)}")
        for place, (least, most) in enumerate(zip(low, high, strict=True)):
            if self.kind == "mean_std" and most < 0:
                raise DocumentError(f"`std`[{place}] is {most:g}, less than 0")
            if self.kind != "mean_std" and least > most:
                raise DocumentError(f"`{first}`[{place}] is {least:g}, more than `{second}`[{place}], {most:g}")

    def filled(self, read: Callable[[str], Any]) -> Statistics:
        """Return the same with the numbers of its file in place.

        read: returns the plain values of a JSON file.

        Raises DocumentError naming a key that is missing, and what is there.
        """
        if self.file is None:
            return self
        found = self._found(read(self.file))
        held = mapping(found, f"`{self.key or self.file}`")
        for name in NEEDED[self.kind]:
            if name not in held:
                raise DocumentError(
                    f"{self.kind} needs `{name}`, which `{self.file}` does not have"
                    f"{f' under `{self.key}`' if self.key else ''}; it has: {_listed(held)}",
                    path=("file",),
                    mend="name the kind whose statistics are there, or compute them",
                )
        return Statistics(kind=self.kind, **{name: held[name] for name in NEEDED[self.kind]})

    def _found(self, held: Any) -> Any:
        """Return what a file holds under the key; raises DocumentError if there is nothing."""
        if not self.key:
            return held
        mapping(held, f"`{self.file}`")
        parts = self.key.split(".")
        places = list(_places(held, parts))
        for found, rest in places:
            if not rest:
                return found
        deepest, rest = min(places, key=lambda place: len(place[1]))
        reached = ".".join(parts[: len(parts) - len(rest)])
        if not isinstance(deepest, Mapping):
            there = f"`{reached}` is {kind_name(deepest)}"
        else:
            there = f"{f'under `{reached}` ' if reached else ''}it has: {_listed(deepest)}"
        raise DocumentError(f"`{self.file}` has no `{self.key}`; {there}", path=("key",))

    def ends(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return (centre, spread): normalised values are `(value - centre) / spread`, where spread is not 0."""
        first, second = (getattr(self, name) for name in NEEDED[self.kind])
        if self.kind == "mean_std":
            return first, second
        centre = tuple((low + high) / 2 for low, high in zip(first, second, strict=True))
        return centre, tuple((high - low) / 2 for low, high in zip(first, second, strict=True))


def _places(held: Any, parts: list[str]) -> Iterator[tuple[Any, list[str]]]:
    """Yield each value that the parts of a key lead through, and the parts that are left there.

    Names of a flat file hold dots themselves, so the longest name that is there comes first.
    """
    yield held, parts
    if isinstance(held, Mapping):
        for count in range(len(parts), 0, -1):
            name = ".".join(parts[:count])
            if name in held:
                yield from _places(held[name], parts[count:])


def _listed(held: Mapping[str, Any]) -> str:
    return ", ".join(list(held)[:12]) or "nothing"
