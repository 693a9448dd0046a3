"""Outcomes of rows: one word for what an episode means to the success rate."""

from __future__ import annotations

from rlmesh_cli.episodes import EpisodeResult

from .facts import Outcome

#: Outcome -> how it is read.
NAMES: dict[Outcome, str] = {
    "success": "success",
    "failure": "failure",
    "unknown": "success not reported",
    "error": "errored",
}


def outcome_of(row: EpisodeResult) -> Outcome:
    """Return the outcome of an episode."""
    if row.is_error:
        return "error"
    return "unknown" if row.success is None else "success" if row.success else "failure"
