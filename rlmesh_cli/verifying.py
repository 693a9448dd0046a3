"""Verifying: some episodes played again on one lane, which must give the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Any

import msgspec

from .episodes import EpisodeResult, row_without_arrangement

#: What differs by less of it is rounding: other kernels, other sums.
_TOLERANCE = 1e-5


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What came of playing some episodes again on one lane.

    verdict: `invariant` (action by action, reward by reward), `invariant to 1e-5` (lengths, ends and returns) or
    `differs`. episodes: how many were played again. first: index of the first that differs, and how, or None.
    """

    verdict: str
    episodes: int
    first: dict[str, Any] | None = None


def verify(rows: Sequence[EpisodeResult], again: Sequence[EpisodeResult]) -> Verification:
    """Compare rows of a run with the same episodes, played on one lane."""
    known = {row.index: row for row in rows}
    pairs = [(known[row.index], row) for row in sorted(again, key=lambda row: row.index) if row.index in known]
    verdict = "invariant"
    for one, other in pairs:
        if _exact(one) == _exact(other):
            continue
        if not _is_close(one, other):
            return Verification(verdict="differs", episodes=len(pairs), first=_told(one, other))
        verdict = "invariant to 1e-5"
    return Verification(verdict=verdict, episodes=len(pairs))


def _exact(row: EpisodeResult) -> dict[str, Any]:
    # What a row says but for where it was played; calls belong to the episode too.
    return row_without_arrangement(msgspec.to_builtins(row))


def _is_close(one: EpisodeResult, other: EpisodeResult) -> bool:
    is_same = (one.length, one.end, one.success) == (other.length, other.end, other.success)
    return is_same and isclose(one.return_, other.return_, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _told(one: EpisodeResult, other: EpisodeResult) -> dict[str, Any]:
    return {
        "index": one.index,
        "seed": one.seed,
        "length": [one.length, other.length],
        "return": [one.return_, other.return_],
        "same_start": one.start_hash == other.start_hash,
    }


def chosen_episodes(planned: Sequence[Any], count: int) -> list[Any]:
    """Return some planned episodes, spread over the plan: the first and the last are among them."""
    count = min(count, len(planned))
    if count < 2:
        return list(planned[:count])
    return [planned[round(place * (len(planned) - 1) / (count - 1))] for place in range(count)]
