"""Actions: a model's flat output of a whole batch made into actions of the environment.

Axes: M rows, H actions of a chunk; F flat actions, M or M times H.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.corrections import corrected, corrections
from rlmesh_adapters.plans import ActionPlan, Segment
from rlmesh_adapters.rotations import WIDTHS
from rlmesh_adapters.spaces import SpaceView

from .errors import ApplyError
from .rotations import RotationError, convert
from .states import PieceStage, each_row, factors, scaled

_Array = npt.NDArray[Any]


# Up to so many numbers, and of so many values, are looked up one by one.
_FEW = 48
_MOST_VALUES = 1024


class Use(msgspec.Struct, kw_only=True):
    """How far one component of the action was driven.

    role: of the component. values: numbers that were sent. clipped: those that were beyond what it takes.
    saturated: those that stand at an end of its range, clipped ones among them.
    """

    role: str
    values: int = 0
    clipped: int = 0
    saturated: int = 0


class ActionStage:
    """Runs an ActionPlan on batches.

    plan: what to do. view: space of one action.
    """

    def __init__(self, plan: ActionPlan, view: SpaceView) -> None:
        self.plan = plan
        self._width = sum(segment.width for segment in plan.segments)
        self._low, self._high = _ends(plan, view)
        # Strictly between these a number is inside, and stays finite in the type of the space.
        largest = float(np.finfo(plan.dtype).max) if plan.dtype.kind == "f" else np.inf
        self._inner_low = np.maximum(self._low.astype(np.float64), -largest)
        self._inner_high = np.minimum(self._high.astype(np.float64), largest)
        is_even = bool((self._inner_low == -self._inner_high).all())
        self._inner_half: _Array | None = self._inner_high if is_even else None
        self._is_whole = plan.dtype.kind in "iub"
        self._stages: list[tuple[_SegmentStage, PieceStage | None, slice]] = []
        #: How far each component was driven; those that snap, select or send a constant are not in it.
        self.uses: list[Use] = []
        # Those with a clip of their own say what the numbers were before it.
        self._used: list[tuple[Use, slice, _SegmentStage | None]] = []
        at = 0
        for segment in plan.segments:
            part = slice(at, at + segment.width)
            at += segment.width
            if segment.fill is not None:
                continue
            reference = None if segment.reference is None else PieceStage(segment.reference)
            stage = _SegmentStage(segment, is_all=(segment.start, segment.stop) == (0, plan.in_dim))
            self._stages.append((stage, reference, part))
            if not (segment.is_binary or segment.select):
                self.uses.append(stage.use)
                self._used.append((stage.use, part, stage if segment.clip is not None else None))
        self._widths = [(use, part.stop - part.start) for use, part, _ in self._used]
        self._is_flat = plan.shape == (self._width,)
        self._has_own_clips = any(own is not None for *_, own in self._used)
        #: Whether the current observation is needed.
        self.needs_observation = any(reference is not None for _, reference, _ in self._stages)
        fills = [np.full(segment.width, segment.fill or 0.0) for segment in plan.segments]
        self._constant = np.concatenate(fills) if len(self._stages) < len(plan.segments) else None
        self._is_lone = len(self._stages) == 1 and self._constant is None
        # A value that was chosen is inside its space as it is.
        self._is_chosen = all(segment.select or segment.fill is not None for segment in plan.segments)

    def apply(self, outputs: _Array, observations: Any) -> tuple[_Array, _Array | None]:
        """Return ((M, [H,] *shape) actions, which of them had a number clipped, (M, [H]), or None).

        outputs: (M, in_dim) or (M, H, in_dim), finite floats. observations: (M, ...), read only where
        `needs_observation`.

        Raises ApplyError, naming rows, for rotations that are none, and numbers that are no whole ones where the
        action is discrete.
        """
        lead = outputs.shape[:-1]
        if outputs.dtype != np.float64:
            outputs = outputs.astype(np.float64)
        repeats = 1 if len(lead) == 1 else lead[1]
        flat = outputs if len(lead) == 1 else outputs.reshape(lead[0] * repeats, self.plan.in_dim)
        # Only whole numbers can be refused after they were counted.
        before = [(use.clipped, use.saturated) for use, *_ in self._used] if self._is_whole else []
        try:
            actions, clipped = self._finished(*self._driven(flat, observations, lead[0], repeats))
        except ApplyError as error:
            # What is converted once more is counted once.
            for (use, *_), (cut, ended) in zip(self._used, before, strict=False):
                use.clipped, use.saturated = cut, ended
            if repeats == 1:
                raise
            messages: dict[int, str] = {}
            for row, message in error.messages.items():
                messages.setdefault(row // repeats, message)
            raise ApplyError(messages) from error
        rows = len(flat)
        for use, width in self._widths:
            use.values += rows * width
        if self._is_flat and len(lead) == 1:
            return actions, clipped
        return actions.reshape(*lead, *self.plan.shape), None if clipped is None else clipped.reshape(lead)

    def _driven(self, flat: _Array, observations: Any, rows: int, repeats: int) -> tuple[_Array, _Array | None]:
        """Return (F, width) numbers, and which rows an actuator of its own clipped."""
        clipped: _Array | None = None
        if self._is_lone:
            stage, reference, _ = self._stages[0]
            return stage.apply(flat, _origin(reference, observations, rows, repeats))
        actions: _Array = np.empty((len(flat), self._width), np.float64)
        if self._constant is not None:
            actions[:] = self._constant
        for stage, reference, place in self._stages:
            part, cut = stage.apply(flat, _origin(reference, observations, rows, repeats))
            actions[:, place] = part
            if cut is not None:
                clipped = cut if clipped is None else clipped | cut
        return actions, clipped

    def _finished(self, actions: _Array, clipped: _Array | None) -> tuple[_Array, _Array | None]:
        """Clip into the space, count, and give the numbers the space's type."""
        dtype = self.plan.dtype
        if self._is_chosen:
            return actions.astype(dtype), clipped
        # One look tells that nothing is at an end, which is what is usual; NaN is never inside.
        if b"\x00" not in self._are_inside(actions).tobytes():
            cast = actions if self._is_whole else actions.astype(dtype)
        else:
            cast, clipped = self._clipped(actions, clipped)
        if self._is_whole:
            wrong = np.flatnonzero((np.rint(cast) != cast).any(axis=1)).tolist()
            if wrong:
                raise ApplyError.each(wrong, lambda row: f"action {actions[row].tolist()} is not of whole numbers")
            cast = cast.astype(dtype)
        if self._has_own_clips:
            self._count_own_clips(cast)
        return cast, clipped

    def _are_inside(self, actions: _Array) -> _Array:
        half = self._inner_half
        if half is not None:
            return np.asarray(np.abs(actions) < half)
        return (actions > self._inner_low) & (actions < self._inner_high)

    def _count_own_clips(self, sent: _Array) -> None:
        """Count what components with a clip of their own lost by it, or by what came after."""
        for use, part, own in self._used:
            if own is None:
                continue
            now, before = sent[:, part], own.before.astype(sent.dtype)
            low, high = (np.asarray(end).astype(sent.dtype) for end in own.segment.clip or ())
            is_cut = now != before
            is_end = (now == self._low[part]) | (now == self._high[part]) | (now == low) | (now == high)
            use.clipped += int(is_cut.sum())
            use.saturated += int((is_cut | is_end).sum())

    def _clipped(self, actions: _Array, clipped: _Array | None) -> tuple[_Array, _Array | None]:
        """Clip what is beyond an end, and count it; in the type of the space, to which its bounds are rounded."""
        with np.errstate(over="ignore"):
            cast = actions if self._is_whole else actions.astype(self.plan.dtype)
        if b"\x00" in np.isfinite(cast).tobytes():
            raise _not_finite(actions, cast)
        outside = (cast < self._low) | (cast > self._high)
        ends = outside | (cast == self._low) | (cast == self._high)
        for use, part, own in self._used:
            if own is None:
                # Bytes are counted several times faster than bools are added.
                use.clipped += outside[:, part].tobytes().count(1)
                use.saturated += ends[:, part].tobytes().count(1)
        if b"\x01" not in outside.tobytes():
            return cast, clipped
        cut: _Array = np.asarray(outside.any(axis=1))
        # Only what is outside: of a negative zero `clip` makes a positive one.
        inside = np.where(outside, np.clip(cast, self._low, self._high), cast)
        return inside, cut if clipped is None else clipped | cut


