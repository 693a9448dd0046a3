"""Rotations as a policy was trained on them, whatever the environment's encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from adapter_routes import DRIVE, Asked, adapter_of, drive, free, numbers, route_of, spec_of, state, tag
from gymnasium import spaces

from rlmesh_adapters.documents.schema import DocumentError
from rlmesh_adapters.resolve.errors import ResolveError


def turned(values: Any, source: str, target: str, **part: Any) -> Any:
    """Return what a policy sees of a rotation."""
    return numbers(values, tag("x/r", encoding=source), {"role": "x/r", "encoding": target, **part})


@pytest.mark.parametrize(
    ("encoding", "quat", "right"),
    [
        ("quat_xyzw", [0, 0, 0.7071068, 0.7071068], [0, 0, 1.5707963]),
        ("quat_wxyz", [0.7071068, 0, 0, 0.7071068], [0, 0, 1.5707963]),
        ("quat_wxyz", [1, 0, 0, 0], [0, 0, 0]),
        ("quat_xyzw", [1, 0, 0, 0], [3.1415927, 0, 0]),
    ],
)
def test_the_real_part_stands_where_the_encoding_says(encoding: str, quat: Any, right: Any) -> None:
    """K30."""
    assert turned(quat, encoding, "axis_angle").tolist() == pytest.approx(right, abs=1e-6)


@pytest.mark.parametrize(
    ("quat", "right"),
    [
        ([0, 0, 0.9848078, -0.1736482], [0, 0, -2.7925268]),
        ([0, 0, -0.9848078, 0.1736482], [0, 0, -2.7925268]),
        ([0, 0, 0, 1.0000001], [0, 0, 0]),
        ([5e-10, 0, 0, 1], [1e-9, 0, 0]),
    ],
)
def test_a_quaternion_becomes_the_shortest_turn(quat: Any, right: Any) -> None:
    """K31. Both signs are one rotation; nothing is lost near zero, and rounding makes no NaN."""
    assert turned(quat, "quat_xyzw", "axis_angle").tolist() == pytest.approx(right, rel=1e-6, abs=1e-15)


def test_a_policy_may_ask_for_the_long_way_round() -> None:
    """K31."""
    long = turned([0, 0, 0.9848078, -0.1736482], "quat_xyzw", "axis_angle", keep_sign=True)
    assert long.tolist() == pytest.approx([0, 0, 3.4906585], abs=1e-6)


def test_both_signs_of_a_quaternion_are_one_matrix() -> None:
    """K31."""
    quat = np.array([0, 0, 0.9848078, -0.1736482])
    for given in (quat, -quat):
        columns = turned(given, "quat_xyzw", "rot6d")
        assert columns.tolist() == pytest.approx([-0.9396926, -0.3420201, 0, 0.3420201, -0.9396926, 0], abs=1e-6)


def test_a_quaternion_without_length_fails_its_row_by_name() -> None:
    """K31. Never NaN, never the identity."""
    wanted = {"arm": state({"role": "x/r", "encoding": "axis_angle"})}
    policy = Asked(spec_of(wanted, DRIVE), [[0]])
    space = spaces.Dict({"turn": free(4)})
    engine = route_of(policy, space, {"turn": tag("x/r", encoding="quat_xyzw")}, num_lanes=2)
    rows = {"turn": np.array([[0, 0, 0, 1], [0, 0, 0, 0]], np.float32)}
    prediction = engine.predict("route", rows, contexts(0, 1))
    assert list(prediction.failures) == [1]
    assert 'rotation "turn"' in prediction.failures[1].message
    assert "has length zero" in prediction.failures[1].message


RPY = [0.3, 0.5, 0.7]
COLUMNS = [0.6712122, 0.5653542, -0.4794255, -0.5070819, 0.8219544, 0.2593434]
INTERLEAVED = [0.6712122, -0.5070819, 0.5653542, 0.8219544, -0.4794255, 0.2593434]


def test_six_numbers_are_packed_as_their_encoding_says() -> None:
    """K32."""
    assert turned(RPY, "euler_xyz", "rot6d").tolist() == pytest.approx(COLUMNS, abs=1e-6)
    assert turned(RPY, "euler_xyz", "rot6d_rowmajor").tolist() == pytest.approx(INTERLEAVED, abs=1e-6)
    assert turned(INTERLEAVED, "rot6d_rowmajor", "rot6d").tolist() == pytest.approx(COLUMNS, abs=1e-6)


def test_six_numbers_are_made_orthonormal() -> None:
    """K32."""
    assert turned([2, 0, 0, 1, 1, 0], "rot6d", "quat_xyzw").tolist() == pytest.approx([0, 0, 0, 1], abs=1e-9)


def test_a_third_packing_is_said_to_be_unknown() -> None:
    """K32. The first two rows of the matrix have no name here."""
    with pytest.raises(ResolveError, match=r'no encoding of \["rot6d_rows"\] is known'):
        turned(RPY, "euler_xyz", "rot6d_rows")
    with pytest.raises(DocumentError, match=r"one of quat_xyzw, .*, rot6d, rot6d_rowmajor, euler_xyz"):
        adapter_of(action=free(6), drives=[drive(dim=6, encoding="rot6d_rows")], output=[drive(dim=6)])


def test_euler_angles_turn_about_fixed_axes() -> None:
    """K33. About moving axes it would be [0.2198958, 0.1801459, 0.3632374, 0.8872722]."""
    right = [0.0521324, 0.2794439, 0.2937772, 0.9126271]
    assert turned(RPY, "euler_xyz", "quat_xyzw").tolist() == pytest.approx(right, abs=1e-6)
    assert turned(right, "quat_xyzw", "euler_xyz").tolist() == pytest.approx(RPY, abs=1e-6)
