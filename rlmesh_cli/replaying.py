"""Replaying: an episode played again and held against its row, and why the two differ, as far as can be known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from rlmesh_adapters.errors import HarnessError

from .differing import Difference, circumstance_words, difference_words, first_difference
from .encores import Encore
from .episodes import EpisodeError, EpisodeResult, row_as_played
from .recordings import Watch
from .stage import Stage

#: Not what an episode is: how it was arranged, what it took, where the error's line stands now.
_LEFT_OUT = frozenset({"attempts", "index", "episode_id"})
#: Fields in the order in which they tell most.
_FIRST = ("start_hash", "trace_hash", "length", "return", "end", "success", "error")

#: Why a replay differs: rendering it changes it; two replays differ from one another; they agree with one another.
Cause = Literal["rendering", "not a function of its seed", "something else changed"]

_UNKNOWN = (
    "nothing that the run's record knows has changed; what it does not know: code that policy and environment "
    "import, libraries that it does not list, and what was kept from episodes that were played before this one on "
    "its lane (`rlmesh probe --env-check` looks for that)"
)


class FieldDifference(msgspec.Struct, frozen=True):
    """A field of the row that is not what it was. run, replay: both values."""

    name: str
    run: Any
    replay: Any


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What came of playing an episode again.

    run: name of its folder. row, again: the run's row and the replay's. fields: those that differ, none if the
    two are identical. changed_policy: what to say first, see Encore.
    cause: None if identical. first: where two replays part, if they do. changes: what differs in the fingerprint.
    """

    run: str
    row: EpisodeResult
    again: EpisodeResult
    fields: list[FieldDifference]
    changed_policy: str | None = None
    cause: Cause | None = None
    first: Difference | None = None
    changes: list[str] = []

    @property
    def is_identical(self) -> bool:
        """Whether the episode was the same again."""
        return not self.fields


def replay_episode(
    encore: Encore,
    *,
    render_mode: str | None = None,
    watch: Callable[[Stage], Watch | None] = lambda stage: None,
) -> Replay:
    """Play an episode again, compare it with its row, and where they differ play it once more to see why.

    render_mode, watch: as of Encore.play, for the first play alone.

    Raises HarnessError where it cannot be played.
    """
    seen, changes = encore.play(render_mode=render_mode, watch=watch)
    fields = _fields(encore.row, seen.row)
    cause: Cause | None = None
    first: Difference | None = None
    if fields:
        plain = seen
        if render_mode is not None:
            plain, changes = encore.play(is_renewed=True)
            if seen.row.error is not None and plain.row.error is None:
                raise _cannot_render(seen.row.error)
        if render_mode is not None and not _fields(encore.row, plain.row):
            cause, first = "rendering", first_difference(plain, seen)
        else:
            once_more, changes = encore.play(is_renewed=True)
            first = first_difference(plain, once_more)
            is_same = first is None and not _fields(plain.row, once_more.row)
            cause = "something else changed" if is_same else "not a function of its seed"
    return Replay(
        run=encore.stored.name,
        row=encore.row,
        again=seen.row,
        fields=fields,
        changed_policy=encore.change_of_policy,
        cause=cause,
        first=first,
        changes=changes if fields else [],
    )


def _cannot_render(error: EpisodeError) -> HarnessError:
    return HarnessError(
        f"it fails where it is rendered, and only there: {error.message}",
        where=error.place or "--render",
        mend="replay it without --render, or see what it needs: a display, or a library that draws",
    )


def _fields(one: EpisodeResult, other: EpisodeResult) -> list[FieldDifference]:
    """Return the fields that differ between a row and the same episode played again."""
    before, now = _compared(one), _compared(other)
    if one.planned_actions is None:  # averaged, or a row from before they were counted
        before.pop("planned_actions")
        before.pop("dropped_actions")
    if one.success_held is None:
        before.pop("success_held")
    names = sorted(before, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
    return [
        FieldDifference(name, before[name], now[name]) for name in names if not _is_same(before[name], now[name])
    ]


def _compared(row: EpisodeResult) -> dict[str, Any]:
    return {name: value for name, value in row_as_played(row).items() if name not in _LEFT_OUT}


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and (math.isnan(one) or math.isnan(other)):
        return not (math.isfinite(one) or math.isfinite(other))  # an older run does not say which infinity it was
    return bool(one == other)


def verdict_words(replay: Replay) -> list[str]:
    """Return what came of a replay, in sentences."""
    row = replay.row
    if replay.is_identical:
        trace = f"start {row.start_hash}, trace {row.trace_hash}"
        return [f"identical: {row.episode_id} is what it was in the run ({row.length:,} steps, {trace})"]
    words = [f"differs: {_what_differs(replay)}"]
    if replay.cause == "rendering":
        words.append("played again without rendering, it is what it was in the run: rendering changes the episode")
        words += _parting(replay, ("the plain replay", "the rendered one"))
    elif replay.cause == "not a function of its seed":
        who = "environment or policy" if replay.first is None else f"the {replay.first.owner}"
        words.append(
            "two replays, each with a new environment and a new policy, differ from one another: "
            f"{who} is not a function of its seed"
        )
        words += _parting(replay, ("the first replay", "the second"))
    else:
        words.append("two replays agree with one another, but not with the run: something has changed since")
        words += [f"  {line}" for line in replay.changes] or [_UNKNOWN]
    return words


def _what_differs(replay: Replay) -> str:
    names = [field.name for field in replay.fields]
    row = replay.row
    if (row.start_hash is None) is not (replay.again.start_hash is None):
        return f"its reset went well {'in the run' if row.start_hash else 'now'} alone"
    if "start_hash" in names:
        return f"the environment gives another first observation or info for seed {row.seed}"
    if "trace_hash" in names:
        return (
            f"it starts alike, but other actions are executed or other rewards paid "
            f"({row.length:,} steps in the run, {replay.again.length:,} now)"
        )
    return f"actions and rewards are the same, but not {', '.join(names)}"


def _parting(replay: Replay, names: tuple[str, str]) -> list[str]:
    first = replay.first
    if first is None:
        return []
    return [f"first at step {first.step}: {difference_words(first, names)}, {circumstance_words(first)}"]


def replay_record(replay: Replay, video: str | None = None) -> dict[str, Any]:
    """Return what `--json` prints. video: the file that was written."""
    row = replay.row
    return {
        "schema": "rlmesh.replay.v1",
        "run": replay.run,
        "index": row.index,
        "episode_id": row.episode_id,
        "seed": row.seed,
        "verdict": "identical" if replay.is_identical else "differs",
        "cause": replay.cause,
        "fields": msgspec.to_builtins(replay.fields),
        "first": msgspec.to_builtins(replay.first),
        "changed_policy": replay.changed_policy,
        "changes": replay.changes,
        "words": verdict_words(replay),
        "row": row,
        "replay": replay.again,
        "video": video,
    }