def _not_finite(actions: _Array, seen: _Array) -> ApplyError:
    """Return the error of the rows that are not finite in `seen`."""
    wrong = np.flatnonzero(~np.isfinite(seen).all(axis=1)).tolist()
    return ApplyError.each(wrong, lambda row: f"the action is not finite: {actions[row].tolist()}")


def _ends(plan: ActionPlan, view: SpaceView) -> tuple[_Array, _Array]:
    """Return what the environment takes of each number: the bounds of its space, and of its tags."""
    assert view.low is not None
    assert view.high is not None
    low, high = view.low.astype(np.float64).ravel(), view.high.astype(np.float64).ravel()
    if view.dtype is not None and view.dtype.kind in "iu":
        # The largest 64-bit numbers have no float; the float above them would wrap around.
        largest = float(np.iinfo(view.dtype).max)
        if int(largest) > np.iinfo(view.dtype).max:
            high = np.minimum(high, np.nextafter(largest, 0))
    if view.kind != "box":
        # A value of a discrete space is no number between two ends; it is checked when it is chosen.
        return np.full_like(low, -np.inf), np.full_like(high, np.inf)
    if plan.clip is not None:
        low, high = np.maximum(low, plan.clip[0]), np.minimum(high, plan.clip[1])
    return (low, high) if plan.dtype.kind != "f" else (low.astype(plan.dtype), high.astype(plan.dtype))


