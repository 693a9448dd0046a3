"""What a model puts out, matched with what drives the environment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_routes import NUMBER, box, drive, free, notes_of, paired, said_of, unpaired
from gymnasium import spaces

from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.documents.encodings import CustomEncoding

STATISTICS = {"kind": "min_max", "min": [0.0], "max": [2.0]}


@pytest.mark.parametrize(
    ("env", "model", "code", "words"),
    [
        (drive("x/gripper"), drive("x/griper"), "MissingRole", 'env action needs role "x/gripper"'),
        (drive("x/gripper"), drive("x/griper"), "MissingRole", 'but the model only outputs ["x/griper"]'),
        (drive(), drive(dim=2), "DimMismatch", 'action role "x/a": model outputs 2 dims but the env expects 1'),
        (drive(), drive(encoding="axis_angle", dim=3), "EncodingMismatch", "both sides must declare a rotation"),
        (drive(), drive(clip=True), "Unsupported", "clip is for the environment's side"),
        (drive(threshold=0.5), drive(), "Unsupported", "threshold without binary"),
        (drive(), drive(threshold=0.5), "Unsupported", "threshold without binary"),
        (drive(), drive(select="argmax"), "Unsupported", "select: argmax is for discrete actions"),
        (drive(), drive(range=[1, 1]), "Unsupported", "the model's range (1.0, 1.0) has no width"),
        (
            drive(),
            drive(normalize={"kind": "min_max", "min": [0, 0], "max": [1, 1]}),
            "DimMismatch",
            "statistics of 2 numbers for 1 dims",
        ),
        (
            drive(),
            drive(normalize={"kind": "min_max", "file": "stats.json"}),
            "Unsupported",
            "the statistics file stats.json was not read",
        ),
    ],
)
def test_components_that_do_not_go_together(env: Any, model: Any, code: str, words: str) -> None:
    error = unpaired(env, model)
    assert (error.code, words in error.cause) == (code, True), error
    assert error.where.startswith("model_spec.output")


def test_a_role_that_is_nearly_there_is_named() -> None:
    assert unpaired(drive("x/gripper"), drive("x/griper")).mend == 'did you mean "x/griper"?'


def test_widths_that_a_role_fixes_come_before_the_environment_s() -> None:
    env, model = drive("action/delta_eef_pos", 3), drive("action/delta_eef_pos", 4)
    error = unpaired(env, model, free(3))
    assert (error.code, "model outputs 4 dims, but it is 3-D by convention" in error.cause) == (
        "DimMismatch",
        True,
    )


def test_a_clip_of_the_whole_action_is_the_environment_s() -> None:
    error = unpaired(drive(), drive(), output_clip=[-1, 1])
    assert (error.code, error.where) == ("Unsupported", "model_spec.output.clip")
    assert said_of(drive(), drive(), clip=[-0.5, 0.5]).endswith("clip to (-0.5, 0.5)")


def test_a_clip_of_one_component_needs_a_range() -> None:
    error = unpaired(drive(clip=True), drive(), free(1))
    assert (error.code, "clip needs a range" in error.cause) == ("Unsupported", True)
    paired(drive(clip=True), drive(), NUMBER)


@pytest.mark.parametrize(
    ("source", "dim", "words"),
    [
        ("quat_xyzw", 3, "model outputs 3 dims but quat_xyzw has 4"),
        ("rot6d", 4, "model outputs 4 dims but rot6d has 6"),
    ],
)
def test_a_rotation_has_the_width_of_its_encoding(source: str, dim: int, words: str) -> None:
    env = drive(dim=3, encoding="axis_angle")
    error = unpaired(env, drive(dim=dim, encoding=source), free(3))
    assert (error.code, words in error.cause) == ("DimMismatch", True)


@pytest.mark.parametrize(
    ("encoding", "code", "words"),
    [
        (
            CustomEncoding("axis_angle", from_base=list),
            "UntrustedEntrypoint",
            'custom encoding "custom" has no function',
        ),
        (CustomEncoding("axis_angle", to_base="m:f"), "UntrustedEntrypoint", "has no function `to_base` here"),
        (
            CustomEncoding("quat_xyzw", to_base=list),
            "DimMismatch",
            "model outputs 3 dims but encoding quat_xyzw has 4",
        ),
    ],
)
def test_encodings_of_the_user_s_own_need_their_function(encoding: Any, code: str, words: str) -> None:
    error = unpaired(drive(dim=3, encoding="axis_angle"), Actuator("x/a", 3, encoding=encoding), free(3))
    assert (error.code, words in error.cause) == (code, True), error


@pytest.mark.parametrize(
    ("env", "model", "said"),
    [
        (drive(), drive(), '"x/a" <- model[0:1]'),
        (drive(range=[-1, 1]), drive(range=[-1, 1]), '"x/a" <- model[0:1]'),
        (drive(), drive(range=[0, 1]), '"x/a" <- model[0:1] (range (0.0, 1.0)->(-1.0, 1.0))'),
        (drive(scale=2, invert=True), drive(), '"x/a" <- model[0:1] (*2) (invert)'),
        (drive(binary=True, threshold=0.25), drive(), '"x/a" <- model[0:1] (-0.25) (sign)'),
        (drive(), drive(binary=True), '"x/a" <- model[0:1] (sign)'),
        (
            drive(scale=0.5, binary=True, threshold=1, invert=True),
            drive(range=[0, 1]),
            '"x/a" <- model[0:1] (range (0.0, 1.0)->(-1.0, 1.0)) (*0.5) (invert) (-1) (sign)',
        ),
        ({"dim": 1, "fill": 0.5}, [], "(opaque 1d) <- fill 0.5"),
        ({"dim": 1}, [], "(opaque 1d) <- fill 0"),
        (
            drive(optional=True, fill=-1),
            [],
            '"x/a" <- fill -1 (1d; model did not output this optional role)',
        ),
        (drive(optional=True), drive(), '"x/a" <- model[0:1]'),
    ],
)
def test_segments_are_described(env: Any, model: Any, said: str) -> None:
    assert said_of(env, model) == said


def test_rotations_are_described() -> None:
    env = drive(dim=3, encoding="axis_angle")
    assert said_of(env, drive(dim=6, encoding="rot6d"), free(3)) == '"x/a" <- model[0:6] (rot6d->axis_angle)'
    assert said_of(env, drive(dim=3, encoding="axis_angle"), free(3)) == '"x/a" <- model[0:3]'


def test_components_are_found_by_role_whatever_their_order() -> None:
    """The model's own parts without a role only take up room."""
    env = [drive("x/a", 2), {"dim": 1, "fill": 0.5}, drive("x/b", 1)]
    model = [drive("x/b", 1), {"dim": 3}, drive("x/a", 2)]
    route = paired(env, model, free(4))
    assert said_of(env, model, free(4)).splitlines() == [
        '"x/a" <- model[4:6]',
        "(opaque 1d) <- fill 0.5",
        '"x/b" <- model[0:1]',
    ]
    assert route.action.in_dim == 6


