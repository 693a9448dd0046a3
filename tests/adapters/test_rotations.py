"""Rotations against scipy, and against numbers worked out by hand or elsewhere."""

from __future__ import annotations

import warnings
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rlmesh_adapters.apply.rotations import RotationError, convert
from rlmesh_adapters.rotations import WIDTHS

PAIRS = list(permutations(WIDTHS, 2))
QUATS = ("quat_xyzw", "quat_wxyz")
QUARTER_TURN = np.pi / 2
RPY = [0.3, 0.5, 0.7]
RPY_COLUMNS = [0.6712122, 0.5653542, -0.4794255, -0.5070819, 0.8219544, 0.2593434]
RPY_ROWS = [0.6712122, -0.5070819, 0.5653542, 0.8219544, -0.4794255, 0.2593434]
RPY_QUAT = [0.0521324, 0.2794439, 0.2937772, 0.9126271]


def random_rotations(count: int) -> Rotation:
    return Rotation.random(count, rng=np.random.default_rng(7))


def adversarial_rotations() -> Rotation:
    """Return 200 rotations at which formulas divide by nothing, subtract equals or take the wrong branch."""
    rng = np.random.default_rng(8)
    corners = np.array([[x, y, z] for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z])
    axes = np.concatenate([corners, rng.normal(size=(14, 3))])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    small = np.geomspace(1e-9, 1e-2, 40)[:, None]
    vectors = [
        np.zeros((1, 3)),
        axes * np.pi,
        axes * (np.pi - np.geomspace(1e-12, 1e-3, 40)[:, None]),
        axes * small,
    ]
    locked = rng.uniform(-np.pi, np.pi, (79, 3))
    locked[:, 1] = QUARTER_TURN * rng.choice([-1, 1], 79)
    locked[20:60, 1] += np.geomspace(1e-14, 1e-3, 40)
    locked[:8, [0, 2]] = 0.0
    turned = Rotation.from_rotvec(np.concatenate(vectors))
    return Rotation.concatenate([turned, Rotation.from_euler("xyz", locked)])


def encoded(rotations: Rotation, encoding: str) -> Any:
    """Return rotations as numbers, every other one in a form that is not the shortest."""
    odd = (np.arange(len(rotations)) % 2 == 1)[:, None]
    quat = rotations.as_quat(canonical=True)
    if encoding in QUATS:
        quat = np.where(odd, -quat, quat) * 1.5
        return quat if encoding == "quat_xyzw" else np.roll(quat, 1, axis=1)
    if encoding == "axis_angle":
        vector = rotations.as_rotvec()
        angle = np.linalg.norm(vector, axis=1, keepdims=True)
        return np.where(odd & (angle > 0.1), vector * (1 - 2 * np.pi / np.maximum(angle, 0.1)), vector)
    if encoding == "euler_xyz":
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Gimbal lock")
            return rotations.as_euler("xyz")
    columns = np.swapaxes(rotations.as_matrix()[:, :, :2], 1, 2)
    columns = columns * [[2.0], [0.5]] + np.where(odd[:, None], [[0.0], [0.7]], 0.0) * columns[:, :1]
    return (columns if encoding == "rot6d" else np.swapaxes(columns, 1, 2)).reshape(-1, 6)


def matrices(values: Any, encoding: str) -> Any:
    """Return what the numbers mean, (M, 3, 3), without the code under test."""
    if encoding in QUATS:
        return Rotation.from_quat(values, scalar_first=encoding == "quat_wxyz").as_matrix()
    if encoding == "axis_angle":
        return Rotation.from_rotvec(values).as_matrix()
    if encoding == "euler_xyz":
        return Rotation.from_euler("xyz", values).as_matrix()
    first, second = (values[:, :3], values[:, 3:]) if encoding == "rot6d" else (values[:, ::2], values[:, 1::2])
    first = first / np.linalg.norm(first, axis=1, keepdims=True)
    third = np.cross(first, second)
    third /= np.linalg.norm(third, axis=1, keepdims=True)
    return np.stack([first, np.cross(third, first), third], axis=2)


