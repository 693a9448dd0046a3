"""Stopping early: a rule that may look after every episode, and still keeps its promise.

Episodes are looked at in the order of the plan, whatever the order in which they end, so that short ones do not
come first and the number of lanes changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from rlmesh_adapters.errors import RouteError

from .episodes import EpisodeResult
from .gates import SUCCESS_RATE, Gate, GateVerdict
from .judgement.intervals import Interval, decimal
from .judgement.sequences import BettingSequence
from .repeats import Repeats
from .wording import percent

_WIDTH = re.compile(r"width\s*<\s*(\S+)")
_MEND = "write width<0.1 or decided"


class Until(msgspec.Struct, frozen=True):
    """When a run may stop: its success interval is narrower than `width`; without one, all bars are decided."""

    width: float | None


def parse_until(text: str) -> Until:
    """Read `width<0.1`, `width<10%` or `decided`.

    Raises RouteError for anything else, and for widths outside (0, 1].
    """
    if text.strip() == "decided":
        return Until(None)
    match = _WIDTH.fullmatch(text.strip())
    if match is None:
        raise RouteError(f"`{text}` is no stopping rule", where="until", mend=_MEND)
    number = match[1]
    try:
        width = percent(number[:-1]) if number.endswith("%") else float(number)
    except ValueError:
        raise RouteError(f"`{number}` is not a width", where="until", mend=_MEND) from None
    if not 0 < width <= 1:
        raise RouteError(f"an interval of a rate cannot be {number} wide", where="until", mend=_MEND)
    return Until(width)


class PairedBar(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a new one must not be worse than.

    rows: index in the new run -> episode of BASE with its seed, where that one reported success or failure.
    margin: points of success rate. alpha: chance of a false verdict, each way.
    """

    rows: Mapping[int, EpisodeResult]
    margin: float
    alpha: float


class StoppingRule:
    """Looks at rows as they come, and says after how many episodes of the plan a run may stop.

    until: see Until. gates: bars that `decided` waits for; all on the success rate.
    confidence: of the sequence of intervals of the success rate. paired: a run to hold it against.

    Raises RouteError where nothing could be decided.
    """

    def __init__(
        self, until: Until, gates: Sequence[Gate], *, confidence: float, paired: PairedBar | None = None
    ) -> None:
        self._until, self._gates, self._paired = until, gates, paired
        if until.width is None:
            _check_decidable(gates, has_baseline=paired is not None)
        self._rate = _Bounds(confidence)
        # One for each bound: what NEW alone did not finish counts as lost on the way to `not worse` only.
        self._differences = None
        if paired is not None:
            level = 1 - 2 * paired.alpha
            self._differences = (_Bounds(level), _Bounds(level))
        self._waiting: dict[int, EpisodeResult] = {}
        self._next = 0
        self._repeats: Repeats[EpisodeResult] = Repeats()
        self._paired_repeats: Repeats[tuple[EpisodeResult, EpisodeResult]] = Repeats()
        #: Episodes of the plan that count, None until the rule says so.
        self.stop_at: int | None = None

    def take(self, rows: Iterable[EpisodeResult]) -> None:
        """Look at rows, in any order; nothing is looked at beyond the end."""
        self._waiting.update((row.index, row) for row in rows)
        while self.stop_at is None and self._next in self._waiting:
            self._look(self._waiting.pop(self._next))
            self._next += 1
            if self._is_enough():
                self.stop_at = self._next

    def _look(self, row: EpisodeResult) -> None:
        """See a row and its pair, and count them unless they only repeat one that was counted."""
        _see((self._rate,), _outcome(row))
        for counted in self._repeats.take(row, row.start_hash, row.course):
            _count((self._rate,), _outcome(counted))
        base = None if self._paired is None else self._paired.rows.get(row.index)
        if base is not None and self._differences is not None:
            # A pair repeats another one where both of its episodes do.
            has_starts = base.start_hash is not None and row.start_hash is not None
            start = (base.start_hash, row.start_hash) if has_starts else None
            _see(self._differences, *_change(base, row))
            for pair in self._paired_repeats.take((base, row), start, (base.course, row.course)):
                _count(self._differences, *_change(*pair))

    def _is_enough(self) -> bool:
        if self._until.width is not None:
            return self._rate.n > 0 and self._rate.interval.width < self._until.width
        if any(self.decision(gate) is None for gate in self._gates):
            return False
        return self._paired is None or self.paired_verdict != "inconclusive"

    @property
    def looked_at(self) -> int:
        """How many episodes of the plan were looked at: all before the first one that is missing."""
        return self._next

    @property
    def decides(self) -> bool:
        """Whether the rule waits for verdicts, which are then its own."""
        return self._until.width is None

    @property
    def interval(self) -> Interval | None:
        """Bounds of the success rate, which hold whenever one looks; None if none was reported."""
        return self._rate.interval if self._rate.n else None

    def decision(self, gate: Gate) -> bool | None:
        """Return whether a bar is met by every rate in the bounds, by none (False), or that is open (None)."""
        if not self._rate.n:
            return None
        low, high = gate.holds(self._rate.low), gate.holds(self._rate.high)
        return low if low == high else None

    @property
    def difference(self) -> Interval | None:
        """Bounds of the paired difference of the success rate, NEW - BASE; None without pairs."""
        if self._differences is None or not self._differences[0].n:
            return None
        low, high = self._differences
        return msgspec.structs.replace(low.interval, low=decimal(2 * low.low - 1), high=decimal(2 * high.high - 1))

    @property
    def paired_verdict(self) -> Literal["not_worse", "worse", "inconclusive"]:
        """What the bounds of the paired difference come to."""
        found = self.difference
        if found is None or self._paired is None:
            return "inconclusive"
        if found.low > -self._paired.margin:
            return "not_worse"
        return "worse" if found.high < 0 else "inconclusive"


