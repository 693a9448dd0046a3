"""Episodes: what is planned, and what came of it."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, Literal

import msgspec

#: Where an object lies in memory is no part of an error.
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")

End = Literal["terminated", "truncated", "step_cap", "time_cap", "error"]


class Episode(msgspec.Struct, frozen=True, gc=False):
    """One planned episode.

    index: 0-based place in the plan.
    seed: what its environment is reset with.
    """

    index: int
    seed: int

    @property
    def id(self) -> str:
        """`ep-000001` for index 0."""
        return f"ep-{self.index + 1:06d}"


def plan_episodes(seeds: tuple[int, ...]) -> tuple[Episode, ...]:
    """Return one episode a seed, in order."""
    return tuple(Episode(index, seed) for index, seed in enumerate(seeds))


class EpisodeError(msgspec.Struct, frozen=True, kw_only=True):
    """Why an episode could not be finished.

    phase: `reset` or `step` of the environment, `policy` (the call), `action` (its value), `adapter` (a
        conversion of either), `worker` (the process that played it died, twice at this episode).
    step: 0-based step it happened at; None before the first.
    message: type and text of the error.
    place: file, line and function of the user's code, or None.
    """

    phase: str
    step: int | None
    message: str
    place: str | None = None

    @property
    def as_played(self) -> str:
        """The fault as another play has it too: without its place, as the file may have been edited elsewhere."""
        at = "" if self.step is None else f" at step {self.step}"
        return f"{self.phase}{at}: {_ADDRESS.sub('0x..', self.message)}"


class Seconds(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where an episode's time went, in seconds; what lanes did together is divided evenly among them.

    env: in `step` and `reset`. policy: inside the policy's own code. adapter: conversion and checks.
    total: from reset to end on the wall clock.
    """

    env: float
    policy: float
    adapter: float
    total: float


class EpisodeResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One row of `episodes.jsonl`.

    seed: None where the environment could not be seeded for this episode alone.
    length: steps that were finished. return_: float64 sum of their rewards (`return` in the file).
    success: by the declared rule; None is "not reported".
    success_final, success_any: last value that was reported, and whether any was true.
    success_at_reset: what the reset reported. success_held: most reports in a row that were true, None if none
        was made.
    success_source: info key, or `return_at_least`, that `success` was read from.
    start_hash: of the first observation and info. trace_hash: of the executed actions and rewards.
    clipped_actions: executed actions that had a number clipped into its Box.
    planned_actions: actions that the policy's answers held for this episode; None where they are averaged.
    dropped_actions: of those, the ones still queued when the episode ended.
    attempts: 2 if it was played again because its environment failed, or was lost with two workers, else 1.
    metrics: last reported value of the info keys that the route names; None is "not reported".
    """

    index: int
    seed: int | None
    episode_id: str
    lane: int
    length: int
    return_: float = msgspec.field(name="return")
    end: End
    terminated: bool
    truncated: bool
    success: bool | None
    success_final: bool | None
    success_any: bool | None
    success_at_reset: bool | None
    success_source: str | None
    start_hash: str | None
    trace_hash: str
    policy_calls: int
    clipped_actions: int
    metrics: dict[str, float | None]
    error: EpisodeError | None
    seconds: Seconds
    # Rows of older runs lack these.
    success_held: int | None = None
    planned_actions: int | None = None
    dropped_actions: int = 0
    attempts: int = 1

    @property
    def course(self) -> Hashable:
        """What was done, paid and reported from start to end; equal for episodes that only repeat one another.

        Of one that could not be finished its fault is the end: the same steps to another fault are another course.
        """
        success = self.success, self.success_final, self.success_any, self.success_held
        fault = None if self.error is None else self.error.as_played
        return self.trace_hash, self.length, self.end, fault, success, tuple(sorted(self.metrics.items()))

    @property
    def is_error(self) -> bool:
        """Whether the episode could not be finished."""
        return self.error is not None


def row_without_arrangement(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of `episodes.jsonl` without what depends on how the run was arranged."""
    return {key: value for key, value in row.items() if key not in ("lane", "seconds")}


def row_as_played(row: EpisodeResult) -> dict[str, Any]:
    """Return a row's fields as another play has them too: how it was arranged is left out, an error is a text."""
    fields = row_without_arrangement(msgspec.to_builtins(row))
    if row.error is not None:
        fields["error"] = row.error.as_played
    return fields