def angles_between(left: Any, right: Any) -> Any:
    """Return radians. Not from the trace, whose arc cosine hides all below 1e-8."""
    distance = np.linalg.norm(left - right, axis=(1, 2))
    return 2 * np.arcsin(np.minimum(distance / np.sqrt(8), 1))


def batch(*rows: list[float]) -> Any:
    return np.array(rows, np.float64)


@pytest.mark.parametrize("rotations", [random_rotations(10_000), adversarial_rotations()], ids=["random", "hard"])
@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_every_pair_of_encodings_means_the_same_rotation(src: str, dst: str, rotations: Rotation) -> None:
    values = encoded(rotations, src)
    result = convert(values, src, dst)
    assert result.shape == (len(rotations), WIDTHS[dst])
    assert result.dtype == np.float64
    assert result.flags.c_contiguous
    assert angles_between(matrices(values, src), matrices(result, dst)).max() < 1e-11


@pytest.mark.parametrize("rotations", [random_rotations(10_000), adversarial_rotations()], ids=["random", "hard"])
@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_there_and_back_is_the_same_rotation(src: str, dst: str, rotations: Rotation) -> None:
    values = encoded(rotations, src)
    back = convert(convert(values, src, dst), dst, src)
    assert angles_between(matrices(values, src), matrices(back, src)).max() < 1e-11


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_results_are_in_canonical_form(src: str, dst: str) -> None:
    result = convert(encoded(adversarial_rotations(), src), src, dst)
    if dst in QUATS:
        assert (result[:, 3 if dst == "quat_xyzw" else 0] >= 0).all()
        assert np.linalg.norm(result, axis=1) == pytest.approx(1, abs=1e-15)
    elif dst == "axis_angle":
        assert np.linalg.norm(result, axis=1).max() <= np.pi + 1e-15
    elif dst == "euler_xyz":
        assert (np.abs(result) <= [np.pi, QUARTER_TURN, np.pi]).all()
    else:
        columns = matrices(result, dst)[:, :, :2]
        plain = result.reshape(-1, 2, 3).swapaxes(1, 2) if dst == "rot6d" else result.reshape(-1, 3, 2)
        assert plain == pytest.approx(columns, abs=1e-15)


@pytest.mark.parametrize("src", ["quat_xyzw", "quat_wxyz", "rot6d", "rot6d_rowmajor", "euler_xyz"])
@pytest.mark.parametrize("angle", [1e-9, 1e-7, 1e-5])
def test_tiny_rotations_keep_their_digits(src: str, angle: float) -> None:
    vectors = angle * np.array([[1, 0, 0], [0, -1, 0], [0, 0, 1], [0.6, 0.0, -0.8]])
    result = convert(encoded(Rotation.from_rotvec(vectors), src), src, "axis_angle")
    assert result == pytest.approx(vectors, abs=1e-6 * angle)


