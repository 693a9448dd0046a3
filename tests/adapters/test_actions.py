from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from adapter_fakes import ACTION_SPACES, UNEVEN, Tensor, leaf_arrays, rows_of, seam_of
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from rlmesh_adapters.actions import ActionSeam
from rlmesh_adapters.errors import ActionError
from rlmesh_envs.spaces import view_of

DISCRETE = spaces.Discrete(20)
HAND = spaces.Dict({"arm": UNEVEN, "grip": spaces.Discrete(2)})
PAIR = spaces.Tuple((spaces.Discrete(3), spaces.Discrete(3)))

every_space = pytest.mark.parametrize("space", ACTION_SPACES.values(), ids=ACTION_SPACES.keys())


class RaisesInRepr:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


@every_space
@pytest.mark.parametrize("lead", [(), (1,), (4,), (2, 3)])
def test_members_of_the_space_pass_unchanged(space: spaces.Space[Any], lead: tuple[int, ...]) -> None:
    batched = space
    for count in reversed(lead):
        batched = batch_space(batched, count)
    batched.seed(0)
    actions = batched.sample()
    seam = seam_of(space)
    converted = seam.convert(actions, lead, "here")
    np.testing.assert_equal(converted, actions)
    dtypes = [leaf.dtype for leaf in leaf_arrays(batched.sample())]
    assert [leaf.dtype for leaf in leaf_arrays(converted)] == dtypes
    if lead:
        checked = seam.check(converted)
        assert (checked.clipped is None or not checked.clipped.any(), dict(checked.failures)) == (True, {})


@every_space
def test_a_list_of_single_actions_is_their_batch(space: spaces.Space[Any]) -> None:
    space.seed(1)
    singles = [space.sample() for _ in range(3)]
    seam = seam_of(space)
    for raw in (singles, tuple(singles) if not isinstance(space, spaces.Tuple) else singles):
        converted = seam.convert(raw, (3,), "here")
        for row, single in enumerate(singles):
            np.testing.assert_equal(rows_of(converted, row), single)


@pytest.mark.parametrize(
    ("space", "raw", "expected"),
    [
        (DISCRETE, np.uint8([3, 4]), np.int64([3, 4])),
        (DISCRETE, [True, False], np.int64([1, 0])),
        (DISCRETE, Tensor([3, 4]), np.int64([3, 4])),
        (UNEVEN, np.float64([[1, 2], [0, 3]]), np.float32([[1, 2], [0, 3]])),
        (UNEVEN, [[1, 2], [0, 3]], np.float32([[1, 2], [0, 3]])),
        (UNEVEN, np.float16([[1, 2], [0, 3]]), np.float32([[1, 2], [0, 3]])),
        (spaces.MultiBinary(2), np.bool_([[1, 0], [0, 0]]), np.int8([[1, 0], [0, 0]])),
    ],
)
def test_numbers_are_cast_into_the_dtype_of_the_space(space: spaces.Space[Any], raw: Any, expected: Any) -> None:
    converted = seam_of(space).convert(raw, (2,), "here")
    assert converted.dtype == expected.dtype
    np.testing.assert_array_equal(converted, expected)


