"""Tags laid over spaces: where the two disagree, and what they come to together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_routes import NUMBER, box, camera, free, image, lines, refused, resolved, state, tag
from gymnasium import spaces

from rlmesh_adapters.describe import describe

TEXT = {"type": "text", "role": "text/instruction"}
SPLIT = {"type": "split", "fields": [{"role": "x/a", "dim": 3}, {"dim": 1}]}


@pytest.mark.parametrize(
    ("space", "tags", "words", "where"),
    [
        (
            spaces.Dict({"arm": NUMBER, "hand": NUMBER}),
            {"arn": tag("x/s")},
            'observation "arn" is tagged, but the space has only ["arm", "hand"]',
            "env_tags.observation.arn",
        ),
        (NUMBER, {"arm": tag("x/s")}, 'observation "<root>" is tagged as a Dict, but the space is a 1-D Box', ""),
        (NUMBER, [tag("x/s")], 'observation "<root>" is tagged as a Tuple, but the space is a 1-D Box', ""),
        (
            spaces.Dict({"a": spaces.Discrete(2)}),
            {"a": {"b": TEXT}},
            'observation "a" is tagged as a Dict, but',
            ".a",
        ),
        (
            spaces.Tuple((NUMBER, NUMBER)),
            [tag("x/s")],
            'observation "<root>" is tagged as a Tuple of 1, but the space has 2',
            "",
        ),
        (
            spaces.Dict({"cam": box(0, 1, 3, 4)}),
            {"cam": image()},
            'observation "cam" is tagged as an image (3-D Box) but the space is a 2-D Box',
            ".cam",
        ),
        (spaces.Discrete(3), image(), "as an image (3-D Box) but the space is a Discrete space", ""),
        (spaces.Text(3), tag("x/s"), "is tagged as a state, but the space is a Text space", ""),
        (spaces.Text(3), SPLIT, "is tagged as a split, but the space is a Text space", ""),
        (NUMBER, TEXT, 'observation "<root>" is tagged as a text, but the space is a 1-D Box', ""),
        (free(5), SPLIT, 'state layout for "<root>" sums to 4 dims but the space width is 5', ""),
        (
            free(5),
            tag("x/r", encoding="quat_xyzw"),
            'state "<root>" declares encoding quat_xyzw (4 dims) but the space width is 5',
            "",
        ),
        (
            free(4),
            {"type": "split", "fields": [{"role": "x/r", "dim": 3, "encoding": "rot6d"}, {"dim": 1}]},
            'state "<root>" field "x/r" declares encoding rot6d (6 dims) but the field width is 3',
            "",
        ),
        (free(2), tag("proprio/eef_pos"), 'role "proprio/eef_pos" is 3-D by convention, but has 2 dims', ""),
        (
            free(4),
            {"type": "split", "fields": [{"role": "proprio/eef_pos_2", "dim": 4}]},
            'role "proprio/eef_pos_2" is 3-D by convention, but has 4 dims',
            "",
        ),
        (box(0, 1, 1), tag("x/s", range=[0, 2]), "the tag says range (0.0, 2.0), the space (0.0, 1.0)", ""),
        (free(2), tag("x/s", range=[[0, 0, 0], [1, 1, 1]]), "range has other dims than the 2 of the space", ""),
        (
            box(0, 1, 2, 2, 3),
            image(range=[0, 255]),
            'image "<root>": the tag says range (0.0, 255.0), the space (0.0, 1.0)',
            "",
        ),
        (spaces.Dict({"<obs>": NUMBER}), {"<obs>": tag("x/s")}, 'the observation key "<obs>" is reserved', ""),
    ],
)
def test_tags_that_the_space_contradicts(space: spaces.Space[Any], tags: Any, words: str, where: str) -> None:
    error = refused(space, tags, {})
    assert error.code == "InvalidTag"
    assert words in error.cause
    assert error.where.endswith(where)
    assert error.where.startswith("env_tags.observation")
    assert error.mend or "by convention" in words


def test_a_key_that_is_nearly_there_is_named() -> None:
    space = spaces.Dict({"arm": NUMBER, "hand": NUMBER})
    assert refused(space, {"arn": tag("x/s")}, {}).mend == 'did you mean "arm"?'


@pytest.mark.parametrize(
    ("action", "drives", "options", "words"),
    [
        (NUMBER, [{"dim": 2}], {}, "the action components sum to 2 dims but the action space has 1"),
        (NUMBER, [], {}, "the action components sum to 0 dims but the action space has 1"),
        (spaces.Text(3), [{"dim": 1}], {}, "must be a flat Box or whole numbers but it is a Text space"),
        (
            free(5),
            [{"role": "x/a", "dim": 5, "encoding": "axis_angle"}],
            {},
            'action role "x/a" declares encoding axis_angle (3 dims) but its width is 5',
        ),
        (free(2), [{"role": "action/delta_eef_pos", "dim": 2}], {}, "is 3-D by convention, but has 2 dims"),
        (
            box(-1, 1, 1),
            [{"role": "x/a", "dim": 1, "range": [-2, 2]}],
            {},
            'action role "x/a": the tag says range (-2.0, 2.0), the space (-1.0, 1.0)',
        ),
        (spaces.Discrete(3), [{"dim": 1}], {"clip": [0, 1]}, "clip is for numbers"),
        (
            spaces.Discrete(3, start=1),
            [{"dim": 1}],
            {},
            "an action component without a role: fill 0 is none of its values 1 to 3",
        ),
        (
            spaces.Discrete(3),
            [{"role": "x/a", "dim": 1, "optional": True, "fill": 1.5}],
            {},
            'action role "x/a": fill 1.5 is none of its values 0 to 2',
        ),
        (
            spaces.MultiDiscrete([3, 5]),
            [{"role": "x/a", "dim": 2}],
            {},
            'action role "x/a" covers numbers of different counts: [3, 5] values',
        ),
        (
            spaces.Discrete(3),
            [{"role": "x/a", "dim": 1, "binary": True, "scale": 2}],
            {},
            "is discrete (a Discrete space) and cannot have `binary`, `scale`",
        ),
    ],
)
def test_actions_that_the_space_contradicts(action: Any, drives: Any, options: Any, words: str) -> None:
    error = refused(action=action, drives=drives, output=[], **options)
    assert (error.code, words in error.cause) == ("InvalidTag", True), error


def test_a_space_may_have_more_keys_than_are_tagged() -> None:
    space = spaces.Dict({"a": NUMBER, "b": spaces.Graph(NUMBER, None)})
    assert lines(resolved(space, {"a": tag("x/s")}, state("x/s")))[1] == '  "<root>" <- concat(a)'


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        (tag("x/r"), {"type": "split", "fields": [{"role": "x/r", "dim": 1}]}, "state"),
        (image("x/r"), image("x/r"), "image"),
        ({"type": "text", "role": "x/r"}, {"type": "text", "role": "x/r"}, "text"),
    ],
)
def test_a_role_stands_once_a_modality(one: Any, other: Any, what: str) -> None:
    by_kind = {"state": NUMBER, "image": camera(2, 2), "text": spaces.Text(3)}
    error = refused(spaces.Dict({"a": by_kind[what], "b": by_kind[what]}), {"a": one, "b": other}, {})
    assert error.code == "Duplicate"
    assert f'{what} role "x/r" stands 2 times in the env tags' in error.cause


def test_a_role_may_stand_in_two_modalities_and_feed_many_inputs() -> None:
    space = spaces.Dict({"cam": camera(2, 2), "say": spaces.Text(3)})
    tags = {"cam": image("x/r"), "say": {"type": "text", "role": "x/r"}}
    wanted = [image("x/r"), {"type": "text", "role": "x/r"}, image("x/r", layout="chw")]
    assert lines(resolved(space, tags, wanted))[1:4] == [
        '  "[0]" <- image "cam" (uint8)',
        '  "[1]" <- text "say"',
        '  "[2]" <- image "cam" (uint8, hwc->chw)',
    ]


FIELDS: list[dict[str, Any]] = [
    {"role": "proprio/eef_pos", "dim": 3},
    {"role": "proprio/gripper", "dim": 1},
    {"dim": 1},
    {"role": "x/object", "dim": 3},
]


def test_fields_of_a_split_follow_one_another() -> None:
    """Section 16: pos 3, grip 1, skip 1, obj 3 on Box(8) begin at 0, 3 and 5."""
    wanted = state("x/object", {"role": "proprio/eef_pos", "dim": 3}, {"role": "proprio/eef_pos", "index": 1})
    route = resolved(free(8), {"type": "split", "fields": FIELDS}, [wanted, state("proprio/gripper")])
    assert lines(route)[1:3] == [
        '  "[0]" <- concat(<root>[5:8], <root>[0:3], <root>[0:3][1])',
        '  "[1]" <- concat(<root>[3:4])',
    ]
    assert route.unused == ()


def test_each_field_takes_the_bounds_of_its_own_slice() -> None:
    """Section 16: only number 3 is bounded by [0, 1], the others by [-1, 1]."""
    low, high = np.full(8, -1, np.float32), np.ones(8, np.float32)
    low[3] = 0
    parts = [{"role": "proprio/gripper", "range": [5, 6]}, {"role": "proprio/eef_pos", "range": [5, 6]}]
    route = resolved(spaces.Box(low, high), {"type": "split", "fields": FIELDS}, state(*parts))
    assert lines(route)[1] == (
        '  "<root>" <- concat(<root>[3:4] (range (0.0, 1.0)->(5.0, 6.0)), '
        "<root>[0:3] (range (-1.0, 1.0)->(5.0, 6.0)))"
    )


def test_a_tag_s_range_that_agrees_but_for_float32_is_kept_as_it_stands() -> None:
    """Section 16: float32 has no 0.08; the Box says 0.0799999982."""
    space = box(0, 0.08, 1)
    assert float(space.high[0]) != 0.08
    route = resolved(space, tag("x/s", range=[0, 0.08]), state({"role": "x/s", "range": [0, 1]}))
    assert "(range (0.0, 0.08)->(0.0, 1.0))" in describe(route)


def test_a_tag_s_range_stands_where_the_space_has_none() -> None:
    route = resolved(free(1), tag("x/s", range=[0, 2]), state({"role": "x/s", "range": [0, 1]}))
    assert "(range (0.0, 2.0)->(0.0, 1.0))" in describe(route)