# The numbers of test case K30 to K33 are given to seven places.
@pytest.mark.parametrize(
    ("src", "values", "dst", "expected"),
    [
        ("quat_xyzw", [0, 0, 0.7071068, 0.7071068], "axis_angle", [0, 0, 1.5707963]),
        ("quat_wxyz", [0.7071068, 0, 0, 0.7071068], "axis_angle", [0, 0, 1.5707963]),
        ("quat_xyzw", [0.7071068, 0, 0, 0.7071068], "axis_angle", [1.5707963, 0, 0]),
        ("quat_wxyz", [1, 0, 0, 0], "axis_angle", [0, 0, 0]),
        ("quat_xyzw", [1, 0, 0, 0], "axis_angle", [3.1415927, 0, 0]),
        ("quat_xyzw", [0, 0, 0.9848078, -0.1736482], "axis_angle", [0, 0, -2.7925268]),
        ("quat_xyzw", [0, 0, -0.9848078, 0.1736482], "axis_angle", [0, 0, -2.7925268]),
        (
            "quat_xyzw",
            [0, 0, 0.9848078, -0.1736482],
            "rot6d",
            [-0.9396926, -0.3420201, 0, 0.3420201, -0.9396926, 0],
        ),
        ("quat_xyzw", [0, 0, 0, 1.0000001], "axis_angle", [0, 0, 0]),
        ("euler_xyz", RPY, "rot6d", RPY_COLUMNS),
        ("euler_xyz", RPY, "rot6d_rowmajor", RPY_ROWS),
        ("rot6d", RPY_COLUMNS, "rot6d_rowmajor", RPY_ROWS),
        ("rot6d_rowmajor", RPY_ROWS, "rot6d", RPY_COLUMNS),
        ("rot6d", RPY_COLUMNS, "euler_xyz", RPY),
        ("rot6d", [2, 0, 0, 1, 1, 0], "rot6d", [2, 0, 0, 1, 1, 0]),
        ("rot6d", [2, 0, 0, 1, 1, 0], "rot6d_rowmajor", [1, 0, 0, 1, 0, 0]),
        ("rot6d", [2, 0, 0, 1, 1, 0], "axis_angle", [0, 0, 0]),
        ("euler_xyz", RPY, "quat_xyzw", RPY_QUAT),
        ("quat_xyzw", RPY_QUAT, "euler_xyz", RPY),
        ("euler_xyz", [0, 0, QUARTER_TURN], "axis_angle", [0, 0, QUARTER_TURN]),
        ("euler_xyz", [QUARTER_TURN, 0, 0], "axis_angle", [QUARTER_TURN, 0, 0]),
        ("rot6d", [1, 0, 0, 0, -1, 0], "axis_angle", [np.pi, 0, 0]),
    ],
)
def test_known_numbers(src: str, values: list[float], dst: str, expected: list[float]) -> None:
    assert convert(batch(values), src, dst)[0] == pytest.approx(expected, abs=2e-7)


def test_a_tiny_quaternion_is_twice_its_numbers() -> None:
    result = convert(batch([5e-10, 0, 0, 1]), "quat_xyzw", "axis_angle")
    assert result[0] == pytest.approx([1e-9, 0, 0], rel=1e-12, abs=0)


def test_columns_read_as_rows_are_another_valid_rotation() -> None:
    columns = convert(batch(RPY_ROWS), "rot6d_rowmajor", "rot6d")
    misread = convert(batch(RPY_ROWS), "rot6d", "quat_xyzw")
    right, wrong = matrices(columns, "rot6d"), matrices(misread, "quat_xyzw")
    assert np.degrees(angles_between(right, wrong)) == pytest.approx([124.742], abs=1e-3)
    assert wrong[0][0] == pytest.approx([0.662239, 0.6237526, 0.4151773], abs=2e-7)


def test_euler_angles_turn_about_fixed_axes() -> None:
    intrinsic = Rotation.from_quat([[0.2198958, 0.1801459, 0.3632374, 0.8872722]]).as_matrix()
    between = angles_between(matrices(convert(batch(RPY), "euler_xyz", "quat_xyzw"), "quat_xyzw"), intrinsic)
    assert np.degrees(between) == pytest.approx([23.936], abs=1e-3)


@pytest.mark.parametrize("pitch", [QUARTER_TURN, -QUARTER_TURN])
def test_yaw_is_zero_where_roll_and_yaw_turn_about_one_axis(pitch: float) -> None:
    quat = convert(batch([0.3, pitch, 1.1]), "euler_xyz", "quat_xyzw")
    roll = 0.3 - 1.1 if pitch > 0 else 0.3 + 1.1
    assert convert(quat, "quat_xyzw", "euler_xyz")[0] == pytest.approx([roll, pitch, 0], abs=1e-12)


