"""Pairing: the episodes of two runs that began from the same seed, and what a metric is in both."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

import msgspec

from rlmesh_adapters.errors import HarnessError

from .episodes import EpisodeResult
from .margins import RETURN, SUCCESS
from .repeats import effective_count
from .run_reader import StoredRun
from .stored_evaluation import NoEpisodeError


class PairingError(HarnessError):
    """Two runs have no episodes that could be held against one another."""


class Pair(msgspec.Struct, frozen=True):
    """One seed, played in BASE and in NEW."""

    base: EpisodeResult
    new: EpisodeResult

    @property
    def is_error(self) -> bool:
        """Whether one of both episodes could not be finished."""
        return self.base.is_error or self.new.is_error

    @property
    def start(self) -> tuple[str, str] | None:
        """What both began from, None where that is not known."""
        base, new = self.base.start_hash, self.new.start_hash
        return None if base is None or new is None else (base, new)

    @property
    def is_alike(self) -> bool:
        """Whether both start alike and take the same course, if only as far as the same fault."""
        return (self.base.start_hash, self.base.course) == (self.new.start_hash, self.new.course)

    @property
    def is_identical(self) -> bool:
        """Whether both are finished, start alike, act alike, are paid alike and end in the same success."""
        return not self.is_error and self.is_alike


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """The pairs of two runs, in the order of BASE.

    base_only, new_only: seeds that only one of them played. repeats: pairs that repeat another one step by step in
    both runs; they weigh, and say nothing new.
    """

    pairs: list[Pair]
    base_only: list[int | None]
    new_only: list[int | None]
    is_by_seed: bool
    repeats: int = 0


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A metric in the pairs where both sides have it.

    values: (BASE, NEW) of each of `pairs`. errored: pairs left out because an episode could not be finished.
    unreported: pairs left out because one side has no finite value.
    half: (BASE, NEW) of the pairs that were left out, None where there is no value.
    broken: pairs left out because NEW alone could not be finished, or is nan or infinite: nothing is shown to be
        as good as that.
    starts: of the pairs, where some only repeat others, else None.
    """

    metric: str
    pairs: list[Pair]
    values: list[tuple[float, float]]
    errored: int
    unreported: int
    half: list[tuple[float | None, float | None]]
    broken: int = 0
    starts: list[tuple[str, str] | None] | None = None

    @property
    def effective(self) -> int:
        """How many of the pairs tests count, see rlmesh_cli.repeats."""
        return len(self.pairs) if self.starts is None else effective_count(self.starts)

    @property
    def differences(self) -> list[float]:
        """NEW - BASE of each pair."""
        return [new - base for base, new in self.values]


def pair_runs(base: StoredRun, new: StoredRun) -> Pairs:
    """Pair the k-th episode of a seed in BASE with the k-th of that seed in NEW.

    Where one of both could not seed its episodes, the i-th is paired with the i-th.
    Raises NoEpisodeError for a run without rows, PairingError without a common seed.
    """
    for run in (base, new):
        if not run.rows:
            raise NoEpisodeError(run)
    is_by_seed = base.is_seeded and new.is_seeded
    waiting: dict[int | None, list[EpisodeResult]] = defaultdict(list)
    for row in reversed(new.rows):
        waiting[row.seed if is_by_seed else None].append(row)
    pairs, base_only = [], []
    for row in base.rows:
        same = waiting[row.seed if is_by_seed else None]
        if same:
            pairs.append(Pair(row, same.pop()))
        else:
            base_only.append(row.seed)
    if not pairs:
        raise PairingError(
            f"BASE and NEW have no seed in common: BASE played {_span(base)}, NEW {_span(new)}",
            where=f"{base.folder} and {new.folder}",
            mend="run NEW with the seeds of BASE: --seed and --episodes, or --seeds",
        )
    new_only = sorted((row for rows in waiting.values() for row in rows), key=lambda row: row.index)
    return Pairs(
        pairs=pairs,
        base_only=base_only,
        new_only=[row.seed for row in new_only],
        is_by_seed=is_by_seed,
        repeats=repeats_among(pairs) if is_by_seed else 0,
    )


def repeats_among(pairs: Sequence[Pair]) -> int:
    """Return how many pairs repeat another one of their start; 0 if some do not, as chance comes after it then."""
    courses: dict[tuple[str, str], tuple[Hashable, Hashable]] = {}
    for pair in pairs:
        course = pair.base.course, pair.new.course
        if pair.start is None or courses.setdefault(pair.start, course) != course:
            return 0
    return len(pairs) - len(courses)


def _span(run: StoredRun) -> str:
    seeds = [row.seed for row in run.rows if row.seed is not None]
    return f"{len(seeds)} from {min(seeds)} to {max(seeds)}" if len(seeds) > 1 else f"seed {seeds[0]}"


def measure(metric: str, pairs: Sequence[Pair], *, are_repeats: bool = False) -> Measured:
    """Return a metric in all pairs that have it on both sides; are_repeats: whether some only repeat others."""
    value_of = _reader(metric)
    kept, values, half, errored, broken = [], [], [], 0, 0
    for pair in pairs:
        before, after = value_of(pair.base), value_of(pair.new)
        base, new = _finite(before), _finite(after)
        # The difference of two numbers may have no float.
        if pair.is_error or base is None or new is None or not math.isfinite(new - base):
            errored += pair.is_error
            is_lost = pair.new.is_error and not pair.base.is_error
            broken += is_lost or (base is not None and after is not None and new is None)
            half.append((base, new))
        else:
            kept.append(pair)
            values.append((base, new))
    return Measured(
        metric=metric,
        pairs=kept,
        values=values,
        errored=errored,
        unreported=len(half) - errored,
        half=half,
        broken=broken,
        starts=[pair.start for pair in kept] if are_repeats else None,
    )


def silence_of(pairs: Sequence[Pair]) -> str:
    """Return why no pair has a success on both sides, such as `NEW reported none`."""
    sides = {"BASE": [pair.base for pair in pairs], "NEW": [pair.new for pair in pairs]}
    silent = [side for side, rows in sides.items() if all(row.success is None for row in rows)]
    return f"{' and '.join(silent)} reported none" if silent else "no pair reported it on both sides"


def _reader(metric: str) -> Callable[[EpisodeResult], float | None]:
    if metric == SUCCESS:
        return lambda row: None if row.is_error or row.success is None else float(row.success)
    if metric == RETURN:
        return lambda row: None if row.is_error else row.return_
    return lambda row: None if row.is_error else row.metrics.get(metric)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def info_metrics_of(pairs: Sequence[Pair]) -> list[str]:
    """Return the info metrics that both rows of some pair keep."""
    found = dict.fromkeys(name for pair in pairs for name in pair.base.metrics if name in pair.new.metrics)
    return [name for name in found if name not in (SUCCESS, RETURN)]
