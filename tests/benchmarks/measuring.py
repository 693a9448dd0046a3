"""Measuring: a case holds our reading against another one, and rounds of readings become an outcome.

What counts is the figure of a round, made of two readings that were taken one after the other in it, and the
median of these over the rounds: what slows the machine down for a while slows both down. Which of the two is read
first changes from round to round. A first round warms up and is not counted.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

#: What a figure is: `rate` our rate over theirs, `time` our time over theirs, `extra` our time less theirs,
#: `value` our reading alone. More of a rate is better, less of the others.
Kind = Literal["rate", "time", "extra", "value"]

# Medians of fewer rounds are not worth much.
_LEAST_ROUNDS = 3


class Case(NamedTuple):
    """What is measured.

    name: as `--only` takes it. what: in words. unit: of a reading. ours, theirs: take one, about a fifth of a
    second each; theirs is None for a `value`. bar: what must be reached. aim: what is wanted.
    """

    name: str
    what: str
    kind: Kind
    unit: str
    ours: Callable[[], float]
    theirs: Callable[[], float] | None
    bar: float
    aim: float


class Skip(NamedTuple):
    """A case that this machine cannot measure, and why."""

    name: str
    what: str
    reason: str


class Outcome(NamedTuple):
    """What was measured.

    ours, theirs: medians of the readings. low, median, high: of the figure over the rounds.
    """

    name: str
    what: str
    kind: Kind
    unit: str
    ours: float
    theirs: float | None
    low: float
    median: float
    high: float
    bar: float
    aim: float
    rounds: int

    @property
    def is_met(self) -> bool:
        """Whether the bar is reached."""
        return self.median >= self.bar if self.kind == "rate" else self.median <= self.bar


def measure(cases: Sequence[Case], rounds: int, most_seconds: float | None = None) -> list[Outcome]:
    """Return an outcome a case; all cases are read once a round.

    most_seconds: no round is begun that would probably end later, except for the first three.
    """
    pairs: list[list[tuple[float, float | None]]] = [[] for _ in cases]
    began = time.monotonic()
    for turn in range(rounds + 1):
        spent = time.monotonic() - began
        if most_seconds is not None and turn > _LEAST_ROUNDS and spent * (turn + 1) / turn > most_seconds:
            break
        for place, case in enumerate(cases):
            pair = _read(case, is_ours_first=(turn + place) % 2 == 0)
            if turn:
                pairs[place].append(pair)
    return [_outcome(case, found) for case, found in zip(cases, pairs, strict=True)]


def _read(case: Case, *, is_ours_first: bool) -> tuple[float, float | None]:
    gc.collect()
    if case.theirs is None:
        return case.ours(), None
    if is_ours_first:
        ours = case.ours()
        gc.collect()
        return ours, case.theirs()
    theirs = case.theirs()
    gc.collect()
    return case.ours(), theirs


def _outcome(case: Case, pairs: Sequence[tuple[float, float | None]]) -> Outcome:
    figures = [_figure(case.kind, *pair) for pair in pairs]
    others = [theirs for _, theirs in pairs if theirs is not None]
    return Outcome(
        name=case.name,
        what=case.what,
        kind=case.kind,
        unit=case.unit,
        ours=statistics.median(ours for ours, _ in pairs),
        theirs=statistics.median(others) if others else None,
        low=min(figures),
        median=statistics.median(figures),
        high=max(figures),
        bar=case.bar,
        aim=case.aim,
        rounds=len(figures),
    )


def _figure(kind: Kind, ours: float, theirs: float | None) -> float:
    if theirs is None:
        return ours
    return ours - theirs if kind == "extra" else ours / theirs


def microseconds(call: Callable[[], object], calls: int) -> Callable[[], float]:
    """Return what takes a reading: microseconds of one call, over so many of them."""

    def read() -> float:
        began = time.perf_counter()
        for _ in range(calls):
            call()
        return 1e6 * (time.perf_counter() - began) / calls

    return read