def test_a_sign_is_kept_on_request() -> None:
    quat = batch([0, 0, 0.9848078, -0.1736482], [0, 0, -0.9848078, 0.1736482], [0, 0, 0, -1])
    vectors = convert(quat, "quat_xyzw", "axis_angle", keeps_sign=True)
    assert vectors == pytest.approx(batch([0, 0, 3.4906585], [0, 0, -2.7925268], [0, 0, 0]), abs=2e-7)
    swapped = convert(quat, "quat_xyzw", "quat_wxyz", keeps_sign=True)
    assert swapped == pytest.approx(np.roll(quat, 1, axis=1), abs=2e-7)
    assert convert(swapped, "quat_wxyz", "quat_xyzw", keeps_sign=True) == pytest.approx(quat, abs=2e-7)
    assert convert(quat, "quat_xyzw", "quat_wxyz")[:, 0] == pytest.approx([0.1736482, 0.1736482, 1], abs=2e-7)


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_keeping_the_sign_means_the_same_rotation(src: str, dst: str) -> None:
    values = encoded(adversarial_rotations(), src)
    result = convert(values, src, dst, keeps_sign=True)
    assert angles_between(matrices(values, src), matrices(result, dst)).max() < 1e-11
    if src not in QUATS:
        assert (result == convert(values, src, dst)).all()


def test_q_and_minus_q_give_the_same_numbers() -> None:
    half_turns = batch([1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 1, 0], [-0.6, 0.8, 0, 0], [0, 0.6, -0.8, 0])
    quat = np.concatenate([half_turns, encoded(random_rotations(50), "quat_xyzw")])
    for dst in ("axis_angle", "quat_wxyz", "rot6d", "rot6d_rowmajor", "euler_xyz"):
        result = convert(quat, "quat_xyzw", dst)
        # With zeros of either sign.
        for opposite in (-quat, 0.0 - quat):
            assert (convert(opposite, "quat_xyzw", dst) == result).all()


@pytest.mark.parametrize("encoding", WIDTHS)
def test_the_same_encoding_changes_nothing(encoding: str) -> None:
    values = np.full((2, WIDTHS[encoding]), -7, np.float32)
    result = convert(values, encoding, encoding)
    assert result.dtype == np.float64
    assert (result == values).all()
    assert not np.shares_memory(convert(result, encoding, encoding), result)


def test_widths_are_those_of_the_encodings() -> None:
    widths = {"quat_xyzw": 4, "quat_wxyz": 4, "axis_angle": 3, "rot6d": 6, "rot6d_rowmajor": 6, "euler_xyz": 3}
    assert dict(WIDTHS) == widths


@pytest.mark.parametrize("shape", [(2, 5), (4,), (1, 2, 4)])
def test_a_wrong_width_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"quat_xyzw takes \(rows, 4\) numbers, got shape"):
        convert(np.ones(shape), "quat_xyzw", "rot6d")


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_no_rows_give_no_rows(src: str, dst: str) -> None:
    assert convert(np.empty((0, WIDTHS[src])), src, dst).shape == (0, WIDTHS[dst])


