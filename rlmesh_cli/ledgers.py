"""Ledgers: what a run's rows say beyond means - of starts, of meanings of success, of chunks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import msgspec

from .episodes import EpisodeResult
from .judgement.intervals import Interval
from .outcomes import HELD_STEPS, SuccessRule
from .repeats import effective_count


class StartLedger(msgspec.Struct, frozen=True, kw_only=True):
    """From how many different starts the episodes were played.

    known: episodes whose reset went well. distinct: different first observations and infos among them.
    effective: how many of the episodes intervals count, see rlmesh_cli.repeats.
    are_repeats: whether some start came twice, and every such episode took the same actions and was paid the
    same: then the run knows no more than one episode a start would tell.
    """

    known: int
    distinct: int
    are_repeats: bool
    effective: int


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """Success by one meaning of the word.

    name: `final` (last report), `any` (some report), `held 10` (so many reports in a row), `at_reset` (before the
    first action), `return` (the bound that the run declares). successes: of `known` episodes that reported.
    unmeasured: finished, nothing reported.
    is_declared: whether the run is judged by it.
    """

    name: str
    successes: int
    known: int
    unmeasured: int
    is_declared: bool
    interval: Interval | None = None


class ChunkLedger(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the actions that the policy planned.

    predicted: in its answers; None where overlapping plans were averaged. executed: steps of the environment.
    dropped_at_end: still queued when their episode ended. dropped_by_replanning: beyond the horizon of their call.
    """

    predicted: int | None
    executed: int
    dropped_at_end: int
    dropped_by_replanning: int | None


def start_ledger(rows: Sequence[EpisodeResult]) -> StartLedger:
    """Count different starts; rows whose reset failed have none."""
    known = [row for row in rows if row.start_hash is not None]
    courses: dict[str | None, set[Hashable]] = {}
    for row in known:
        courses.setdefault(row.start_hash, set()).add(row.course)
    are_repeats = len(courses) < len(known) and all(len(found) == 1 for found in courses.values())
    count = effective_count([row.start_hash for row in known]) if are_repeats else len(known)
    return StartLedger(known=len(known), distinct=len(courses), are_repeats=are_repeats, effective=count)


def effective(rows: Sequence[EpisodeResult], starts: StartLedger) -> int:
    """Return how many of some rows an interval may count: fewer where they repeat one another, else all."""
    return effective_count([row.start_hash for row in rows]) if starts.are_repeats else len(rows)


def starts_of(rows: Sequence[EpisodeResult], starts: StartLedger) -> list[str | None] | None:
    """Return what some rows began from, None where they do not only repeat one another."""
    return [row.start_hash for row in rows] if starts.are_repeats else None


def meanings(
    rows: Sequence[EpisodeResult],
    rule: SuccessRule,
    *,
    interval: Callable[[int, Sequence[EpisodeResult]], Interval],
) -> tuple[Meaning, ...]:
    """Count success by every meaning of the word; empty if nothing was measured.

    rows: of finished episodes. interval: of k successes among some rows.
    """
    steps = rule.steps if rule.when == "held" else HELD_STEPS
    flags: dict[str, Callable[[EpisodeResult], bool | None]] = {
        "final": lambda row: row.success_final,
        "any": lambda row: row.success_any,
        f"held {steps}": lambda row: None if row.success_held is None else row.success_held >= steps,
        "at_reset": lambda row: row.success_at_reset,
    }
    declared = f"held {steps}" if rule.when == "held" else rule.when
    if rule.return_at_least is not None:
        declared = "return"
        flags = {"return": lambda row: row.success, **flags}
    found = []
    for name, flag in flags.items():
        known = [row for row in rows if flag(row) is not None]
        successes = sum(flag(row) is True for row in known)
        found.append(
            Meaning(
                name=name,
                successes=successes,
                known=len(known),
                unmeasured=len(rows) - len(known),
                is_declared=name == declared,
                interval=interval(successes, known) if known else None,
            )
        )
    return tuple(found) if any(meaning.known for meaning in found) else ()


def chunk_ledger(rows: Sequence[EpisodeResult]) -> ChunkLedger:
    """Add up what was planned and what came of it; rows of older runs say nothing of plans."""
    executed = sum(row.length for row in rows)
    dropped = sum(row.dropped_actions for row in rows)
    planned = [row.planned_actions for row in rows]
    if not rows or any(count is None for count in planned):
        return ChunkLedger(predicted=None, executed=executed, dropped_at_end=dropped, dropped_by_replanning=None)
    predicted = sum(count for count in planned if count is not None)
    # A step that broke had its action, and is not in the length.
    broken = sum(row.error is not None and row.error.phase == "step" for row in rows)
    return ChunkLedger(
        predicted=predicted,
        executed=executed,
        dropped_at_end=dropped,
        dropped_by_replanning=max(0, predicted - executed - broken - dropped),
    )
