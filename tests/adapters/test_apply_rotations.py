"""Rotations of a state, from the environment's encoding to the model's."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import pytest
from adapter_routes import assembled, free, tag, vector

from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.spec import Concat, State

HALF = sqrt(0.5)
CAMERA_TURN = {
    "quat_xyzw": [0, 0, HALF, HALF],
    "quat_wxyz": [HALF, 0, 0, HALF],
    "axis_angle": [0, 0, pi / 2],
    "rot6d": [0, 1, 0, -1, 0, 0],
    "rot6d_rowmajor": [0, -1, 1, 0, 0, 0],
    "euler_xyz": [0, 0, pi / 2],
}


@pytest.mark.parametrize("source", CAMERA_TURN)
@pytest.mark.parametrize("target", CAMERA_TURN)
def test_a_quarter_turn_about_z_in_every_encoding(source: str, target: str) -> None:
    """Section 16."""
    wanted = {"role": "x/r", "encoding": target}
    result = vector(CAMERA_TURN[source], tag("x/r", encoding=source), wanted, dtype="float64")
    assert result.tolist() == pytest.approx(CAMERA_TURN[target], abs=1e-6)


@pytest.mark.parametrize(
    ("source", "values", "right"),
    [
        ("rot6d", [1, 0, 0, 0, -1, 0], [pi, 0, 0]),
        ("euler_xyz", [pi / 2, 0, 0], [pi / 2, 0, 0]),
        ("quat_xyzw", [0, 0, -HALF, -HALF], [0, 0, pi / 2]),
        ("quat_xyzw", [0, 0, 2, 2], [0, 0, pi / 2]),
        ("rot6d", [2, 0, 0, 1, 1, 0], [0, 0, 0]),
        ("quat_xyzw", [1e-5, 0, 0, 1], [2e-5, 0, 0]),
    ],
)
def test_rotations_come_to_their_shortest_axis_angle(source: str, values: Any, right: Any) -> None:
    """W9, ours: w is not negative, and small angles are kept; the reference's float32 makes them zero."""
    result = vector(
        values, tag("x/r", encoding=source), {"role": "x/r", "encoding": "axis_angle"}, dtype="float64"
    )
    assert result.tolist() == pytest.approx(right, abs=1e-9 if source == "rot6d" else 1e-6)


@pytest.mark.parametrize("pitch", [pi / 2, -pi / 2])
def test_euler_angles_survive_a_gimbal_lock(pitch: float) -> None:
    """Section 16: the same rotation, if with other angles."""
    given = tag("x/r", encoding="euler_xyz")
    as_quat = {"role": "x/r", "encoding": "quat_xyzw"}
    quat = vector([0.3, pitch, 1.1], given, as_quat, dtype="float64")
    angles = vector(
        quat, tag("x/r", encoding="quat_xyzw"), {"role": "x/r", "encoding": "euler_xyz"}, dtype="float64"
    )
    again = vector(angles, given, as_quat, dtype="float64")
    assert abs(float(np.dot(quat, again))) == pytest.approx(1, abs=1e-6)


def test_a_rotation_that_the_model_takes_is_handed_on_as_it_is() -> None:
    """Neither normalised nor turned to w >= 0, whatever else the model would take."""
    part = {"role": "x/r", "encoding": ["rot6d", "quat_xyzw"]}
    assert vector([0, 0, 3, -4], tag("x/r", encoding="quat_xyzw"), part).tolist() == [0, 0, 3, -4]


def test_an_encoding_of_the_user_s_own_is_made_by_its_function() -> None:
    reversed_quat = CustomEncoding("quat_xyzw", from_base=lambda quat: quat[::-1])
    batch = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32)
    wanted = Concat(State("x/r", reversed_quat))
    result = assembled(batch, free(4), tag("x/r", encoding="quat_xyzw"), wanted, rows=2)
    assert result.tolist() == [[4, 3, 2, 1], [8, 7, 6, 5]]
