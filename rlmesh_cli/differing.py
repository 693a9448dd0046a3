"""Differing: the first thing in which two plays of one episode are not the same, and the words for it.

In one step the order is: what the policy was asked with, what was executed, what was paid, whether it ended.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import shortened

from .episodes import EpisodeResult
from .fingerprints import start_hash
from .recordings import KeptArray, KeptLeaves, Moment

What = Literal["observation", "action", "reward", "end"]
Owner = Literal["policy", "environment"]

#: Under so much of the values' size a difference may be rounding.
ROUNDING = 1e-5
_GOES_ON = "goes on"
_SHOWN = 60


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where two plays of one episode part.

    step: 0-based. what: `observation` (that the policy was asked with), `action` (that was executed), `reward` or
        `end`. owner: whose doing it is, since everything before it is equal: `policy` or `environment`.
    leaf: `observation.camera`, `action`, `reward`, `end`; dimension: index in that array, None for a single value.
    values: of both plays, floats with the digits that their type needs; text where there is no number: how it
        ended, or the type and shape of what does not compare.
    size: absolute difference, None for what is no number or not finite.
    is_small: the size is under 1e-5 of the values' size.
    count: numbers of that leaf that differ, out of `numbers`.
    """

    step: int
    what: What
    owner: Owner
    leaf: str
    dimension: tuple[int, ...] | None
    values: tuple[Any, Any]
    size: float | None = None
    is_small: bool = False
    count: int = 1
    numbers: int = 1


class Take(msgspec.Struct, frozen=True, kw_only=True):
    """One play of an episode: its row, and what was written down.

    conversion: between environment and policy, see RoutePlan.
    """

    row: EpisodeResult
    moments: list[Moment]
    conversion: dict[str, Any] = {}


def first_difference(one: Take, other: Take) -> Difference | None:
    """Return where two plays part, compared exactly (NaN equals NaN); None if they never do."""
    lengths = one.row.length, other.row.length
    for step in range(max(lengths) + 1):
        pair = tuple(take.moments[step] if step < len(take.moments) else None for take in (one, other))
        if pair[0] is not None and pair[1] is not None:
            # What stands after the last step was shown to nobody.
            is_asked = step < min(lengths) or _is_asked(one, step) or _is_asked(other, step)
            found = _in_moment(pair[0], pair[1], step, is_asked=is_asked)
            if found is not None:
                return found
        ends = _end_at(one, step), _end_at(other, step)
        if ends[0] != ends[1]:
            return Difference(
                step=step, what="end", owner=_ender(one, other, ends), leaf="end", dimension=None, values=ends
            )
        if ends[0] != _GOES_ON:
            return None
    return None


def _is_asked(take: Take, step: int) -> bool:
    """Tell whether the policy was asked at a step that it could not answer, or its environment not finish."""
    error = take.row.error
    return error is not None and error.step == step


def _in_moment(one: Moment, other: Moment, step: int, *, is_asked: bool) -> Difference | None:
    if is_asked:
        found = _in_leaves(one.observation, other.observation, step, "observation", "environment")
        if found is not None:
            return found
    if one.action is not None and other.action is not None:
        found = _in_leaves(one.action, other.action, step, "action", "policy")
        if found is not None:
            return found
    if one.reward is not None and other.reward is not None:
        rewards = [
            {"reward": KeptArray(np.dtype(np.float64), (), np.float64(moment.reward).tobytes())}
            for moment in (one, other)
        ]
        return _in_leaves(rewards[0], rewards[1], step, "reward", "environment")
    return None


def _in_leaves(one: KeptLeaves, other: KeptLeaves, step: int, what: What, owner: Owner) -> Difference | None:
    for leaf in dict.fromkeys([*one, *other]):
        kept = one.get(leaf, _Absent), other.get(leaf, _Absent)
        found = _in_leaf(*kept)
        if found is not None:
            return Difference(step=step, what=what, owner=owner, leaf=leaf, **found)
    return None


class _Absent:
    """Stands for a leaf that only the other play has."""


def _in_leaf(one: Any, other: Any) -> dict[str, Any] | None:
    if not isinstance(one, KeptArray) or not isinstance(other, KeptArray):
        return None if _are_alike(one, other) else {"dimension": None, "values": (_shown(one), _shown(other))}
    if one == other:
        return None
    if one.shape != other.shape:
        return {"dimension": None, "values": (_shown(one), _shown(other))}
    arrays = one.restored(), other.restored()
    differing = _unequal(*arrays)
    count = int(np.count_nonzero(differing))
    if not count:
        return None
    place = tuple(map(int, np.argwhere(differing)[0]))
    values = _plain(arrays[0][place]), _plain(arrays[1][place])
    size = _size(*(array[place] for array in arrays))
    is_small = size is not None and size < ROUNDING * max(abs(value) for value in values)
    return {
        "dimension": place or None,
        "values": values,
        "size": size,
        "is_small": is_small,
        "count": count,
        "numbers": differing.size,
    }


