"""Rotation encodings: their names, and how many numbers each takes.

quat_xyzw, quat_wxyz: a quaternion, the real part w last or first.
axis_angle: the axis times the angle, in radians.
rot6d: the first two columns of the matrix, one after the other: m00 m10 m20 m01 m11 m21.
rot6d_rowmajor: the same two columns, row by row: m00 m01 m10 m11 m20 m21.
euler_xyz: roll, pitch, yaw in radians about fixed axes: Rz(yaw) Ry(pitch) Rx(roll).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Encoding -> numbers of one rotation.
WIDTHS: Mapping[str, int] = MappingProxyType(
    {"quat_xyzw": 4, "quat_wxyz": 4, "axis_angle": 3, "rot6d": 6, "rot6d_rowmajor": 6, "euler_xyz": 3}
)
