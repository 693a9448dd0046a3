"""What becomes of a model's numbers on their way to the environment, through resolving."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np
import pytest
from adapter_routes import (
    NUMBER,
    acted,
    adapter_of,
    box,
    drive,
    free,
    predicted,
    tag,
)
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from rlmesh_adapters.apply.actions import ActionStage
from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.plans import ActionPlan, Segment
from rlmesh_envs.spaces import view_of

WIDE = box(-9, 9, 1)


def sent(value: Any, env: Any, model: Any, action: spaces.Space[Any] = WIDE, **options: Any) -> Any:
    """Return the action that one output comes to."""
    drives, output = (side if isinstance(side, list) else [side] for side in (env, model))
    return acted([np.atleast_1d(value)], action, drives, output, **options)[0].tolist()


@pytest.mark.parametrize(
    ("env", "model", "right"),
    [
        ({}, {}, 0.3),
        ({"scale": 2}, {}, 0.6),
        ({"invert": True}, {}, -0.3),
        ({"invert": True}, {"scale": 2, "invert": True}, 0.6),
        ({"scale": -2}, {"scale": 3}, -1.8),
        ({"range": [-1, 1]}, {"range": [0, 1]}, -0.4),
        ({"range": [-1, 1], "scale": 2}, {"range": [0, 1], "invert": True}, 0.8),
        ({"range": [0, 8]}, {"range": [0, 8]}, 0.3),
        ({"range": [5, 5]}, {"range": [0, 1]}, 5),
    ],
)
def test_corrections_of_0_3(env: Any, model: Any, right: float) -> None:
    """Section 7.6: the range first, then the model's scale and inversion, then the environment's."""
    assert sent(0.3, drive(**env), drive(**model), free(1)) == pytest.approx([right], abs=1e-6)


def test_a_plan_without_snapping_may_have_a_threshold() -> None:
    """Section 16: 0.3 times 2, inverted, less 0.5. Resolving refuses it, a plan does not."""
    segment = Segment(role="x/a", width=1, stop=1, scale=2, invert=True, threshold=0.5)
    plan = ActionPlan(segments=(segment,), in_dim=1, shape=(1,), dtype=np.dtype(np.float64))
    actions, clipped = ActionStage(plan, view_of(WIDE)).apply(np.array([[0.3]]), None)
    assert (actions.tolist(), clipped) == ([[pytest.approx(-1.1)]], None)


@pytest.mark.parametrize(
    ("value", "env", "model", "right"),
    [
        (0.5, {"threshold": 0.5}, {}, 1),
        (0.49, {"threshold": 0.5}, {}, -1),
        (0.0, {}, {}, 1),
        (-0.0, {}, {}, 1),
        (0.5, {}, {"threshold": 0.5}, 1),
        (0.49, {}, {"threshold": 0.5}, -1),
        (0.0, {"invert": True}, {}, -1),
        (-0.0, {"invert": True}, {}, -1),
        (0.0, {}, {"invert": True}, -1),
        (0.0, {"invert": True}, {"invert": True}, 1),
        (0.5, {"invert": True}, {"threshold": 0.5}, -1),
        (-0.5, {"invert": True, "threshold": 0.5}, {}, 1),
        (0.25, {"scale": 2, "threshold": 0.5}, {}, 1),
        (1e-300, {}, {}, 1),
        (-1e-300, {}, {}, -1),
        (0.5, {"range": [-1, 1]}, {"range": [0, 1]}, 1),
        (0.5, {"range": [-1, 1], "invert": True}, {"range": [0, 1]}, -1),
    ],
)
@pytest.mark.parametrize("side", ["env", "model"])
def test_a_snapped_number_is_plus_or_minus_one(
    side: str, value: float, env: dict[str, Any], model: dict[str, Any], right: int
) -> None:
    """W27, ours: never 0. A tie is +1, which an inversion turns; a threshold counts on either side alike.

    The reference sends 0.0 for a tie without a threshold of the environment.
    """
    both = (env, {**model, "binary": True}) if side == "model" else ({**env, "binary": True}, model)
    assert sent(value, drive(**both[0]), drive(**both[1]), free(1)) == [right]


@given(value=st.floats(-5, 5), threshold=st.floats(-2, 2), invert=st.booleans())
def test_a_snapped_number_is_never_zero(value: float, threshold: float, invert: bool) -> None:
    env = drive(binary=True, threshold=threshold, invert=invert)
    assert sent(value, env, drive()) in ([1.0], [-1.0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_fails_its_row_and_never_snaps(bad: float) -> None:
    """W27, ours: the reference makes -1 of NaN, which closes or opens a gripper."""
    adapter = adapter_of(action=WIDE, drives=[drive(binary=True)], output=[drive()])
    prediction = predicted(adapter, [[0.5], [bad], [-0.5]])
    assert list(prediction.failures) == [1]
    assert prediction.failures[1].phase == "action"
    assert "not finite" in prediction.failures[1].message
    assert prediction.actions[[0, 2]].tolist() == [[1], [-1]]


def test_each_component_is_clipped_to_its_own_range_then_all_to_the_action_s() -> None:
    """Section 16: [5, 5] in (-1, 1) and (-pi/2, pi/2)."""
    env = [drive("x/a", range=[-1, 1], clip=True), drive("x/b", range=[-pi / 2, pi / 2], clip=True)]
    model = [drive("x/a"), drive("x/b")]
    assert sent([5, 5], env, model, free(2)) == pytest.approx([1, 1.5708], abs=1e-4)
    assert sent([5, 5], env, model, free(2), clip=[-1.25, 1.25]) == [1, 1.25]
    assert sent([-5, -5], env, model, free(2), clip=[-1.25, 1.25]) == [-1, -1.25]


def test_a_clip_may_have_ends_of_its_own_for_each_number() -> None:
    env = drive(dim=2, range=[[-1, 0], [1, 5]], clip=True)
    assert sent([3, -3], env, drive(dim=2), free(2)) == [1, 0]


def test_what_is_cut_off_is_told_row_by_row() -> None:
    env = [drive("x/a", range=[-1, 1], clip=True), drive("x/b")]
    action = spaces.Box(np.array([-np.inf, -2], np.float32), np.array([np.inf, 2], np.float32))
    adapter = adapter_of(action=action, drives=env, output=[drive("x/a"), drive("x/b")])
    prediction = predicted(adapter, [[0, 0], [3, 0], [0, 3], [0, -2]])
    assert prediction.actions.tolist() == [[0, 0], [1, 0], [0, 2], [0, -2]]
    assert prediction.clipped.tolist() == [False, True, True, False]


def test_how_far_each_component_was_driven_is_counted() -> None:
    """A number at an end is saturated, one beyond it clipped as well; snapped ones are neither."""
    env = [drive("x/a", 2), {"dim": 1}, drive("x/b", binary=True)]
    adapter = adapter_of(action=box(-1, 1, 4), drives=env, output=[drive("x/a", 2), drive("x/b")])
    for _ in range(2):
        predicted(adapter, [[0, 0.5, 3], [1, 0, 0], [-4, 7, 0]])
    (use,) = adapter.actions.uses
    assert (use.role, use.values, use.clipped, use.saturated) == ("x/a", 12, 4, 6)


def test_what_nobody_drives_is_sent_as_its_constant() -> None:
    """Section 16: 0.7 and a run of three times 0.5."""
    assert sent(0.7, [drive(), {"dim": 3, "fill": 0.5}], drive(), free(4)) == pytest.approx([0.7, 0.5, 0.5, 0.5])
    env = [drive("x/b", 2, optional=True, fill=-0.25), drive()]
    assert sent(0.5, env, drive(), free(3)) == [-0.25, -0.25, 0.5]
    assert sent([], [{"dim": 2, "fill": 3}], [], free(2)) == [3, 3]


def test_an_optional_component_that_the_model_has_is_driven() -> None:
    assert sent(0.5, drive(optional=True, fill=3), drive()) == [0.5]


def test_components_go_where_the_environment_has_them() -> None:
    env = [drive("x/a", 2), {"dim": 1, "fill": 9}, drive("x/b")]
    model = [drive("x/b"), {"dim": 2}, drive("x/a", 2)]
    assert sent([1, 2, 3, 4, 5], env, model, free(4)) == [4, 5, 9, 1]


HALF = sqrt(0.5)


@pytest.mark.parametrize(
    ("source", "target", "values", "right"),
    [
        ("rot6d", "axis_angle", [1, 0, 0, 0, -1, 0], [pi, 0, 0]),
        ("rot6d", "axis_angle", [0, 1, 0, -1, 0, 0], [0, 0, pi / 2]),
        ("rot6d_rowmajor", "axis_angle", [0, -1, 1, 0, 0, 0], [0, 0, pi / 2]),
        ("euler_xyz", "axis_angle", [0, 0, pi / 2], [0, 0, pi / 2]),
        ("axis_angle", "quat_wxyz", [0, 0, pi / 2], [HALF, 0, 0, HALF]),
        ("axis_angle", "rot6d", [0, 0, pi / 2], [0, 1, 0, -1, 0, 0]),
        ("quat_xyzw", "axis_angle", [0, 0, -HALF, -HALF], [0, 0, pi / 2]),
        ("axis_angle", "axis_angle", [9, 0, 0], [9, 0, 0]),
    ],
)
def test_rotations_are_converted(source: str, target: str, values: Any, right: Any) -> None:
    env, model = drive(dim=len(right), encoding=target), drive(dim=len(values), encoding=source)
    assert sent(values, env, model, free(len(right))) == pytest.approx(right, abs=1e-6)


def test_a_quaternion_may_keep_its_sign() -> None:
    """K31: 200 degrees about z are -160 in the shortest form."""
    values, env = [0, 0, 0.9848078, -0.1736482], drive(dim=3, encoding="axis_angle")
    for keep, right in ((False, -2.7925268), (True, 3.4906585)):
        model = drive(dim=4, encoding="quat_xyzw", keep_sign=keep)
        assert sent(values, env, model, free(3)) == pytest.approx([0, 0, right], abs=1e-6)


@pytest.mark.parametrize(
    ("encoding", "bad"),
    [
        ("quat_xyzw", [0, 0, 0, 0]),
        ("rot6d", [0, 0, 0, 0, 1, 0]),
        ("rot6d", [1, 0, 0, 2, 0, 0]),
        ("rot6d_rowmajor", [1, 2, 0, 0, 0, 0]),
    ],
)
def test_numbers_that_are_no_rotation_fail_their_row_alone(encoding: str, bad: list[float]) -> None:
    """W9, ours: the reference makes the identity of a quaternion without length."""
    good = {"quat_xyzw": [0, 0, 0, 1], "rot6d": [1, 0, 0, 0, 1, 0], "rot6d_rowmajor": [1, 0, 0, 1, 0, 0]}[encoding]
    env, model = drive(dim=3, encoding="axis_angle"), drive(dim=len(bad), encoding=encoding)
    adapter = adapter_of(action=free(3), drives=[env], output=[model])
    prediction = predicted(adapter, [bad, good, bad])
    assert list(prediction.failures) == [0, 2]
    assert prediction.failures[0].phase == "adapter"
    assert 'action role "x/a"' in prediction.failures[2].message
    assert prediction.actions[1].tolist() == [0, 0, 0]


def test_what_is_cut_off_is_told_of_the_right_rows_where_others_fail() -> None:
    env = [drive("x/r", 3, encoding="axis_angle"), drive("x/b")]
    action = spaces.Box(np.array([-np.inf] * 3 + [-1], np.float32), np.array([np.inf] * 3 + [1], np.float32))
    adapter = adapter_of(action=action, drives=env, output=[drive("x/r", 4, encoding="quat_xyzw"), drive("x/b")])
    prediction = predicted(adapter, [[0, 0, 0, 0, 0], [0, 0, 0, 1, 0.5], [0, 0, 0, 1, 2]])
    assert list(prediction.failures) == [0]
    assert prediction.clipped[1:].tolist() == [False, True]
    assert prediction.actions[1:, 3].tolist() == [0.5, 1]


def test_an_encoding_of_the_model_s_own_is_turned_into_its_base() -> None:
    doubled = CustomEncoding("axis_angle", to_base=lambda vector: vector / 2)
    model = Actuator("x/a", 3, encoding=doubled)
    assert sent([0, 0, pi], drive(dim=3, encoding="axis_angle"), model, free(3)) == pytest.approx([0, 0, pi / 2])
    quat = sent([0, 0, pi], drive(dim=4, encoding="quat_xyzw"), model, free(4))
    assert quat == pytest.approx([0, 0, HALF, HALF])


@pytest.mark.parametrize(
    ("statistics", "right"),
    [
        ({"kind": "min_max", "min": [-1, 0], "max": [3, 10]}, [2, 0]),
        ({"kind": "quantile", "q01": [-0.5, 1], "q99": [1.5, 9]}, [1, 1]),
        ({"kind": "mean_std", "mean": [1, 2], "std": [4, 3]}, [3, -1]),
        ({"kind": "min_max", "min": [7, 2], "max": [7, 2]}, [7, 2]),
        ({"kind": "mean_std", "mean": [7, 2], "std": [0, 0]}, [7, 2]),
    ],
)
def test_statistics_are_undone(statistics: Any, right: list[float]) -> None:
    """K38; without spread it is the centre, whatever the model says."""
    assert sent([0.5, -1], drive(dim=2), drive(dim=2, normalize=statistics), free(2)) == pytest.approx(right)


def test_chunks_are_converted_action_by_action() -> None:
    env, model = [drive(), {"dim": 1, "fill": 5}], drive(range=[0, 1])
    action = spaces.Box(np.array([-1, -9], np.float32), np.array([1, 9], np.float32))
    adapter = adapter_of(action=action, drives=env, output=[model])
    prediction = predicted(adapter, [[[0], [0.5], [2]], [[1], [0], [0.25]]])
    assert prediction.actions.tolist() == [[[-1, 5], [0, 5], [1, 5]], [[1, 5], [-1, 5], [-0.5, 5]]]
    assert prediction.clipped.tolist() == [[False, False, True], [False, False, False]]


def test_a_chunk_fails_as_a_whole_and_alone() -> None:
    env, model = drive(dim=3, encoding="axis_angle"), drive(dim=4, encoding="quat_xyzw")
    adapter = adapter_of(action=free(3), drives=[env], output=[model])
    unit, none = [0, 0, 0, 1], [0, 0, 0, 0]
    prediction = predicted(adapter, [[unit, unit], [unit, none], [unit, unit]])
    assert list(prediction.failures) == [1]
    assert prediction.actions[[0, 2]].tolist() == [[[0, 0, 0], [0, 0, 0]]] * 2


@pytest.mark.parametrize(
    ("env", "model", "right"),
    [("delta", "absolute", [0.05, -0.1]), ("absolute", "delta", [0.85, 0.7])],
)
def test_absolute_numbers_become_steps_from_where_it_is_and_back(env: str, model: str, right: Any) -> None:
    """K35: it stands at [0.4, 0.4]; every action of a chunk is seen from where it was planned."""
    drives = [drive(dim=2, mode=env)]
    output = [drive(dim=2, mode=model, reference="x/pos")]
    fields = {"type": "split", "fields": [{"dim": 1}, {"role": "x/pos", "dim": 2}]}
    adapter = adapter_of(free(3), fields, {}, action=free(2), drives=drives, output=output)
    batch = np.array([[7, 0.4, 0.4], [7, 0, 0]], np.float64)
    prediction = predicted(adapter, [[0.45, 0.3], [0.45, 0.3]], batch)
    assert prediction.actions.tolist() == [pytest.approx(right), pytest.approx([0.45, 0.3])]
    chunks = predicted(adapter, [[[0.45, 0.3]] * 2] * 2, batch).actions
    assert chunks.tolist() == [[pytest.approx(right)] * 2, [pytest.approx([0.45, 0.3])] * 2]


def test_an_action_has_the_shape_and_type_of_its_space() -> None:
    square = acted([[1, 2, 3, 4]], spaces.Box(-9, 9, (2, 2), np.float64), [drive(dim=4)], [drive(dim=4)])
    assert (square.tolist(), square.dtype) == ([[[1, 2], [3, 4]]], np.float64)
    whole = acted([[1.0, -2.0]], spaces.Box(-9, 9, (2,), np.int16), [drive(dim=2)], [drive(dim=2)])
    assert (whole.tolist(), whole.dtype) == ([[1, -2]], np.int16)


def test_whole_actions_take_whole_numbers_only() -> None:
    adapter = adapter_of(action=spaces.Box(-9, 9, (1,), np.int16), drives=[drive()], output=[drive()])
    prediction = predicted(adapter, [[1], [0.5], [2]])
    assert (list(prediction.failures), prediction.actions[[0, 2]].tolist()) == ([1], [[1], [2]])
    assert "[0.5] is not of whole numbers" in prediction.failures[1].message


def test_the_observation_that_a_step_is_taken_from_may_be_converted_first() -> None:
    tags, action = tag("x/pos", range=[0, 1]), NUMBER
    output = [drive(mode="absolute", reference="x/pos")]
    adapter = adapter_of(free(1), tags, {}, action=action, drives=[drive(mode="delta")], output=output)
    assert predicted(adapter, [[0.75]], np.array([[0.5]], np.float32)).actions.tolist() == [[0.25]]