def _are_alike(one: Any, other: Any) -> bool:
    """Tell whether two values that are no arrays are the same, as far as their bytes can be told."""
    return type(one) is type(other) and start_hash(one, {}) == start_hash(other, {})


def _unequal(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    differing = np.asarray(one != other)
    if one.dtype.kind in "fc" and other.dtype.kind in "fc":
        differing &= ~(np.isnan(one) & np.isnan(other))
    return differing


def _plain(number: Any) -> Any:
    """Return a number of numpy's as a plain one, with as many digits as its type needs."""
    return float(str(number)) if number.dtype.kind == "f" else number.item()


def _size(one: Any, other: Any) -> float | None:
    """Return the distance of two numbers, None if they have none that can be written down."""
    if one.dtype.kind not in "iuf" or other.dtype.kind not in "iuf":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        size = abs(float(one.item() - other.item()))
    return size if math.isfinite(size) else None


def _shown(value: Any) -> str:
    if value is _Absent:
        return "not there"
    if isinstance(value, KeptArray):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    text = repr(value) if isinstance(value, str) else type(value).__name__
    return shortened(text, _SHOWN)


def _end_at(take: Take, step: int) -> str:
    """Return how a play ended with a step, or at it if the step was not finished."""
    row = take.row
    at = row.length if row.error is not None else row.length - 1
    if step < at:
        return _GOES_ON
    if row.error is not None:
        return f"error in {row.error.phase}: {row.error.message}"
    if row.terminated and row.truncated:
        return "terminated and truncated"
    return row.end


def _ender(one: Take, other: Take, ends: tuple[str, str]) -> Owner:
    """Return whose doing it is that one play ended in another way."""
    for take, end in zip((one, other), ends, strict=True):
        if end != _GOES_ON and take.row.error is not None and take.row.error.phase not in ("reset", "step"):
            return "policy"
    return "environment"


def difference_words(difference: Difference, names: Sequence[str]) -> str:
    """Return a difference as part of a sentence, such as `action[2] is 0.31 in BASE and 0.35 in NEW (by 0.04)`.

    names: of the two plays.
    """
    one, other = map(_value_words, difference.values)
    if difference.what == "end":
        return f"{_end_words(one, names[0])}, {_end_words(other, names[1])}"
    inside = "" if difference.dimension is None else f"[{', '.join(map(str, difference.dimension))}]"
    notes = []
    if difference.size is not None:
        small = f", under {ROUNDING:.0e} of their size".replace("e-0", "e-") if difference.is_small else ""
        notes.append(f"by {difference.size:.3g}{small}")
    if difference.count > 1:
        notes.append(f"{difference.count:,} of {difference.numbers:,} numbers differ")
    note = f" ({'; '.join(notes)})" if notes else ""
    return f"{difference.leaf}{inside} is {one} in {names[0]} and {other} in {names[1]}{note}"


def _end_words(end: str, name: str) -> str:
    if end == _GOES_ON:
        return f"{name} goes on"
    return f"{name} ends with an {end}" if end.startswith("error") else f"{name} ends ({end.replace('_', ' ')})"


def _value_words(value: Any) -> str:
    is_short = isinstance(value, float) and value.is_integer() and abs(value) < 1e15
    return str(int(value)) if is_short else str(value)


def circumstance_words(difference: Difference, *, is_converted_alike: bool = True) -> str:
    """Return what was equal up to a difference, and so whose doing it is.

    is_converted_alike: whether both policies were shown, and both environments given, what the same steps made.
    """
    if difference.what == "action" and not is_converted_alike:
        return "on equal observations, which are converted otherwise: the conversion's doing, or the policy's"
    if difference.what == "action":
        return "on equal observations: the policy's doing"
    if difference.what == "observation" and difference.step == 0:
        return "at the start: the environment's doing"
    if difference.what == "observation":
        return "after equal observations, actions and rewards: the environment's doing"
    if difference.what == "reward":
        return "for equal observations and actions: the environment's doing"
    return f"after equal steps: the {difference.owner}'s doing"
