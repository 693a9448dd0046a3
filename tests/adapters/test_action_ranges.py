"""Ranges of an action: what they are of, what comes after them, and what is said where they do harm."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np
import pytest
from adapter_routes import acted, assembled, box, drive, free, lines, notes_of, paired, resolved, said_of, tag
from gymnasium import spaces
from scipy.spatial.transform import Rotation

from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.spec import Concat, State

VECTOR = [0.1, 0.2, 0.3]
AXIS = {"dim": 3, "encoding": "axis_angle"}
QUAT = {"dim": 4, "encoding": "quat_xyzw"}
DOUBLED = CustomEncoding("axis_angle", to_base=lambda numbers: numbers * 2, from_base=lambda numbers: numbers * 2)


def sent(value: Any, env: Any, model: Any, action: spaces.Space[Any]) -> Any:
    """Return the action that one output comes to."""
    return acted([np.atleast_1d(value)], action, [env], [model])[0].tolist()


@pytest.mark.parametrize(
    ("env", "model", "action", "value", "right"),
    [
        (
            drive(**QUAT),
            drive(**AXIS, range=[-pi, pi]),
            box(-1, 1, 4),
            VECTOR,
            Rotation.from_rotvec(VECTOR).as_quat(),
        ),
        (drive(**QUAT), drive(**AXIS, range=[-pi, pi]), free(4), VECTOR, Rotation.from_rotvec(VECTOR).as_quat()),
        (
            drive(**AXIS),
            drive(**QUAT, range=[-1, 1]),
            box(-4, 4, 3),
            Rotation.from_rotvec(VECTOR).as_quat(),
            VECTOR,
        ),
        (
            drive(**AXIS),
            drive(**QUAT, range=[[-1, -1, -1, 0], [1, 1, 1, 1]]),
            box(-4, 4, 3),
            Rotation.from_rotvec(VECTOR).as_quat(),
            VECTOR,
        ),
        (
            drive(**AXIS),
            Actuator("x/a", 3, encoding=DOUBLED, range=(-1, 1)),
            box(-4, 4, 3),
            VECTOR,
            [0.2, 0.4, 0.6],
        ),
    ],
)
def test_a_range_of_a_rotation_that_is_converted_does_nothing_and_says_so(
    env: Any, model: Any, action: Any, value: Any, right: Any
) -> None:
    """Ours: the reference maps the numbers after the conversion, of which the model's range is not."""
    assert sent(value, env, model, action) == pytest.approx(list(right), abs=1e-6)
    route = paired(env, model, action)
    assert notes_of(route) == [("info", "action-range-unused")]
    assert route.notes[0].message.endswith("but the rotation is converted; it is a no-op")
    assert lines(route)[-2:] == ["dropped:", f"  {route.notes[0].message}"]
    assert "range" not in said_of(env, model, action).splitlines()[0]


def test_a_range_of_a_rotation_that_is_not_converted_is_mapped() -> None:
    """A controller that takes -1 to 1 for half a radian either way."""
    env, model = drive(**AXIS), drive(**AXIS, range=[-0.5, 0.5])
    assert sent([0.1, -0.5, 0.25], env, model, box(-1, 1, 3)) == pytest.approx([0.2, -1, 0.5])
    assert notes_of(paired(env, model, box(-1, 1, 3))) == []


def test_ranges_that_are_the_same_need_no_word() -> None:
    env, model = drive(**AXIS), drive(dim=6, encoding="rot6d", range=[-1, 1])
    assert notes_of(paired(env, model, box(-1, 1, 3))) == []


def test_a_range_of_what_a_function_decodes_does_nothing_either() -> None:
    """The environment's range is of the numbers that the function is given, not of those that it makes."""
    wanted = Concat(State("x/r", encoding=DOUBLED, range=(0, 1)))
    route = box(-2, 2, 3), tag("x/r", encoding="axis_angle"), wanted
    assert notes_of(resolved(*route)) == [("info", "state-range-unused")]
    assert assembled(np.array([VECTOR], np.float32), *route)[0].tolist() == pytest.approx([0.2, 0.4, 0.6])


