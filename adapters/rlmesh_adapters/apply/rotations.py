"""Rotations from one encoding to another, a whole batch at once, in float64.

Every conversion goes through a unit quaternion x y z w, for a matrix loses tiny angles and angles near pi.
Inside, numbers come first, (W, M), so that each step is one operation on rows of memory. Sums are written out:
numpy's own add in an order that depends on M, and a row must not depend on the others.

Axes: M rotations, W numbers of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi
from typing import Any

import numpy as np
import numpy.typing as npt

from rlmesh_adapters.rotations import WIDTHS

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

# Lengths up to this are zero.
_SHORTEST_LENGTH = 1e-8
# Larger numbers overflow when multiplied, and are no rotation anyone meant.
_LARGEST = 1e100
# Keeps 0/0 away: small enough to change no result, large enough that 2 pi divided by it is finite.
_TINY = 1e-306
# cos(pitch) up to which roll and yaw count as one turn, which turns the result by at most twice as much.
_LOCK = 1e-12

_WXYZ_TO_XYZW = np.array([1, 2, 3, 0])
_XYZW_TO_WXYZ = np.array([3, 0, 1, 2])
_ROWS_TO_COLUMNS = np.array([0, 2, 4, 1, 3, 5])
_COLUMNS_TO_ROWS = np.array([0, 3, 1, 4, 2, 5])

# Of the first two columns of a matrix, each number is 2 (ab + cd), but minus for m20 and m01, and less 1 for m00
# and m11. Here are all a and c, and all b and d, as numbers of the quaternion: x y z w = 0 1 2 3.
_LEFT_FACTORS = np.array([0, 0, 0, 0, 1, 1, 3, 3, 3, 3, 3, 3])
_RIGHT_FACTORS = np.array([0, 1, 2, 1, 1, 2, 3, 2, 1, 2, 3, 0])

# Where products xx yy zz ww xy xz yz wx wy wz stand in the row of a quaternion times its x, y, z or w.
_PRODUCT_ROWS = np.array([[0, 4, 5, 7], [4, 1, 6, 8], [5, 6, 2, 9], [7, 8, 9, 3]])


class RotationError(ValueError):
    """Values that are no rotation.

    encoding: that they were given in. fault: what is wrong with them.
    rows: which rows are affected. value: the numbers of the first.
    """

    def __init__(self, encoding: str, fault: str, rows: tuple[int, ...], value: Array) -> None:
        shown = ", ".join(str(number) for number in value.tolist())
        others = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        super().__init__(f"{encoding} {fault} in row {rows[0]}{others}: [{shown}]")
        self.rows = rows
        self._what = f"{encoding} {fault}"

    def tell(self, value: Array) -> str:
        """Return the fault of one affected row."""
        return f"{self._what}: [{', '.join(str(number) for number in value.tolist())}]"


class _UnusableError(Exception):
    def __init__(self, fault: str, is_usable: Any) -> None:
        super().__init__(fault)
        self.fault = fault
        self.is_usable = is_usable


def convert(values: Array, src: str, dst: str, *, keeps_sign: bool = False) -> Floats:
    """Write rotations in another encoding.

    The same rotation has two quaternions, q and -q, and many axis-angles. The canonical form is the shortest
    turn: w is not negative, and the angle is at most pi. At exactly pi the first of x, y, z that is not zero is
    positive. Angles of `euler_xyz` are in [-pi, pi], the pitch in [-pi/2, pi/2]; where roll and yaw turn about
    one axis (gimbal lock), yaw is 0. Columns of six numbers are made orthonormal (Gram-Schmidt), quaternions
    are normalised.

    values: (M, WIDTHS[src]) numbers; not modified.
    src, dst: encodings out of WIDTHS. The same one twice gives an unchanged, unchecked copy.
    keeps_sign: a quaternion source keeps its sign: it is not turned into the canonical form for the other order
        of quaternions, and its axis-angle is 2 atan2(|xyz|, w), in [0, 2 pi]. Other sources have no sign.
    Returns (M, WIDTHS[dst]) float64. A row does not depend on the others.

    Raises RotationError for numbers that are not finite (or beyond 1e100), quaternions and columns of length
    zero (up to 1e-8), and parallel columns; ValueError for a wrong width.
    """
    if values.ndim != 2 or values.shape[1] != WIDTHS[src]:
        raise ValueError(f"{src} takes (rows, {WIDTHS[src]}) numbers, got shape {values.shape}")
    if src == dst:
        return np.array(values, np.float64)
    if not len(values):
        return np.empty((0, WIDTHS[dst]))
    numbers = np.array(values.T, np.float64, order="C")
    try:
        _check_finite(numbers)
        quat = _READERS[src](numbers)
    except _UnusableError as error:
        rows = np.flatnonzero(~error.is_usable).tolist()
        raise RotationError(src, error.fault, tuple(rows), values[rows[0]]) from None
    # q and -q have the same columns.
    if not dst.startswith("rot6d") and not (keeps_sign and src.startswith("quat")):
        quat = _canonical(quat)
    return np.ascontiguousarray(_WRITERS[dst](quat).T)


def _check_finite(numbers: Floats) -> None:
    # The quickest look at all numbers; NaN is not <= either.
    if np.vdot(numbers, numbers) <= _LARGEST:
        return
    is_usable = (np.abs(numbers) <= _LARGEST).all(axis=0)
    if not is_usable.all():
        # One fault for both, so that what is said of a row does not depend on its neighbours.
        raise _UnusableError("is not finite or too large", is_usable)


def _canonical(quat: Floats) -> Floats:
    lead = quat[3]
    if not lead.all():
        for number in quat[:3]:
            lead = np.where(lead == 0, number, lead)
    # Without 0.0, the signs of zeros would tell q from -q.
    canonical: Floats = quat * np.copysign(1.0, lead) + 0.0
    return canonical


def _quat_from_xyzw(numbers: Floats) -> Floats:
    length = np.hypot(_length(numbers), numbers[3])
    _check_length(length, "has length zero")
    quat: Floats = numbers / length
    return quat


def _quat_from_wxyz(numbers: Floats) -> Floats:
    return _quat_from_xyzw(numbers.take(_WXYZ_TO_XYZW, axis=0))


def _quat_from_axis_angle(numbers: Floats) -> Floats:
    angle = np.maximum(_length(numbers), _TINY)
    half = angle * 0.5
    return np.concatenate([numbers * (np.sin(half) / angle), np.cos(half)[None]])


def _quat_from_euler(numbers: Floats) -> Floats:
    half = numbers * 0.5
    sin_roll, sin_pitch, sin_yaw = np.sin(half)
    cos_roll, cos_pitch, cos_yaw = np.cos(half)
    return np.stack(
        [
            sin_roll * cos_pitch * cos_yaw - cos_roll * sin_pitch * sin_yaw,
            cos_roll * sin_pitch * cos_yaw + sin_roll * cos_pitch * sin_yaw,
            cos_roll * cos_pitch * sin_yaw - sin_roll * sin_pitch * cos_yaw,
            cos_roll * cos_pitch * cos_yaw + sin_roll * sin_pitch * sin_yaw,
        ]
    )


def _quat_from_columns(numbers: Floats) -> Floats:
    first, second = numbers[:3], numbers[3:]
    first_length, second_length = _length(first), _length(second)
    _check_length(np.minimum(first_length, second_length), "has a column of length zero")
    first, second = first / first_length, second / second_length
    m00, m10, m20 = first
    second = second - first * (m00 * second[0] + m10 * second[1] + m20 * second[2])
    apart = _length(second)
    _check_length(apart, "has parallel columns")
    m01, m11, m21 = second / apart
    m02, m12, m22 = m10 * m21 - m20 * m11, m20 * m01 - m00 * m21, m00 * m11 - m10 * m01
    # Four times the products of the quaternion's numbers (Shepperd). The row of the largest square is the
    # quaternion times a number far from zero, so that nothing is lost to cancellation.
    plus, minus, outer, inner = 1 + m00, 1 - m00, m11 + m22, m11 - m22
    squares = [plus - outer, minus + inner, minus - inner, plus + outer]
    others = [m01 + m10, m02 + m20, m12 + m21, m21 - m12, m02 - m20, m10 - m01]
    products = np.stack(squares + others)
    places = _PRODUCT_ROWS[:, products[:4].argmax(axis=0)]
    scaled = np.take_along_axis(products, places, axis=0)
    quat: Floats = scaled / np.hypot(_length(scaled), scaled[3])
    return quat


def _quat_from_rows(numbers: Floats) -> Floats:
    return _quat_from_columns(numbers.take(_ROWS_TO_COLUMNS, axis=0))


def _xyzw(quat: Floats) -> Floats:
    return quat


def _wxyz(quat: Floats) -> Floats:
    return quat.take(_XYZW_TO_WXYZ, axis=0)


def _axis_angle(quat: Floats) -> Floats:
    sine = np.maximum(_length(quat), _TINY)
    vector: Floats = quat[:3] * (2.0 * np.arctan2(sine, quat[3]) / sine)
    return vector


def _euler(quat: Floats) -> Floats:
    # With halves of the sum and the difference of roll and yaw:
    #   w - y = low cos(half_sum)    x + z = low sin(half_sum)
    #   w + y = high cos(half_gap)   x - z = high sin(half_gap)
    # where low * high = cos(pitch); at a lock one of them is zero, and the other still tells the turn.
    x, y, z, w = quat
    low_cos, low_sin, high_cos, high_sin = w - y, x + z, w + y, x - z
    cosine = np.hypot(low_cos, low_sin) * np.hypot(high_cos, high_sin)
    pitch = np.arctan2(2.0 * (w * y - x * z), cosine)
    half_sum, half_gap = np.arctan2(low_sin, low_cos), np.arctan2(high_sin, high_cos)
    if cosine.min() <= _LOCK:
        is_locked = cosine <= _LOCK
        half_sum, half_gap = (
            np.where(is_locked & (pitch > 0), half_gap, half_sum),
            np.where(is_locked & (pitch < 0), half_sum, half_gap),
        )
    return np.stack([_wrapped(half_sum + half_gap), pitch, _wrapped(half_sum - half_gap)])


def _columns(quat: Floats) -> Floats:
    products = (quat + quat).take(_LEFT_FACTORS, axis=0) * quat.take(_RIGHT_FACTORS, axis=0)
    columns: Floats = products[:6]
    np.negative(products[8:10], out=products[8:10])
    columns += products[6:]
    columns[::4] -= 1.0
    return columns


def _rows(quat: Floats) -> Floats:
    return _columns(quat).take(_COLUMNS_TO_ROWS, axis=0)


def _length(vectors: Floats) -> Floats:
    """Return the length of the first three numbers, without overflow or underflow."""
    length: Floats = np.hypot(np.hypot(vectors[0], vectors[1]), vectors[2])
    return length


def _check_length(length: Floats, fault: str) -> None:
    is_long = length > _SHORTEST_LENGTH
    # Looking through its bytes is quicker than `all`.
    if b"\0" in is_long.tobytes():
        raise _UnusableError(fault, is_long)


def _wrapped(angle: Floats) -> Floats:
    """Return angles in [-2 pi, 2 pi] as the same ones in [-pi, pi]."""
    wrapped: Floats = angle - 2.0 * pi * np.rint(angle / (2.0 * pi))
    return wrapped


# Encoding -> (W, M) numbers to a unit quaternion (4, M) of either sign, and back.
_READERS: Mapping[str, Callable[[Floats], Floats]] = {
    "quat_xyzw": _quat_from_xyzw,
    "quat_wxyz": _quat_from_wxyz,
    "axis_angle": _quat_from_axis_angle,
    "rot6d": _quat_from_columns,
    "rot6d_rowmajor": _quat_from_rows,
    "euler_xyz": _quat_from_euler,
}
_WRITERS: Mapping[str, Callable[[Floats], Floats]] = {
    "quat_xyzw": _xyzw,
    "quat_wxyz": _wxyz,
    "axis_angle": _axis_angle,
    "rot6d": _columns,
    "rot6d_rowmajor": _rows,
    "euler_xyz": _euler,
}
