"""Parts of a model's state matched with the numbers that an environment has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_routes import NUMBER, NUMBER_TAG, box, free, lines, notes_of, refused, resolved, state, tag
from gymnasium import spaces

from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.spec import Concat, State
from rlmesh_adapters.plans import Affine

QUAT = tag("x/r", encoding="quat_xyzw")


def line_of(*route: Any) -> str:
    return lines(resolved(*route))[1].removeprefix('  "<root>" <- ')


@pytest.mark.parametrize(
    ("part", "code", "words"),
    [
        ("x/numbr", "MissingRole", 'needs state role "x/numbr" but the env only has ["x/number"]'),
        (
            {"role": "x/gone", "optional": True},
            "MissingWidth",
            'optional role "x/gone" is absent, and its zero fill',
        ),
        (
            {"role": "x/number", "encoding": "rot6d"},
            "EncodingMismatch",
            'both sides must declare a rotation encoding for role "x/number"',
        ),
        ({"role": "x/number", "index": 1}, "SliceOutOfRange", 'index 1 of role "x/number", which has 1'),
        ({"role": "x/number", "dim": 2}, "SliceOutOfRange", 'the first 2 numbers of role "x/number", which has 1'),
        ({"role": "x/number", "dim": 0}, "SliceOutOfRange", "dim 0"),
        (
            {"role": "x/number", "range": [[0, 0], [1, 1]]},
            "DimMismatch",
            "range has other dims than the 1 it is for",
        ),
        (
            {"role": "x/number", "normalize": {"kind": "min_max", "min": [0, 0], "max": [1, 1]}},
            "DimMismatch",
            'statistics of 2 numbers for role "x/number", which has 1',
        ),
        (
            {"role": "x/number", "normalize": {"kind": "min_max", "file": "stats.json"}},
            "Unsupported",
            "the statistics file stats.json was not read",
        ),
    ],
)
def test_components_that_do_not_fit(part: Any, code: str, words: str) -> None:
    error = refused(NUMBER, NUMBER_TAG, {"arm": state("x/number", part)})
    assert (error.code, error.where) == (code, "model_spec.input.arm.components[1]")
    assert error.cause.startswith('model input "arm"')
    assert words in error.cause


def test_a_role_that_is_nearly_there_is_named() -> None:
    assert refused(NUMBER, NUMBER_TAG, state("x/numbr")).mend == 'did you mean "x/number"?'


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"dtype": "float31"}, "Unsupported", 'unknown dtype "float31"'),
        ({"pad_to": 2}, "DimMismatch", "has 3 numbers, more than pad_to 2"),
        ({"pad_to": 0}, "DimMismatch", "has 3 numbers, more than pad_to 0"),
        ({"reshape": [2, 2]}, "DimMismatch", "3 numbers cannot be given the shape [2, 2]"),
        ({"reshape": [-1, 2]}, "DimMismatch", "3 numbers cannot be given the shape [-1, 2]"),
        ({"reshape": [0, -1]}, "DimMismatch", "3 numbers cannot be given the shape [0, -1]"),
        ({"reshape": [3], "pad_to": 4}, "DimMismatch", "4 numbers cannot be given the shape [3]"),
        ({"stack": 2, "container": "list"}, "Unsupported", "a list of numbers cannot be stacked"),
    ],
)
def test_shapes_and_types_that_do_not_fit(fields: dict[str, Any], code: str, words: str) -> None:
    """W16: the reference finds these at the first step only."""
    error = refused(free(3), tag("x/s"), state("x/s", **fields))
    assert (error.code, words in error.cause) == (code, True), error


def test_an_open_axis_is_worked_out_after_padding() -> None:
    plan = resolved(free(3), tag("x/s"), state("x/s", pad_to=8, reshape=[2, -1])).plans[0]
    assert (plan.reshape, plan.width) == ((2, 4), 8)


@pytest.mark.parametrize(
    ("accepted", "said"),
    [
        (["rot6d", "quat_xyzw"], "concat(<root>)"),
        (["rot10d", "quat_xyzw"], "concat(<root>)"),
        (["rot10d", "rot6d"], "concat(<root> (quat_xyzw->rot6d))"),
        ("axis_angle", "concat(<root> (quat_xyzw->axis_angle))"),
        ("euler_xyz", "concat(<root> (quat_xyzw->euler_xyz))"),
    ],
)
def test_a_rotation_is_converted_only_where_the_model_does_not_take_it(accepted: Any, said: str) -> None:
    """Section 16: names that nobody knows are passed over."""
    assert line_of(free(4), QUAT, state({"role": "x/r", "encoding": accepted})) == said


@pytest.mark.parametrize(
    ("given", "wanted", "words"),
    [
        ("quat_xyzw", "rot10d", 'no encoding of ["rot10d"] is known for role "x/r"'),
        ("rot10d", "quat_xyzw", 'the env declares an unrecognized encoding for role "x/r"'),
        ("quat_xyzw", None, "both sides must declare a rotation encoding"),
        (None, "quat_xyzw", "both sides must declare a rotation encoding"),
    ],
)
def test_rotations_of_unknown_encoding_are_refused(given: Any, wanted: Any, words: str) -> None:
    tags = tag("x/r", encoding=given)
    error = refused(free(4), tags, state({"role": "x/r", "encoding": wanted}))
    assert (error.code, words in error.cause) == ("EncodingMismatch", True)


def test_the_first_encoding_of_the_environment_that_is_known_is_what_it_gives() -> None:
    tags = tag("x/r", encoding=["rot10d", "quat_wxyz", "quat_xyzw"])
    said = line_of(free(4), tags, state({"role": "x/r", "encoding": "rot6d"}))
    assert said == "concat(<root> (quat_wxyz->rot6d))"


@pytest.mark.parametrize(
    ("part", "said", "width"),
    [
        ({"encoding": "axis_angle", "index": 2}, "concat(<root> (quat_xyzw->axis_angle)[2])", 1),
        ({"encoding": "rot6d", "dim": 4}, "concat(<root> (quat_xyzw->rot6d)[:4])", 4),
    ],
)
def test_slices_are_of_the_converted_rotation(part: dict[str, Any], said: str, width: int) -> None:
    route = resolved(free(4), QUAT, state({"role": "x/r", **part}))
    assert (line_of(free(4), QUAT, state({"role": "x/r", **part})), route.plans[0].width) == (said, width)


def test_a_slice_beyond_the_converted_rotation_is_refused() -> None:
    """A quaternion has a number 3; the axis-angle made of it has none."""
    error = refused(free(4), QUAT, state({"role": "x/r", "encoding": "axis_angle", "index": 3}))
    assert (error.code, "which has 3" in error.cause) == ("SliceOutOfRange", True)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"role": "x/s", "index": 2}, "concat(<root>[2])"),
        ({"role": "x/s", "dim": 2}, "concat(<root>[:2])"),
        ({"role": "x/s", "dim": 3}, "concat(<root>[:3])"),
        ({"role": "x/s", "range": [0, 1]}, "concat(<root> (range (-1.0, 1.0)->(0.0, 1.0)))"),
        ({"role": "x/s", "range": [0, 1], "index": 0}, "concat(<root>[0] (range (-1.0, 1.0)->(0.0, 1.0)))"),
        (
            {"role": "x/s", "range": [[0, 0, 0], [1, 2, 3]]},
            "concat(<root> (range (-1.0, 1.0)->([0.0, 0.0, 0.0], [1.0, 2.0, 3.0])))",
        ),
        ({"role": "x/gone", "optional": True, "dim": 4}, "concat(zeros(4))"),
        ({"role": "x/gone", "optional": True, "index": 7}, "concat(zeros(1))"),
        ({"role": "x/gone", "optional": True, "encoding": ["rot10d", "rot6d"]}, "concat(zeros(6))"),
        ({"role": "x/s", "optional": True}, "concat(<root>)"),
    ],
)
def test_components_are_described(part: Any, said: str) -> None:
    assert line_of(box(-1, 1, 3), tag("x/s"), state(part)) == said


def test_the_rest_of_a_state_is_described_as_its_padding_alone() -> None:
    wanted = state("x/s", "x/s", pad_to=8, reshape=[2, 4], dtype="float64", stack=2)
    route = resolved(free(3), tag("x/s"), {"low": wanted})
    assert lines(route)[1] == '  "low" <- concat(<root>, <root>), pad to 8'
    assert route.stacks == {"low": 2}


def test_zeros_are_counted_in_one_caution_a_state() -> None:
    gone = [{"role": f"x/{name}", "optional": True, "dim": 1} for name in "ab"]
    route = resolved(NUMBER, NUMBER_TAG, {"low": state("x/number", *gone), "b": state("x/number")})
    assert [(note.severity, note.code, note.message) for note in route.notes] == [
        ("caution", "state-zero-filled", 'state "low": 2 component(s) zero-filled for an absent env role')
    ]


def test_a_model_s_range_without_one_of_the_environment_is_an_info() -> None:
    route = resolved(free(1), tag("x/s"), state({"role": "x/s", "range": [0, 1]}))
    assert notes_of(route) == [("info", "state-range-unused")]
    assert "no-op" in route.notes[0].message
    assert lines(route)[-2:] == ["dropped:", f"  {route.notes[0].message}"]


def test_a_model_without_a_range_says_nothing() -> None:
    assert notes_of(resolved(box(0, 5, 1), tag("x/s"), state("x/s"))) == []


@pytest.mark.parametrize(
    ("space", "tags", "words"),
    [
        (box(1, 1, 2), {}, '(1.0, 1.0) of role "x/s" has no width'),
        (free(2), {"range": [3, 3]}, '(3.0, 3.0) of role "x/s" has no width'),
        (free(2), {"range": [[0, 5], [1, 5]]}, "([0.0, 5.0], [1.0, 5.0])"),
    ],
)
def test_a_range_without_width_cannot_be_mapped(space: spaces.Space[Any], tags: Any, words: str) -> None:
    """W16: the reference divides by zero at the first step."""
    error = refused(space, tag("x/s", **tags), state({"role": "x/s", "range": [0, 1]}))
    assert (error.code, words in error.cause) == ("Unsupported", True)


def test_a_number_with_a_width_may_be_picked_out_of_a_range_without() -> None:
    tags = tag("x/s", range=[[0, 5], [1, 5]])
    (plan,) = resolved(free(2), tags, state({"role": "x/s", "index": 0, "range": [0, 2]})).plans
    # 0..1 becomes 0..2, and the second number is left out.
    assert plan.pieces[0].affine == Affine(scale=(2.0,), offset=(0.0,))
    assert plan.width == 1


def test_uneven_bounds_are_a_range_for_each_number() -> None:
    """Ours: the reference takes no range at all from bounds that differ."""
    space = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
    said = line_of(space, tag("x/s"), state({"role": "x/s", "range": [-1, 1]}))
    assert said == "concat(<root> (range ([-2.0, 0.0], [2.0, 10.0])->(-1.0, 1.0)))"


@pytest.mark.parametrize(
    ("space", "width"),
    [(spaces.Discrete(5), 1), (spaces.MultiDiscrete([2, 3]), 2), (spaces.MultiBinary(4), 4), (free(2, 3), 6)],
)
def test_any_space_of_numbers_is_a_state(space: spaces.Space[Any], width: int) -> None:
    assert resolved(space, tag("x/s"), state("x/s")).plans[0].width == width


def rotated(**options: Any) -> CustomEncoding:
    return CustomEncoding("quat_xyzw", **options)


@pytest.mark.parametrize(
    ("parts", "code", "words"),
    [
        ([State("x/r", rotated(from_base=list)), "x/r"], "Unsupported", "must be the only component"),
        ([State("x/r", rotated(from_base=list), dim=2)], "Unsupported", "has no optional, dim or index"),
        ([State("x/r", rotated(from_base=list), optional=True)], "Unsupported", "has no optional, dim or index"),
        ([State("x/r", rotated(to_base=list))], "UntrustedEntrypoint", "has no function `from_base` here"),
        ([State("x/r", rotated(from_base="m:f"))], "UntrustedEntrypoint", "has no function `from_base` here"),
        ([State("x/gone", rotated(from_base=list), optional=True)], "Unsupported", "cannot be optional"),
    ],
)
def test_encodings_of_the_user_s_own_stand_alone(parts: list[Any], code: str, words: str) -> None:
    error = refused(free(4), QUAT, Concat(*parts))
    assert (error.code, words in error.cause) == (code, True), error


def test_an_encoding_of_the_user_s_own_needs_one_of_the_environment() -> None:
    error = refused(free(4), tag("x/r"), Concat(State("x/r", rotated(from_base=list))))
    assert error.code == "EncodingMismatch"