@pytest.mark.parametrize(
    ("src", "good", "bad", "message"),
    [
        ("quat_xyzw", [0, 0, 0, 1], [0, 0, 0, 0], "quat_xyzw has length zero in row 1: [0.0, 0.0, 0.0, 0.0]"),
        ("quat_wxyz", [1, 0, 0, 0], [0, 1e-8, 0, 0], "quat_wxyz has length zero in row 1: [0.0, 1e-08, 0.0, 0.0]"),
        (
            "rot6d",
            [1, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 1, 0],
            "rot6d has a column of length zero in row 1: [0.0, 0.0, ",
        ),
        (
            "rot6d",
            [1, 0, 0, 0, 1, 0],
            [1, 0, 0, -2, 0, 0],
            "rot6d has parallel columns in row 1: [1.0, 0.0, 0.0, ",
        ),
        (
            "rot6d_rowmajor",
            [1, 0, 0, 1, 0, 0],
            [1, 2, 1, 2, 1, 2],
            "rot6d_rowmajor has parallel columns in row 1: ",
        ),
        (
            "axis_angle",
            [0, 0, 0],
            [0, np.nan, 0],
            "axis_angle is not finite or too large in row 1: [0.0, nan",
        ),
        (
            "euler_xyz",
            [0, 0, 0],
            [0, 0, -np.inf],
            "euler_xyz is not finite or too large in row 1: [0.0, 0.0, ",
        ),
        (
            "quat_xyzw",
            [0, 0, 0, 1],
            [np.inf, 0, 0, 1],
            "quat_xyzw is not finite or too large in row 1: [inf, ",
        ),
        (
            "axis_angle",
            [0, 0, 0],
            [-1e101, 0, 0],
            "axis_angle is not finite or too large in row 1: [-1e+101",
        ),
        (
            "rot6d",
            [1, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, np.nan],
            "rot6d is not finite or too large in row 1: ",
        ),
    ],
)
def test_what_is_no_rotation_is_refused_with_its_rows(
    src: str, good: list[float], bad: list[float], message: str
) -> None:
    for dst in set(WIDTHS) - {src}:
        with pytest.raises(RotationError) as caught:
            convert(batch(good, bad), src, dst)
        assert str(caught.value).startswith(message)
        assert caught.value.rows == (1,)


def test_all_rows_that_are_no_rotation_are_named() -> None:
    with pytest.raises(RotationError, match=r"has length zero in row 1 \(and 1 more\): ") as caught:
        convert(batch([0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]), "quat_xyzw", "axis_angle")
    assert caught.value.rows == (1, 3)


@pytest.mark.parametrize("scale", [1e-7, 1e-3, 1e99])
def test_the_length_of_quaternions_and_columns_does_not_matter(scale: float) -> None:
    for src in (*QUATS, "rot6d", "rot6d_rowmajor"):
        values = encoded(random_rotations(200), src)
        result = convert(values * scale, src, "axis_angle")
        assert result == pytest.approx(convert(values, src, "axis_angle"), abs=1e-13)


@pytest.mark.parametrize(("src", "dst"), [*PAIRS, ("rot6d", "rot6d")])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inputs_are_never_modified(src: str, dst: str, dtype: Any) -> None:
    values = encoded(adversarial_rotations(), src).astype(dtype)
    before = values.copy()
    result = convert(values, src, dst)
    assert (values == before).all()
    assert not np.shares_memory(values, result)
    values.setflags(write=False)
    assert (convert(values, src, dst) == result).all()


@given(order=st.permutations(range(24)), pair=st.sampled_from(PAIRS), keeps_sign=st.booleans())
@settings(deadline=None, max_examples=100)
def test_permuted_rows_give_permuted_results(order: list[int], pair: tuple[str, str], keeps_sign: bool) -> None:
    src, dst = pair
    values = encoded(Rotation.concatenate([random_rotations(12), adversarial_rotations()[80:92]]), src)
    result = convert(values, src, dst, keeps_sign=keeps_sign)
    assert convert(values[order], src, dst, keeps_sign=keeps_sign).tobytes() == result[order].tobytes()


@pytest.mark.parametrize(("src", "dst"), PAIRS)
@pytest.mark.parametrize("layout", ["C", "F"])
def test_one_row_alone_is_the_same_as_in_a_batch(src: str, dst: str, layout: Any) -> None:
    values = encoded(Rotation.concatenate([random_rotations(200), adversarial_rotations()]), src)
    result = convert(np.asarray(values, order=layout), src, dst)
    alone = [convert(values[row : row + 1], src, dst) for row in range(len(values))]
    assert np.concatenate(alone).tobytes() == result.tobytes()
