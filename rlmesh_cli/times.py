"""Times: where a sitting's seconds went, and what would help."""

from __future__ import annotations

import msgspec

from rlmesh_adapters.contract import answers_for_all

from .tallies import Tally

# A part that takes more than this share is worth a word.
_MOST = 0.5
# Lanes that stand still for more than this share are worth one too.
_IDLE = 0.2
# A step that takes longer gains from a process of its own.
_SLOW_STEP = 1e-4
_FEW_ROWS = 16


class TimeLedger(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the loop of one sitting, and what was done in them.

    total: by the wall clock. The parts are summed up over the workers, whose time passes together; so are steps.
    env_step, env_reset: inside the environments. policy: inside the policy's own code.
    adapter: conversion, checks and replay around it. recording: writing rows. harness: all else.
    steps: lane-steps; vector_steps: of all running lanes together; lane_use: share of the lanes that were running
    at a vector step, None if there was none. calls: of the policy; call_rows: rows it was asked for.
    calls_per_step: calls a vector step; rows_per_call; None if there was none.
    frames_skipped: lane-steps whose pixels were not rendered, because nobody would have read them.
    advice: what would help, empty where nothing stands out.
    """

    total: float
    env_step: float
    env_reset: float
    policy: float
    adapter: float
    recording: float
    harness: float
    steps: int
    vector_steps: int
    lanes: int
    workers: int
    lane_use: float | None
    calls: int
    call_rows: int
    calls_per_step: float | None
    rows_per_call: float | None
    frames_skipped: int
    steps_per_second: float | None
    advice: str


def time_ledger(
    tally: Tally, seconds: float, *, lanes: int, workers: int = 1, alone: str | None = None
) -> TimeLedger:
    """Return where `seconds` of the loop went.

    lanes: N, of each of the workers. alone: see how_to_batch.
    """
    known = (
        tally.step_seconds
        + tally.reset_seconds
        + tally.policy_seconds
        + tally.adapter_seconds
        + tally.recording_seconds
    )
    use = tally.steps / (tally.vector_steps * lanes) if tally.vector_steps else None
    return TimeLedger(
        total=seconds,
        env_step=tally.step_seconds,
        env_reset=tally.reset_seconds,
        policy=tally.policy_seconds,
        adapter=tally.adapter_seconds,
        recording=tally.recording_seconds,
        harness=max(0.0, seconds * workers - known),
        steps=tally.steps,
        vector_steps=tally.vector_steps,
        lanes=lanes,
        workers=workers,
        lane_use=use,
        calls=tally.calls,
        call_rows=tally.rows,
        calls_per_step=tally.calls / tally.vector_steps if tally.vector_steps else None,
        rows_per_call=tally.rows / tally.calls if tally.calls else None,
        frames_skipped=tally.frames_skipped,
        steps_per_second=tally.steps / seconds if seconds > 0 else None,
        advice=_advice(tally, seconds * workers, lanes, use, alone=alone, has_workers=workers > 1),
    )


def how_to_batch(corner: str, instances: str, *, is_builtin: bool) -> str | None:
    """Return how one call could answer for all lanes; empty if nothing helps, None if it does or is not known.

    corner: the one that is called, empty if it is not known. instances: `shared`, `lane` or `episode`.
    """
    if not corner or answers_for_all(corner, instances):
        return None
    if is_builtin:
        return ""
    if instances == "shared":
        return f"give it {corner}_batch"
    return "let it pass `state`, so that one instance answers for all"


def _advice(
    tally: Tally, seconds: float, lanes: int, use: float | None, *, alone: str | None, has_workers: bool
) -> str:
    """Return the one thing that would help most, or nothing; alone: see time_ledger."""
    if seconds <= 0 or not tally.steps:
        return ""
    if use is not None and lanes > 1 and 1 - use > _IDLE:
        return f"lanes stood still {(1 - use) * 100:.0f} % of the time: use fewer of them, or play more episodes"
    rows = tally.rows / tally.calls if tally.calls else 0.0
    if tally.policy_seconds > _MOST * seconds and alone is not None:
        mends = [alone, "" if has_workers else "play on several cores with --workers"]
        mend = ", or ".join(filter(None, mends))
        return f"the policy takes most of the time, and each lane is a call of its own: {mend}" if mend else ""
    if tally.policy_seconds > _MOST * seconds and rows < _FEW_ROWS:
        return f"the policy takes most of the time and is asked for {rows:.1f} rows a call: raise --num-envs"
    is_slow = tally.step_seconds > _MOST * seconds and tally.step_seconds / tally.steps > _SLOW_STEP
    if is_slow and not has_workers:  # those keep several cores busy already
        return "the environment takes most of the time: --vectorization async steps it on several cores"
    if tally.reset_seconds > _MOST * seconds:
        return "resets take most of the time: the environment builds its starts slowly"
    return ""
