"""Discrete actions, and absolute numbers that become steps."""

from __future__ import annotations

from typing import Any

import pytest
from adapter_routes import drive, free, paired, refused, said_of, tag, unpaired
from gymnasium import spaces


@pytest.mark.parametrize(
    ("space", "model", "said"),
    [
        (spaces.Discrete(3), drive(dim=3, select="argmax"), '"x/a" <- model[0:3] (argmax of 3)'),
        (spaces.Discrete(3, start=-1), drive(select="index"), '"x/a" <- model[0:1] (index of 3)'),
        (spaces.Discrete(2), drive(select="threshold", threshold=0.5), '"x/a" <- model[0:1] (threshold of 2)'),
        (spaces.MultiBinary(1), drive(select="threshold", threshold=0), '"x/a" <- model[0:1] (threshold of 2)'),
        (spaces.MultiDiscrete([4]), drive(dim=4, select="argmax"), '"x/a" <- model[0:4] (argmax of 4)'),
    ],
)
def test_discrete_actions_are_read_as_the_model_says(space: spaces.Space[Any], model: Any, said: str) -> None:
    """W8, ours: the reference refuses every action space that is no Box."""
    assert said_of(drive(), model, space) == said


def test_whole_numbers_of_one_count_may_share_a_component() -> None:
    assert said_of(drive(dim=3), drive(dim=3, select="index"), spaces.MultiBinary(3)) == (
        '"x/a" <- model[0:3] (index of 2)'
    )


@pytest.mark.parametrize(
    ("space", "env", "model", "code", "words"),
    [
        (
            spaces.Discrete(3),
            drive(),
            drive(),
            "Unsupported",
            'action role "x/a" is discrete (3 values), and the model does not say how it is read',
        ),
        (
            spaces.Discrete(3),
            drive(),
            drive(dim=2, select="argmax"),
            "DimMismatch",
            "select: argmax needs 3 (3 values)",
        ),
        (spaces.Discrete(3), drive(), drive(dim=3, select="index"), "DimMismatch", "select: index needs 1"),
        (
            spaces.Discrete(3),
            drive(),
            drive(select="threshold", threshold=0),
            "Unsupported",
            "the env has 3 values",
        ),
        (
            spaces.Discrete(2),
            drive(),
            drive(select="threshold"),
            "Unsupported",
            "needs two values and a `threshold`",
        ),
        (
            spaces.Discrete(3),
            drive(),
            drive(select="index", threshold=0.5),
            "Unsupported",
            "threshold without select",
        ),
        (
            spaces.Discrete(3),
            drive(),
            drive(select="index", range=[0, 1], binary=True),
            "Unsupported",
            "is discrete and cannot have `range`, `binary`",
        ),
        (
            spaces.MultiBinary(2),
            drive(dim=2),
            drive(dim=4, select="argmax"),
            "Unsupported",
            "covers 2 numbers; argmax gives one",
        ),
    ],
)
def test_discrete_actions_that_cannot_be_read(space: Any, env: Any, model: Any, code: str, words: str) -> None:
    error = unpaired(env, model, space)
    assert (error.code, words in error.cause) == (code, True), error


def test_a_discrete_action_without_select_is_told_the_ways() -> None:
    mend = unpaired(drive(), drive(), spaces.Discrete(3)).mend
    assert all(way in mend for way in ("argmax", "index", "threshold"))


POSITION = spaces.Dict({"pos": free(2)})
POSITION_TAG = {"pos": tag("x/pos")}


def stepping(env: Any, model: Any, action: spaces.Space[Any] | None = None) -> Any:
    return unpaired(
        env, model, free(2) if action is None else action, observation=POSITION, tags=POSITION_TAG, wanted={}
    )


@pytest.mark.parametrize(
    ("env", "model", "code", "words"),
    [
        (
            {"mode": "delta"},
            {"mode": "absolute"},
            "Unsupported",
            "the model puts out absolute values, the env expects delta ones",
        ),
        (
            {"mode": "absolute"},
            {"mode": "delta"},
            "Unsupported",
            "the model puts out delta values, the env expects absolute",
        ),
        ({}, {"mode": "absolute"}, "Unsupported", "one side says absolute, the other does not say"),
        ({"mode": "absolute"}, {}, "Unsupported", "one side says absolute, the other does not say"),
        ({}, {"reference": "x/pos"}, "Unsupported", "a reference without `mode` on both sides"),
        (
            {"mode": "delta"},
            {"mode": "absolute", "reference": "x/poss"},
            "MissingRole",
            'needs state role "x/poss" but the env only has ["x/pos"]',
        ),
    ],
)
def test_absolute_numbers_are_no_steps(env: Any, model: Any, code: str, words: str) -> None:
    """K35: shapes and bounds would not tell."""
    error = stepping(drive(dim=2, **env), drive(dim=2, **model))
    assert (error.code, words in error.cause) == (code, True), error


def test_a_reference_has_the_action_s_width_and_is_no_rotation() -> None:
    error = stepping(drive(dim=3, mode="delta"), drive(dim=3, mode="absolute", reference="x/pos"), free(3))
    assert (error.code, 'its reference "x/pos" has 2 dims, it has 3' in error.cause) == ("DimMismatch", True)
    turns = {"dim": 3, "encoding": "axis_angle"}
    error = refused(
        *(free(3), tag("x/r"), {}),
        action=free(3),
        drives=[drive(mode="delta", **turns)],
        output=[drive(mode="absolute", reference="x/r", **turns)],
    )
    assert (error.code, "rotations are no sums" in error.cause) == ("Unsupported", True)


def test_one_mode_on_both_sides_needs_no_reference() -> None:
    for mode in ("absolute", "delta"):
        route = paired(drive(mode=mode), drive(mode=mode, reference="x/number"))
        assert route.action.segments[0].reference is None
