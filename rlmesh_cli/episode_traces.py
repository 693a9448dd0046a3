"""Episode traces: what was paid and done at each step of one episode, from its file of steps or from a replay."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import HarnessError, describe_error

from .encores import Encore
from .episodes import EpisodeResult
from .recordings import KeptArray, Moment
from .run_reader import StoredRun
from .wording import counted

#: Folder of a run that holds a file of steps for each episode.
STEPS = "steps"
# How near a number is to a bound that it reached: bounds are read from text with eight digits.
_NEAR = 1e-6

_NUMBERS = r"(\[[^()]*\]|[^,()\[\]]+)"
_SPACE = re.compile(rf"Box\({_NUMBERS}, {_NUMBERS}, \(([\d, ]*)\), \w+\)|Discrete\([^()]*\)")

Bounds = tuple[float | None, float | None]


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One number of the action, step by step.

    name: such as `action`, `action[2]` or `action.arm[0]`. low, high: bounds of its space, None where there are
    none, or they are not known.
    """

    name: str
    low: float | None = None
    high: float | None = None
    values: list[float]

    def at_low(self) -> list[bool]:
        """Tell at which steps it was at its lower bound."""
        return _at(self.values, self.low)

    def at_high(self) -> list[bool]:
        """Tell at which steps it was at its upper bound."""
        return _at(self.values, self.high)


def _at(values: list[float], bound: float | None) -> list[bool]:
    if bound is None:
        return [False] * len(values)
    return [math.isclose(value, bound, rel_tol=_NEAR, abs_tol=_NEAR) for value in values]


class EpisodeTrace(msgspec.Struct, frozen=True, kw_only=True):
    """The T steps of one episode.

    source: `steps`, the file that the run left, or `replay`. rewards: T. actions: a component each, of T steps.
    """

    source: Literal["steps", "replay"]
    rewards: list[float]
    actions: list[Component]


class NoTraceError(HarnessError):
    """Nothing is known of an episode's steps."""


def recorded_trace(stored: StoredRun, row: EpisodeResult) -> EpisodeTrace | None:
    """Return what the run's own file of an episode's steps says, None if there is none.

    Raises NoTraceError where the file cannot be read, or is not of this episode.
    """
    file = stored.folder / STEPS / f"{row.episode_id}.parquet"
    if not file.exists():
        return None
    try:
        from .step_files import read_steps  # noqa: PLC0415 - of an extra

        columns: Mapping[str, npt.NDArray[Any]] = read_steps(file)
        rewards = np.asarray(columns["reward"], np.float64)[: row.length]
        actions = {
            name: np.asarray(column)[: row.length]
            for name, column in columns.items()
            if name == "action" or name.startswith("action.")
        }
        is_whole = all(len(column) == row.length for column in (rewards, *actions.values()))
    except HarnessError as error:
        raise NoTraceError(error.cause, where=error.where, mend=error.mend) from error
    except (ImportError, OSError) as error:
        raise NoTraceError(
            f"{file.name} cannot be read: {describe_error(error)}", where=str(file), mend="see that it can be read"
        ) from error
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(file, describe_error(error)) from error
    total = 0.0
    for reward in rewards.tolist():
        total += reward
    if not is_whole or len(columns["reward"]) not in (row.length, row.length + 1):
        raise _damaged(file, f"it has not the {row.length:,} steps of the episode")
    if total != row.return_ and math.isfinite(row.return_):
        raise _damaged(file, f"its rewards add up to {total}, and the episode's return is {row.return_}")
    return _trace("steps", rewards, actions, stored)


def _damaged(file: Path, what: str) -> NoTraceError:
    return NoTraceError(f"{file.name} is damaged: {what}", where=str(file), mend="take the file away")


def replayed_trace(encore: Encore) -> EpisodeTrace:
    """Play an episode again, and return what passed.

    Raises NoTraceError where it is not the same again, HarnessError where it cannot be played.
    """
    row, stored = encore.row, encore.stored
    take, changes = encore.play()
    if take.row.trace_hash != row.trace_hash:
        lengths = f"{counted(row.length, 'step')} and return {row.return_:g} in the run"
        now = f"{take.row.length:,} and {take.row.return_:g} now"
        said = "".join(f"; {change}" for change in changes)
        raise NoTraceError(
            f"played again, {row.episode_id} is not what it was: {lengths}, {now}{said}",
            where=str(stored.folder),
            mend=f"see why: rlmesh replay {shlex.quote(str(stored.folder))} {row.index}; "
            "a run with --record steps keeps what passes",
        )
    moments = [moment for moment in take.moments if moment.reward is not None]
    rewards = np.array([moment.reward for moment in moments], np.float64)
    return _trace("replay", rewards, _actions_of(moments), stored)


def _actions_of(moments: list[Moment]) -> dict[str, npt.NDArray[Any]]:
    names = moments[0].action or {} if moments else {}
    found = {}
    for name in names:
        leaves = [(moment.action or {}).get(name) for moment in moments]
        arrays = [leaf.restored() if isinstance(leaf, KeptArray) else np.asarray(leaf) for leaf in leaves]
        if len({array.shape for array in arrays}) == 1:
            found[name] = np.stack(arrays)
    return found


def _trace(
    source: Literal["steps", "replay"],
    rewards: npt.NDArray[np.float64],
    actions: Mapping[str, npt.NDArray[Any]],
    stored: StoredRun,
) -> EpisodeTrace:
    columns: list[tuple[str, list[float]]] = []
    for name, leaf in actions.items():
        if leaf.dtype.kind not in "biuf":
            continue
        # Not -1: of no steps there is nothing to be worked out.
        flat = leaf.reshape(len(leaf), math.prod(leaf.shape[1:])).astype(np.float64)
        for at in range(flat.shape[1]):
            columns.append((name if leaf.ndim == 1 else f"{name}[{at}]", flat[:, at].tolist()))
    bounds = bounds_in(str((stored.record.get("env") or {}).get("action_space", "")))
    if len(bounds) != len(columns):
        bounds = [(None, None)] * len(columns)
    return EpisodeTrace(
        source=source,
        rewards=rewards.tolist(),
        actions=[
            Component(name=name, low=low, high=high, values=values)
            for (name, values), (low, high) in zip(columns, bounds, strict=True)
        ],
    )


def bounds_in(label: str) -> list[Bounds]:
    """Return the bounds of each number of a space from how it is printed, in order; of Box spaces alone.

    A long array is printed with dots; then there is nothing to be known, and the list is empty.
    """
    bounds: list[Bounds] = []
    for match in _SPACE.finditer(label):
        if match[3] is None:
            bounds.append((None, None))
            continue
        count = math.prod(int(side) for side in match[3].split(",") if side.strip())
        ends = [_numbers(text, count) for text in match.groups()[:2]]
        if any(len(end) != count for end in ends):
            return []
        bounds += zip(*ends, strict=True)
    return bounds


def _numbers(text: str, count: int) -> list[float | None]:
    try:
        found = [float(part) for part in text.replace("[", " ").replace("]", " ").split()]
    except ValueError:
        return []
    finite = [value if math.isfinite(value) else None for value in found]
    return finite * count if len(finite) == 1 else finite