def _origin(reference: PieceStage | None, observations: Any, rows: int, repeats: int) -> _Array | None:
    """Return what the observation says of each flat action, (F, width)."""
    if reference is None:
        return None
    seen = reference.apply(observations, rows)
    return seen if repeats == 1 else np.repeat(seen, repeats, axis=0)


class _SegmentStage:
    """Runs one segment on flat outputs (F, in_dim).

    is_all: whether it takes all of them.
    """

    def __init__(self, segment: Segment, *, is_all: bool = False) -> None:
        self.segment = segment
        self.use = Use(role=segment.role)
        self.before: _Array = np.empty(0)
        self._scale, self._offset = factors(segment.affine)
        self._steps = corrections(segment)
        self._is_all = is_all
        self._values = frozenset(range(segment.low, segment.low + min(segment.count, _MOST_VALUES)))

    def apply(self, flat: _Array, origin: _Array | None) -> tuple[_Array, _Array | None]:
        """Return ((F, width) numbers, which rows were clipped or None)."""
        segment = self.segment
        part = flat if self._is_all else flat[:, segment.start : segment.stop]
        if segment.select:
            return self._selected(corrected(part, self._steps, is_binary=False)), None
        if self._scale is not None and segment.statistics:
            # Statistics are of what the model puts out; ranges are of what the environment takes.
            part = scaled(part, self._scale, self._offset, False)
        if segment.encode is not None:
            part = each_row(segment.encode, part, f'action role "{segment.role}"', WIDTHS[segment.src_encoding])
        if segment.src_encoding != segment.dst_encoding:
            part = self._converted(part)
        if self._scale is not None and not segment.statistics:
            part = scaled(part, self._scale, self._offset, False)
        if origin is not None:
            part = part + segment.sign * origin
            if segment.is_binary and not np.isfinite(part).all():
                raise _not_finite(part, part)
        part = corrected(part, self._steps, is_binary=segment.is_binary)
        if segment.clip is None:
            return part, None
        # To be counted when all clipping is done.
        self.before = part
        return _clip(part, *segment.clip)

    def _converted(self, part: _Array) -> _Array:
        segment = self.segment
        try:
            turned: _Array = convert(
                part, segment.src_encoding, segment.dst_encoding, keeps_sign=segment.keeps_sign
            )
        except RotationError as error:
            name = f'action role "{segment.role}"'
            wrong = error
            raise ApplyError.each(error.rows, lambda row: f"{name}: {wrong.tell(part[row])}") from error
        return turned

    def _selected(self, part: _Array) -> _Array:
        """Return (F, width) values of a discrete action."""
        segment = self.segment
        if segment.select == "argmax":
            best: _Array = part.argmax(axis=1)[:, None] + segment.low
            return best
        if segment.select == "threshold":
            return (part >= segment.model_threshold) + segment.low
        # A few numbers are looked up faster than compared.
        if part.size <= _FEW and self._values.issuperset(part.ravel().tolist()):
            return part
        whole = np.rint(part)
        fits = (whole == part) & (whole >= segment.low) & (whole < segment.low + segment.count)
        wrong = np.flatnonzero(~fits.all(axis=1)).tolist()
        if wrong:
            values = f"{segment.low} to {segment.low + segment.count - 1}"
            name = f'action role "{segment.role}"'
            raise ApplyError.each(wrong, lambda row: f"{name}: {part[row].tolist()} is no value from {values}")
        return whole


def _clip(part: _Array, low: Any, high: Any) -> tuple[_Array, _Array | None]:
    inside = (part >= low) & (part <= high)
    if inside.all():
        return part, None
    return np.where(inside, part, np.clip(part, low, high)), ~inside.all(axis=1)