@pytest.mark.parametrize(
    ("space", "raw", "lead", "cause", "mend"),
    [
        (DISCRETE, np.array([0]), (4,), "expected int64(4,), got int64(1,)", "one action a lane"),
        (DISCRETE, 3, (4,), "expected int64(4,), got int64()", "one action a lane"),
        (DISCRETE, np.zeros((4, 1), int), (4,), "expected int64(4,), got int64(4, 1)", "actions[..., 0]"),
        (DISCRETE, np.zeros(2, int), (), "expected int64(), got int64(2,)", "shape of the action space"),
        (DISCRETE, 3, (None,), "expected int64(H,), got int64()", "axes of the corner in front"),
        (DISCRETE, np.zeros((2, 3, 1), int), (2, None), "expected int64(2, H), got int64(2, 3, 1)", "[..., 0]"),
        (UNEVEN, np.zeros((2, 3)), (2,), "expected float32(2, 2), got float64(2, 3)", "shape of the action space"),
        (UNEVEN, np.zeros((3, 2)), (2,), "expected float32(2, 2), got float64(3, 2)", "first axis must be 2"),
        (DISCRETE, [0.0, 1.0], (2,), "takes whole numbers, got float64", "int(logits.argmax())"),
        (DISCRETE, ["left", "up"], (2,), "takes whole numbers, got <U4", "int(logits.argmax())"),
        (UNEVEN, np.zeros((2, 2), complex), (2,), "takes numbers, got complex128", "return float32"),
        (UNEVEN, np.array([[0, None]] * 2), (2,), "takes numbers, got object", "return float32"),
        (UNEVEN, None, (), "is not an array of numbers: expected float32(2,), got NoneType None", "one array"),
        (UNEVEN, {"arm": 1}, (), "is not an array of numbers: expected float32(2,), got dict", "one array"),
        (UNEVEN, [[0, 0], [0]], (2,), "is ragged: expected float32(2, 2), got list [[0, 0], [0]]", "equal rows"),
        (HAND, np.zeros((2, 3)), (2,), "expected a dict with `arm`, `grip`, got float64(2, 3)", ""),
        (HAND, {"arm": [0, 0]}, (), "expected `arm`, `grip`, got `arm`", "a dict like the action space"),
        (HAND, {}, (), "expected `arm`, `grip`, got nothing", ""),
        (HAND, {"arm": [0, 0], "grip": 1, 3: 0}, (), "got `arm`, `grip`, `3`", ""),
        (HAND, {"arm": np.zeros((2, 2)), "grip": 1}, (2,), "expected int64(2,), got int64()", "one action a lane"),
        (HAND, {"arm": np.zeros((2, 2)), "grip": [0] * 3}, (None,), "leading axes [(2,), (3,)]", "same leading"),
        (HAND, [{"arm": [0, 0], "grip": 1}], (2,), "expected 2 actions, one a lane, got 1", ""),
        (PAIR, (1, 2, 0), (), "expected a tuple of 2 parts, got tuple (1, 2, 0)", ""),
        (PAIR, 1, (), "expected a tuple of 2 parts, got int 1", ""),
        (PAIR, [(0, 1)] * 3, (2,), "expected 2 actions, one a lane, got 3", ""),
        (PAIR, (np.zeros((2, 2), int), np.zeros((2, 3), int)), (2, None), "leading axes [(2, 2), (2, 3)]", ""),
    ],
)
def test_a_misfit_names_what_was_expected_and_what_came(
    space: spaces.Space[Any], raw: Any, lead: tuple[int | None, ...], cause: str, mend: str
) -> None:
    with pytest.raises(ActionError) as raised:
        seam_of(space).convert(raw, lead, "predict of the policy")
    assert cause in raised.value.cause
    assert mend in raised.value.mend
    assert raised.value.where.startswith("predict of the policy")


def test_a_misfit_inside_a_structure_names_the_leaf() -> None:
    space = spaces.Dict({"arms": spaces.Tuple((UNEVEN, spaces.Discrete(2)))})
    with pytest.raises(ActionError) as raised:
        seam_of(space).convert({"arms": ([0, 0], 0.5)}, (), "predict")
    assert raised.value.where == "predict: arms: 1"


@pytest.mark.parametrize("space", [DISCRETE, UNEVEN, HAND, PAIR], ids=type)
def test_an_answer_that_cannot_be_printed_is_a_misfit_all_the_same(space: spaces.Space[Any]) -> None:
    with pytest.raises(ActionError, match="got RaisesInRepr"):
        seam_of(space).convert(RaisesInRepr(), (), "predict")


@pytest.mark.parametrize("lead", [(None,), (0,), (2,)])
def test_an_empty_list_is_no_batch_of_tuples(lead: tuple[int | None, ...]) -> None:
    with pytest.raises(ActionError) as raised:
        seam_of(PAIR).convert([], lead, "predict")
    assert raised.value.where == "predict"


def test_a_long_answer_is_shown_in_short() -> None:
    with pytest.raises(ActionError) as raised:
        seam_of(HAND).convert("x" * 10_000, (), "here")
    assert len(raised.value.cause) < 200


@pytest.mark.parametrize("text", [spaces.Text(3), spaces.Sequence(DISCRETE)], ids=type)
def test_actions_that_are_no_arrays_are_not_supported(text: spaces.Space[Any]) -> None:
    with pytest.raises(TypeError, match="are not supported"):
        ActionSeam(view_of(spaces.Tuple((DISCRETE, text))))


