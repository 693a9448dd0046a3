"""States: numbers of a whole batch cut, converted and laid in a row.

Axes: M rows, D numbers of one state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.errors import describe_error
from rlmesh_adapters.paths import NodePath, show_path, walk
from rlmesh_adapters.plans import Affine, Piece, StatePlan
from rlmesh_adapters.rotations import WIDTHS

from .errors import ApplyError
from .rotations import RotationError, convert

_Array = npt.NDArray[Any]


class StateStage:
    """Runs one StatePlan on batches.

    plan: what to do.
    """

    def __init__(self, plan: StatePlan) -> None:
        self.plan = plan
        self._dtype = np.dtype(plan.dtype)
        is_float = self._dtype.kind == "f"
        # Below it a number of float64 stays finite in the plan's dtype, however it is rounded.
        self._largest = float(np.finfo(self._dtype).max) if is_float else None
        self._pieces: list[tuple[PieceStage, slice]] = []
        at = 0
        for piece in plan.pieces:
            if piece.source is not None:
                self._pieces.append((PieceStage(piece), slice(at, at + piece.width)))
            at += piece.width
        self._is_full = at == plan.width and all(piece.source is not None for piece in plan.pieces)
        self._gather = _Gather.of(plan) if self._is_full else None

    def apply(self, observations: Any, rows: int) -> _Array | list[list[float]]:
        """Return (M, D) or (M, *reshape) of the plan's dtype, in memory of its own; or M lists of numbers.

        observations: (M, ...) batch in the structure of the observation space. rows: M.

        Raises ApplyError, naming rows, for values of a wrong width, rotations without length, and numbers that do
        not fit into a whole-number dtype.
        """
        gather = self._gather
        state = self._concatenated(observations, rows) if gather is None else gather.apply(observations, rows)
        if state.dtype != self._dtype:
            state = self._cast(state)
        if self.plan.container == "list":
            return [row.tolist() for row in state]
        return state if self.plan.reshape is None else state.reshape(rows, *self.plan.reshape)

    def _concatenated(self, observations: Any, rows: int) -> _Array:
        parts = []
        at = 0
        for stage, part in self._pieces:
            if part.start > at:
                parts.append(np.zeros((rows, part.start - at), np.int8))
            parts.append(stage.apply(observations, rows))
            at = part.stop
        if at < self.plan.width:
            parts.append(np.zeros((rows, self.plan.width - at), np.int8))
        # Of whole numbers whole numbers come, however large.
        return np.concatenate(parts, axis=1) if parts else np.zeros((rows, 0))

    def _cast(self, state: _Array) -> _Array:
        """Return numbers in the plan's dtype; those that it does not hold fail their rows."""
        if self._largest is not None and state.dtype.kind == "f":
            is_wider = self._dtype.itemsize > state.dtype.itemsize
            # The usual cases, at a glance; NaN is not below anything.
            if is_wider or b"\x00" not in (np.abs(state) < self._largest).tobytes():
                return state.astype(self._dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            cast = state.astype(self._dtype)
            if self._dtype.kind == "f":
                is_lost = ~np.isfinite(cast) & np.isfinite(state)
            else:
                # A cast that does not lead back lost a fraction, a sign, or all.
                is_lost = cast.astype(state.dtype) != state
                if self._dtype.kind in "iu":
                    info = np.iinfo(self._dtype)
                    is_lost |= (state < info.min) | ((cast < 0) != (state < 0))
                    if state.dtype.kind == "f":
                        # The largest 64-bit numbers have no float; the one above them would wrap around.
                        is_lost |= state >= float(info.max) + 1
        wrong = np.flatnonzero(is_lost.any(axis=1)).tolist()
        name = f'state "{show_path(self.plan.placement)}"'
        if wrong:
            raise ApplyError.each(
                wrong, lambda row: f"{name}: {state[row].tolist()} does not fit into {self._dtype}"
            )
        return cast


class _Gather:
    """All pieces of a state that come from one source and are neither rotations nor the user's: one pick."""

    def __init__(self, path: NodePath, width: int, picked: list[int], scale: _Array, offset: _Array) -> None:
        self._path, self._width = path, width
        self._picked = None if picked == list(range(width)) else np.array(picked, np.intp)
        is_scaled = bool((scale != 1).any() or offset.any())
        self._scale: _Array | None = scale if is_scaled else None
        self._offset: _Array | None = offset if offset.any() else None
        self._has_zero = not scale.all()

    @classmethod
    def of(cls, plan: StatePlan) -> _Gather | None:
        """Return the pick of a plan, None where one pick does not do."""
        first = plan.pieces[0]
        picked: list[int] = []
        scales, offsets = [], []
        for piece in plan.pieces:
            is_converted = piece.decode is not None or piece.src_encoding != piece.dst_encoding
            if piece.source is None or piece.source != first.source or is_converted:
                return None
            start = piece.offset + (piece.index or 0)
            picked += range(start, start + piece.width)
            affine = piece.affine or Affine(1.0, 0.0)
            scales.append(np.broadcast_to(np.asarray(affine.scale, np.float64), piece.width))
            offsets.append(np.broadcast_to(np.asarray(affine.offset, np.float64), piece.width))
        assert first.source is not None
        return cls(first.source, first.src_width, picked, np.concatenate(scales), np.concatenate(offsets))

    def apply(self, observations: Any, rows: int) -> _Array:
        """Return (M, D) numbers, in memory of their own."""
        flat = flat_source(observations, self._path, self._width, rows)
        state: _Array = flat if self._picked is None else flat.take(self._picked, 1)
        if self._scale is not None:
            return scaled(state, self._scale, self._offset, self._has_zero)
        return state.copy() if self._picked is None else state


def scaled(numbers: _Array, scale: _Array, offset: _Array | None, has_zero: bool) -> _Array:
    """Return `numbers * scale + offset`; where the scale is 0, a dimension without spread, only the offset.

    offset: None is zero, and saves an addition.
    """
    if offset is None:
        return np.where(scale == 0, 0.0, numbers * scale) if has_zero else numbers * scale
    result: _Array = numbers * scale + offset
    return np.where(scale == 0, offset, result) if has_zero else result


def flat_source(observations: Any, path: NodePath, width: int, rows: int) -> _Array:
    """Return the numbers of one leaf as (M, width); raises ApplyError for another width."""
    source = walk(observations, path)
    if source.__class__ is not np.ndarray:
        source = np.asarray(source)
    flat: _Array = source if source.ndim == 2 else source.reshape(rows, -1)
    if flat.shape[1] != width:
        message = (
            f'state piece "{show_path(path)}" resolved to {width} dims but the observation yields {flat.shape[1]}'
        )
        raise ApplyError(dict.fromkeys(range(rows), message))
    return flat


class PieceStage:
    """Runs one Piece on batches.

    piece: with a source.
    """

    def __init__(self, piece: Piece) -> None:
        assert piece.source is not None
        self.piece = piece
        self._path = piece.source
        self._stop = piece.offset + piece.src_dim
        self._is_whole = piece.offset == 0 and piece.src_dim == piece.src_width
        self._kept = slice(piece.index, piece.index + 1) if piece.index is not None else slice(piece.dim)
        self._cuts = piece.index is not None or piece.dim is not None
        self._scale, self._offset = factors(piece.affine)
        self._has_zero = self._scale is not None and not np.all(self._scale)

    def apply(self, observations: Any, rows: int) -> _Array:
        """Return (M, D) numbers; a view of the batch where nothing has to be done."""
        piece = self.piece
        flat = flat_source(observations, self._path, piece.src_width, rows)
        if not self._is_whole:
            flat = flat[:, piece.offset : self._stop]
        if piece.src_encoding != piece.dst_encoding:
            flat = self._converted(flat)
        if piece.decode is not None:
            flat = each_row(piece.decode, flat, f'rotation "{show_path(self._path)}"', WIDTHS[piece.dst_encoding])
        if self._cuts:
            flat = flat[:, self._kept]
        return flat if self._scale is None else scaled(flat, self._scale, self._offset, self._has_zero)

    def _converted(self, flat: _Array) -> _Array:
        piece = self.piece
        try:
            turned: _Array = convert(flat, piece.src_encoding, piece.dst_encoding, keeps_sign=piece.keeps_sign)
        except RotationError as error:
            name = f'rotation "{show_path(self._path)}"'
            wrong = error
            raise ApplyError.each(error.rows, lambda row: f"{name}: {wrong.tell(flat[row])}") from error
        return turned


def each_row(function: Callable[[Any], Any], rows: _Array, name: str, width: int) -> _Array:
    """Return (M, width) of a function of the user's own, called row by row; a row that it fails on fails alone."""
    made: _Array = np.empty((len(rows), width))
    wrong: dict[int, str] = {}
    for row, values in enumerate(rows):
        try:
            made[row] = np.asarray(function(values.astype(np.float64)), np.float64).reshape(width)
        except Exception as error:  # a function of the user's may raise anything
            wrong[row] = f"{name}: the policy's own encoding raised {describe_error(error)}"
    if wrong:
        raise ApplyError(wrong)
    return made


def factors(affine: Affine | None) -> tuple[Any, Any]:
    """Return (scale, offset) as float64 numbers or arrays, None for nothing, and for an offset of zero."""
    if affine is None:
        return None, None
    offset = np.asarray(affine.offset, np.float64)
    return np.asarray(affine.scale, np.float64), offset if offset.any() else None
