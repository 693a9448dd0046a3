"""Verifying: some episodes played again on one lane, which must give the same actions and rewards."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.spaces import SpaceView

from .episodes import Episode, EpisodeResult, row_as_played
from .stretches import ActionLeaf
from .traces import Column

#: What differs by less of it, absolutely or of its size, is rounding: other kernels, other sums.
_TOLERANCE = 1e-5
#: Fields of a row that sum up what the reels hold in full, or that rounding at a bound or chance changes.
_SUMMED = frozenset({"return", "trace_hash", "clipped_actions", "attempts"})

_Array = npt.NDArray[Any]


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What came of playing some episodes again on one lane.

    verdict: `invariant`, `invariant to 1e-5` or `differs`. episodes: how many were played again.
    first: of the first episode that differs `index`, `seed`, `step`, `leaf` (`reward`, `action`, `action.name`,
    or a field of the row, whose step is None), `dimension` (of an array, else None), `values` in the run and on
    one lane, and `length` and `return` of both. None if none differs.
    """

    verdict: str
    episodes: int
    first: dict[str, Any] | None = None


class Reels:
    """Keeps the actions and rewards of some episodes, to lay them beside others.

    action: space of one action.
    """

    def __init__(self, episodes: Sequence[Episode], action: SpaceView) -> None:
        self._wanted = frozenset(episode.index for episode in episodes)
        self._names = ["reward", *(name for name, _ in _named_leaves(action, "action"))]
        parts = [ActionLeaf(view) for _, view in _named_leaves(action, "action")]
        self._kinds = [(np.dtype(np.float64), ()), *((part.kept, part.shape) for part in parts)]
        self._kept: dict[int, list[_Array]] = {}

    def keep(self, index: int, columns: Sequence[Column]) -> None:
        """Copy an episode's rewards and the leaves of its actions, as TraceBook has them."""
        if index in self._wanted and columns:
            self._kept[index] = [
                np.frombuffer(bytes(column), dtype).reshape(-1, *shape)
                for column, (dtype, shape) in zip(columns, self._kinds, strict=True)
            ]

    def of(self, index: int) -> dict[str, _Array]:
        """Return each leaf (T, ...) of an episode; none for one whose reset failed."""
        return dict(zip(self._names, self._kept.get(index, ()), strict=False))


def verify(
    rows: Sequence[EpisodeResult], again: Sequence[EpisodeResult], reels: Reels, reels_again: Reels
) -> Verification:
    """Compare rows of a run, and what was kept of them, with the same episodes played on one lane."""
    known = {row.index: row for row in rows}
    pairs = [(known[row.index], row) for row in sorted(again, key=lambda row: row.index) if row.index in known]
    verdict = "invariant"
    for one, other in pairs:
        reel, reel_again = reels.of(one.index), reels_again.of(one.index)
        # The clock ends an episode where it likes; up to there it is the same one.
        is_capped = "time_cap" in (one.end, other.end)
        first = _first_difference(reel, reel_again) or (None if is_capped else _other_field(one, other))
        if first is not None:
            first = {
                "index": one.index,
                "seed": one.seed,
                **first,
                "length": [one.length, other.length],
                "return": [one.return_, other.return_],
            }
            return Verification(verdict="differs", episodes=len(pairs), first=first)
        if any(_bytes_differ(leaf, reel_again[name]) for name, leaf in reel.items()):
            verdict = "invariant to 1e-5"
    return Verification(verdict=verdict, episodes=len(pairs))


def _first_difference(one: dict[str, _Array], other: dict[str, _Array]) -> dict[str, Any] | None:
    """Return the earliest difference beyond rounding; in one step, that of an action comes before the reward's."""
    found: list[tuple[int, bool, str, tuple[int, ...]]] = []
    for name, leaf in one.items():
        beside = other.get(name)
        if beside is None:
            continue
        steps = min(len(leaf), len(beside))
        places = np.argwhere(~_are_close(leaf[:steps], beside[:steps]))
        if len(places):
            step, *dimension = map(int, places[0])
            found.append((step, name == "reward", name, tuple(dimension)))
    if not found:
        return None
    at, _, name, inside = min(found)
    return {
        "step": at,
        "leaf": name,
        "dimension": list(inside) or None,
        "values": [leaf[name][(at, *inside)].item() for leaf in (one, other)],
    }


def _are_close(one: _Array, other: _Array) -> _Array:
    if one.dtype.kind != "f":
        return np.asarray(one == other)
    return np.isclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)


def _bytes_differ(one: _Array, other: _Array) -> bool:
    steps = min(len(one), len(other))
    return one[:steps].tobytes() != other[:steps].tobytes()


def _other_field(one: EpisodeResult, other: EpisodeResult) -> dict[str, Any] | None:
    """Return the first field that differs although actions and rewards do not: an end, a success, a metric."""
    fields, fields_again = row_as_played(one), row_as_played(other)
    for name, value in fields.items():
        beside = fields_again[name]
        if (
            name not in _SUMMED
            and value != beside
            and not (name == "metrics" and _are_metrics_close(value, beside))
        ):
            return {"step": None, "leaf": name, "dimension": None, "values": [value, beside]}
    return None


def _are_metrics_close(one: dict[str, float | None], other: dict[str, float | None]) -> bool:
    def is_close(value: float | None, beside: float | None) -> bool:
        if value is None or beside is None:
            return value is beside
        if math.isnan(value) or math.isnan(beside):
            return math.isnan(value) and math.isnan(beside)
        return math.isclose(value, beside, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)

    return one.keys() == other.keys() and all(is_close(value, other[name]) for name, value in one.items())


def _named_leaves(view: SpaceView, name: str) -> Iterator[tuple[str, SpaceView]]:
    for child_name, child in view.children:
        yield from _named_leaves(child, f"{name}.{child_name}")
    if view.is_array:
        yield name, view


def chosen_episodes(planned: Sequence[Episode], count: int) -> list[Episode]:
    """Return some planned episodes, spread over the plan: the first and the last are among them."""
    count = min(count, len(planned))
    if count < 2:
        return list(planned[:count])
    return [planned[round(place * (len(planned) - 1) / (count - 1))] for place in range(count)]