def test_floats_outside_their_box_are_clipped_and_flagged() -> None:
    """Bounds are low [-2, 0], high [2, 10]."""
    given = np.float32([[0, 5], [3, -1], [2, 10], [-2.5, 5]])
    checked = seam_of(UNEVEN).check(given)
    np.testing.assert_array_equal(checked.actions, np.float32([[0, 5], [2, 0], [2, 10], [-2, 5]]))
    assert checked.clipped.tolist() == [False, True, False, True]
    assert not checked.failures
    assert given[1].tolist() == [3, -1], "the policy's own array is left alone"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("space", [UNEVEN, spaces.Box(-np.inf, np.inf, (2,))], ids=["bounded", "unbounded"])
def test_a_number_that_is_not_finite_fails_its_row_alone(space: spaces.Space[Any], bad: float) -> None:
    checked = seam_of(space).check(np.float32([[0, 1], [bad, 1], [2, 3]]))
    assert list(checked.failures) == [1]
    assert checked.failures[1].phase == "action"
    assert checked.failures[1].message == f"the action is not finite: {[bad, 1.0]}"
    np.testing.assert_array_equal(checked.actions[[0, 2]], np.float32([[0, 1], [2, 3]]))


@pytest.mark.parametrize("wrong", [99, -1])
def test_a_whole_number_outside_its_space_fails_its_row_alone(wrong: int) -> None:
    checked = seam_of(DISCRETE).check(np.array([[0, 1], [2, wrong], [3, 19]]))
    assert list(checked.failures) == [1]
    failure = checked.failures[1]
    assert (failure.phase, failure.message) == ("policy", f"action {wrong} is outside Discrete(20)")
    assert failure.mend == "actions run from 0 to 19"
    assert checked.clipped is None


@pytest.mark.parametrize(
    ("space", "wrong"),
    [
        (spaces.Box(0, 255, (2,), np.uint8), 300),
        (spaces.Box(0, 255, (2,), np.uint8), -1),
        (spaces.Box(-(2**31), 2**31 - 1, (2,), np.int32), 2**40),
        (spaces.MultiDiscrete([5, 5], dtype=np.int32), 2**40),
        (spaces.MultiDiscrete([200, 200], dtype=np.uint8), 456),
        (spaces.Box(0, 300, (2,), np.dtype(">i4")), 16776960),
    ],
)
def test_a_whole_number_that_does_not_fit_its_type_fails_its_row_alone(
    space: spaces.Space[Any], wrong: int
) -> None:
    seam = seam_of(space)
    for turned in (False, True):
        raw = np.array([[1, 4], [3, wrong], [2, 0]])
        checked = seam.check(seam.convert(raw[:, ::-1] if turned else raw, (3,), "predict_batch"))
        assert list(checked.failures) == [1]
        row = [wrong, 3] if turned else [3, wrong]
        assert checked.failures[1].message.startswith(f"action {row} is outside ")
        fine = seam.check(seam.convert(np.array([[1, 4], [3, 2], [2, 0]]), (3,), "predict_batch"))
        assert not fine.failures
        assert fine.actions.dtype == space.dtype


def test_failures_and_clips_of_a_structure_name_the_leaf_and_come_together() -> None:
    actions = {"arm": np.float32([[0, 0], [9, 0], [np.nan, 0]]), "grip": np.array([5, 0, 0])}
    checked = seam_of(HAND).check(actions)
    assert {row: failure.message[:6] for row, failure in checked.failures.items()} == {0: "`grip`", 2: "`arm`:"}
    assert checked.clipped[:2].tolist() == [False, True]


def test_nothing_clipped_is_told_as_none() -> None:
    assert seam_of(UNEVEN).check(np.float32([[0, 0]])).clipped is None
    checked = seam_of(spaces.Box(-np.inf, np.inf, (1,))).check(np.float32([[np.inf], [0]]))
    assert checked.clipped is None, "an infinite action of an unbounded Box fails, but is not clipped"


def test_structures_are_dicts_tuples_and_lists_alone() -> None:
    with pytest.raises(ActionError, match="expected a tuple of 2 parts, got deque"):
        seam_of(PAIR).convert(deque([0, 1]), (), "here")


@pytest.mark.parametrize("state", [None, (), {"h": 1}])
def test_an_action_with_a_state_beside_it_is_told_to_go_alone(state: Any) -> None:
    with pytest.raises(ActionError) as caught:
        seam_of(spaces.Box(-1, 1, (3,), np.float32)).convert((np.zeros(3), state), (), "predict")
    assert caught.value.mend == "return only the action"