def test_an_optional_component_that_the_model_lacks_is_filled_with_a_caution() -> None:
    """Section 16, but for the note: the reference fills it without a word (W11)."""
    route = paired([drive("x/a", 1), drive("x/b", 4, optional=True)], drive("x/a", 1), free(5))
    filled = route.action.segments[1]
    assert (filled.width, filled.fill, route.action.in_dim) == (4, 0.0, 1)
    assert notes_of(route) == [("caution", "actuator-filled")]
    assert route.notes[0].message == 'action role "x/b": the model does not drive it; 0 is sent at every step'


def test_a_role_of_the_model_that_drives_nothing_is_a_caution() -> None:
    """W11: the reference drops it without a word."""
    route = paired(drive("x/a"), [drive("x/a"), drive("x/b", 2), {"dim": 1}])
    assert notes_of(route) == [("caution", "action-role-unused")]
    assert 'action role "x/b"' in route.notes[0].message
    assert "2 number(s)" in route.notes[0].message


@pytest.mark.parametrize(
    ("space", "notes"),
    [(box(-2, 2, 1), [("info", "action-range-unused")]), (box(-1, 1, 1), []), (free(1), [])],
)
def test_a_range_of_the_environment_that_no_model_s_range_meets_is_an_info(space: Any, notes: Any) -> None:
    """W11: the reference sends numbers as they are, without a word. A range of -1 to 1 needs no mapping."""
    route = paired(drive(), drive(), space)
    assert notes_of(route) == notes
    assert all("(-2.0, 2.0)" in note.message for note in route.notes)


@pytest.mark.parametrize(
    "space",
    [
        free(2),
        spaces.Box(-1, np.inf, (2,)),
        spaces.Box(np.array([-1, -np.inf], np.float32), np.ones(2, np.float32)),
    ],
)
def test_a_model_s_range_needs_a_finite_one_of_the_environment(space: spaces.Space[Any]) -> None:
    """K37, ours: the reference notes a no-op, and sends numbers of -1 to 1 into a space without ends."""
    error = unpaired(drive(dim=2), drive(dim=2, range=[-1, 1]), space)
    assert (error.code, error.where) == ("Unsupported", "model_spec.output")
    assert "declares range (-1.0, 1.0), but the env gives no finite range" in error.cause
    assert error.mend == "declare `range` in the env tags, or drop the model's"
    paired(drive(dim=2, range=[-3, 3]), drive(dim=2, range=[-1, 1]), free(2))


def test_uneven_bounds_are_mapped_number_by_number() -> None:
    """K37, ours: the reference takes no range from bounds that differ."""
    space = spaces.Box(np.array([-2, 0], np.float32), np.array([2, 10], np.float32))
    said = said_of(drive(dim=2), drive(dim=2, range=[-1, 1]), space)
    assert said == '"x/a" <- model[0:2] (range (-1.0, 1.0)->([-2.0, 0.0], [2.0, 10.0]))'
    both = said_of(drive(dim=2), drive(dim=2, range=[[0, 0], [1, 2]]), space)
    assert "(range ([0.0, 0.0], [1.0, 2.0])->([-2.0, 0.0], [2.0, 10.0]))" in both


def test_statistics_take_the_place_of_ranges() -> None:
    route = paired(drive(), drive(normalize=STATISTICS), box(-9, 9, 1))
    assert notes_of(route) == []
    assert route.action.segments[0].statistics == "min_max"


def test_an_action_without_any_driver_needs_nothing_of_the_model() -> None:
    route = paired({"dim": 1}, [])
    assert (route.action.in_dim, notes_of(route)) == (0, [])
