"""Merging: what several workers say of one run, as if one had said it."""

from __future__ import annotations

from collections.abc import Sequence

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.apply.actions import Use
from rlmesh_adapters.spaces import SpaceView
from rlmesh_adapters.weights import LARGE_BYTES, held_bytes
from rlmesh_cli.episodes import Episode, EpisodeError, EpisodeResult, Seconds
from rlmesh_cli.traces import TraceBook


def merge_uses(sums: list[Use], uses: Sequence[Use]) -> list[Use]:
    """Return how far each component of the actions was driven by all workers together."""
    if not sums:
        return list(uses)
    for known, other in zip(sums, uses, strict=True):
        known.values += other.values
        known.clipped += other.clipped
        known.saturated += other.saturated
    return sums


def lost_row(
    episode: Episode, reason: str, *, lane: int, action: SpaceView, metrics: Sequence[str]
) -> EpisodeResult:
    """Return the row of an episode at which two workers died, one after the other.

    reason: how the second one ended. lane: the first of its lanes. action: space of one action.
    """
    traces = TraceBook(1, action)
    traces.begin(0)
    _, _, trace = traces.end(0)
    return EpisodeResult(
        index=episode.index,
        seed=episode.seed,
        episode_id=episode.id,
        lane=lane,
        length=0,
        return_=0.0,
        end="error",
        terminated=False,
        truncated=False,
        success=None,
        success_final=None,
        success_any=None,
        success_at_reset=None,
        success_source=None,
        start_hash=None,
        trace_hash=trace,
        policy_calls=0,
        clipped_actions=0,
        metrics=dict.fromkeys(metrics),
        error=EpisodeError(
            phase="worker", step=None, message=f"the worker died, twice at this episode ({reason})"
        ),
        seconds=Seconds(env=0.0, policy=0.0, adapter=0.0, total=0.0),
        planned_actions=0,
        attempts=2,
    )


def note_crew(
    book: AdvisoryBook, policy: object, *, workers: int, lanes: int, threads: int, cores: int | None
) -> None:
    """Note what several workers mean for a machine.

    policy: one instance. workers: W. lanes: of each. threads: of numerical libraries in each.
    cores: that the workers share; None where they are spread over machines.
    """
    where = "on a cluster" if cores is None else f"{cores} cores"
    book.add(
        "workers",
        "info",
        f"{workers} workers play, each with a policy and {lanes} lane{'s' if lanes > 1 else ''} of its own, and "
        f"{threads} thread{'s' if threads > 1 else ''} for BLAS, OpenMP and torch ({where})",
    )
    if cores is not None and workers > cores:
        book.add(
            "workers-exceed-cores",
            "info",
            f"{workers} workers share {cores} core{'s' if cores > 1 else ''}: more of them than cores gain "
            "nothing unless they wait for something",
        )
    held = held_bytes(policy)
    if held * workers >= LARGE_BYTES:
        book.add(
            "workers-memory",
            "info",
            f"{workers} workers hold {held / 1e9:.2f} GB of weights each, {held * workers / 1e9:.2f} GB together",
        )