class _Bounds:
    """Bounds of a mean that may be looked at after every value; they reach to the mean of all that were seen.

    Where starts came unequally often, what is counted - each once - has another mean.
    """

    def __init__(self, confidence: float) -> None:
        self._sequence = BettingSequence(confidence)
        self._seen, self._sum = 0, 0.0

    @property
    def n(self) -> int:
        """How many values were counted."""
        return self._sequence.n

    @property
    def low(self) -> float:
        """The lower bound; 0 before any value."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The upper bound; 1 before any value."""
        return self.interval.high

    @property
    def interval(self) -> Interval:
        """Both bounds."""
        found = self._sequence.interval
        return found.reaching(self._sum / self._seen) if self._seen > self._sequence.n else found

    def see(self, value: float) -> None:
        """Take a value in [0, 1] that is looked at, whether it counts or not."""
        self._seen += 1
        self._sum += value

    def count(self, value: float) -> None:
        """Let a value that was seen count."""
        self._sequence.add(value)


def _outcome(row: EpisodeResult) -> float | None:
    if row.is_error:
        return 0.0
    return None if row.success is None else float(row.success)


def _change(base: EpisodeResult, row: EpisodeResult) -> tuple[float | None, float | None]:
    """Return the difference of a pair, from -1, 0 and 1 to the unit interval, for the lower and the upper bound.

    What NEW alone did not finish is lost for the lower one, and does not count for the upper one.
    """
    before, after = base.success, row.success
    if before is None:
        return None, None
    if row.is_error:
        return (1 - float(before)) / 2, None
    found = None if after is None else (float(after) - float(before) + 1) / 2
    return found, found


def _see(bounds: Sequence[_Bounds], *values: float | None) -> None:
    for bound, value in zip(bounds, values, strict=True):
        if value is not None:
            bound.see(value)


def _count(bounds: Sequence[_Bounds], *values: float | None) -> None:
    for bound, value in zip(bounds, values, strict=True):
        if value is not None:
            bound.count(value)


def rule_of(rows: Sequence[EpisodeResult], confidence: float) -> StoppingRule:
    """Return a rule that has looked at rows, and never says stop: for runs that are over.

    Rows of episodes that come after one that is missing are not looked at.
    """
    rule = StoppingRule(Until(0.0), (), confidence=confidence)  # no interval is that narrow
    rule.take(rows)
    return rule


def decide(rule: StoppingRule, gates: Sequence[Gate], verdicts: Sequence[GateVerdict]) -> list[GateVerdict]:
    """Return verdicts as the rule's bounds decide them; one that they do not decide is open."""
    decided = []
    for gate, verdict in zip(gates, verdicts, strict=True):
        decision = rule.decision(gate)
        is_open = decision is None and verdict.value is not None
        decided.append(msgspec.structs.replace(verdict, passed=bool(decision), is_open=is_open))
    return decided


def _check_decidable(gates: Sequence[Gate], *, has_baseline: bool) -> None:
    others = [str(gate) for gate in gates if gate.metric != SUCCESS_RATE or gate.op in ("==", "!=")]
    if others:
        raise RouteError(
            f"`{others[0]}` cannot be decided early: only bars of the success rate have known bounds",
            where="until: decided",
            mend="use bars such as `success_rate >= 0.9` alone, or play all episodes",
        )
    if not gates and not has_baseline:
        raise RouteError(
            "there is nothing to decide",
            where="until: decided",
            mend="add a --gate on success_rate, or --baseline",
        )