@pytest.mark.parametrize(
    ("env", "model", "action", "outputs", "all_sent", "words"),
    [
        (
            drive(),
            drive(range=[-1, 1], invert=True),
            box(0, 0.08, 1),
            [-1, -0.5, 0, 0.5, 1],
            {0.0},
            "action role \"x/a\": the model's range becomes (0, 0.08) first, the environment's; "
            "by the model's invert that is -0.08 to 0, of which the environment's range holds one number at most",
        ),
        (
            drive(binary=True),
            drive(range=[0, 1], threshold=0.5),
            box(0, 0.08, 1),
            [0, 0.4, 0.6, 1],
            {0.0},
            "by the model's threshold and the snap to -1 or +1 that is always -1",
        ),
        (
            drive(range=[-1, 1], binary=True, threshold=1.5),
            drive(range=[0, 1]),
            free(1),
            [0, 0.5, 1],
            {-1.0},
            "by the environment's threshold and the snap to -1 or +1 that is always -1",
        ),
        (
            drive(binary=True),
            drive(range=[0, 1]),
            box(0, 1, 1),
            [0, 0.5, 1],
            {1.0},
            "snap to -1 or +1 that is always 1",
        ),
        (
            drive(scale=3, invert=True),
            drive(range=[0, 1], scale=2),
            box(2, 4, 1),
            [0, 0.5, 1],
            {2.0},
            "by the model's scale, the environment's scale and the environment's invert that is -24 to -12",
        ),
        (drive(), drive(range=[-1, 1], scale=0), box(-2, 2, 1), [-1, 0, 1], {0.0}, "scale that is always 0"),
    ],
)
def test_what_can_only_come_to_one_value_is_a_caution(
    env: Any, model: Any, action: Any, outputs: list[float], all_sent: set[float], words: str
) -> None:
    """Section 7.6: the range is mapped first, so scale, invert and threshold are of the environment's numbers."""
    route = paired(env, model, action)
    assert notes_of(route) == [("caution", "action-constant")]
    assert words in route.notes[0].message
    assert {sent(value, env, model, action)[0] for value in outputs} == all_sent


def test_the_number_that_can_only_come_to_one_value_is_named() -> None:
    space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 0.5], np.float32))
    route = paired(drive(dim=2), drive(dim=2, range=[-1, 1], invert=True), space)
    assert notes_of(route) == [("caution", "action-constant")]
    assert route.notes[0].message.startswith(
        'action role "x/a", number 1: the model\'s range becomes (0, 0.5) first'
    )


@pytest.mark.parametrize(
    ("env", "model", "action"),
    [
        (drive(), drive(range=[0, 1], invert=True), box(-1, 1, 1)),
        (drive(), drive(range=[0, 1]), box(0, 0.08, 1)),
        (drive(binary=True), drive(range=[0, 1]), box(-1, 1, 1)),
        (drive(binary=True), drive(range=[0, 1], threshold=0.04), box(0, 0.08, 1)),
        (drive(range=[-1, 1], binary=True, threshold=0.5), drive(range=[0, 1]), free(1)),
        (drive(scale=2), drive(range=[0, 1]), box(0, 0.08, 1)),
        (drive(), drive(range=[0, 1], invert=True), box(3, 3, 1)),
        (drive(), drive(invert=True), box(0, 1, 1)),
        (drive(**AXIS, invert=True), drive(**QUAT, range=[-1, 1]), box(0, 4, 3)),
        (drive(), drive(normalize={"kind": "min_max", "min": [-0.08], "max": [0]}, invert=True), box(0, 0.08, 1)),
    ],
)
def test_what_comes_to_several_values_or_to_unknown_ones_is_no_caution(env: Any, model: Any, action: Any) -> None:
    assert "action-constant" not in [code for _, code in notes_of(paired(env, model, action))]


def test_a_gripper_is_turned_round_by_statistics() -> None:
    """What `docs/adapters.md` advises: -1 opens to 0.08, 1 closes to 0."""
    model = drive(normalize={"kind": "min_max", "min": [-0.08], "max": [0]}, invert=True)
    found = [sent(value, drive(), model, box(0, 0.08, 1))[0] for value in (-1, -0.5, 0, 0.5, 1)]
    assert found == pytest.approx([0.08, 0.06, 0.04, 0.02, 0])
