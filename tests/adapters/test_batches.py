from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import ACTION_SPACES
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters import batches
from rlmesh_adapters.batches import BatchLayout
from rlmesh_envs.spaces import view_of

MIXED = spaces.Dict(
    [
        ("words", spaces.Text(5)),
        ("arm", spaces.Tuple((spaces.Box(-9, 9, (2,), np.float32), spaces.Discrete(5)))),
        ("graph", spaces.Sequence(spaces.Discrete(3))),
    ]
)


def mixed_value(seed: int) -> dict[str, Any]:
    return {
        "words": f"row {seed} é",
        "arm": (np.float32([seed, seed / 2]), np.int64(seed % 5)),
        "graph": (seed % 3,) * (seed % 4),
    }


def filled(space: spaces.Space[Any], values: list[Any]) -> Any:
    layout = BatchLayout(view_of(space))
    batch = layout.allocate(len(values))
    for row, value in enumerate(values):
        layout.write(batch, row, value)
    return batch


@pytest.mark.parametrize("space", ACTION_SPACES.values(), ids=ACTION_SPACES.keys())
def test_rows_come_back_as_they_were_written(space: spaces.Space[Any]) -> None:
    space.seed(0)
    values = [space.sample() for _ in range(4)]
    batch = filled(space, values)
    for row, value in enumerate(values):
        np.testing.assert_equal(batches.row_of(batch, row), value)
    np.testing.assert_equal(list(batches.iterate_rows(batch, 4)), values)


@given(order=st.lists(st.integers(0, 4), max_size=6), other=st.integers(0, 4))
@settings(deadline=None, max_examples=30)
def test_taken_rows_are_new_in_the_order_asked_for(order: list[int], other: int) -> None:
    values = [mixed_value(seed) for seed in range(5)]
    batch = filled(MIXED, values)
    taken = batches.take_rows(batch, order)
    expected = [values[row] for row in order]
    batches.put_rows(batch, range(5), filled(MIXED, [mixed_value(50)] * 5))
    np.testing.assert_equal([batches.row_of(taken, place) for place in range(len(order))], expected)


@given(rows=st.permutations(range(5)), count=st.integers(0, 5))
@settings(deadline=None, max_examples=30)
def test_put_rows_replaces_these_rows_and_no_other(rows: list[int], count: int) -> None:
    old, new = [mixed_value(seed) for seed in range(5)], [mixed_value(seed) for seed in range(10, 15)]
    batch = filled(MIXED, old)
    batches.put_rows(batch, rows[:count], filled(MIXED, new[:count]))
    for place, row in enumerate(rows[:count]):
        old[row] = new[place]
    np.testing.assert_equal([batches.row_of(batch, row) for row in range(5)], old)


def test_a_copied_batch_shares_nothing_with_the_first() -> None:
    batch = filled(MIXED, [mixed_value(1), mixed_value(2)])
    copy = batches.copy_batch(batch)
    batches.put_rows(batch, [0, 1], filled(MIXED, [mixed_value(7)] * 2))
    np.testing.assert_equal([batches.row_of(copy, row) for row in (0, 1)], [mixed_value(1), mixed_value(2)])


def test_written_arrays_are_copied() -> None:
    value = np.float32([1, 2])
    batch = filled(spaces.Box(-9, 9, (2,)), [value])
    value[:] = 5
    np.testing.assert_array_equal(batch, [[1, 2]])


def test_stacked_rows_are_the_rows() -> None:
    rows = [{"a": np.float32([seed]), "b": (np.int64(seed),)} for seed in range(3)]
    stacked = batches.stack_rows(rows)
    np.testing.assert_equal(stacked, {"a": np.float32([[0], [1], [2]]), "b": (np.array([0, 1, 2]),)})


@pytest.mark.parametrize("empty", [spaces.Dict({}), spaces.Tuple(())], ids=["dict", "tuple"])
def test_a_space_without_parts_has_batches_without_leaves(empty: spaces.Space[Any]) -> None:
    assert batches.leaves(filled(empty, [empty.sample()])) == []


def test_leaves_are_listed_depth_first_in_the_order_of_the_space() -> None:
    batch = filled(MIXED, [mixed_value(3)])
    kinds = [type(leaf).__name__ for leaf in batches.leaves(batch)]
    assert kinds == ["list", "ndarray", "ndarray", "list"]


def test_other_trees_are_matched_by_name_not_by_order() -> None:
    total = batches.map_leaves(np.add, {"a": np.array([1]), "b": np.array([2])}, {"b": np.array([20]), "a": 10})
    np.testing.assert_equal(total, {"a": np.array([11]), "b": np.array([22])})


@pytest.mark.parametrize(
    ("space", "value", "words"),
    [
        (spaces.Box(-9, 9, (2,)), np.float32([1]), r"expected shape \(2,\), got \(1,\)"),
        (spaces.Box(-9, 9, (2,)), 1.0, r"expected shape \(2,\), got \(\)"),
        (spaces.Box(-9, 9, (2, 1)), np.zeros((1, 2, 1)), r"expected shape \(2, 1\), got \(1, 2, 1\)"),
        (spaces.Box(-9, 9, (2, 2)), [[1, 2], [3]], "inhomogeneous"),
        (spaces.Discrete(5), [1], r"expected shape \(\), got \(1,\)"),
        (spaces.Dict({"a": spaces.Discrete(5)}), {"b": 1}, "`a` is missing from a value of {a: Discrete\\(5\\)}"),
        (spaces.Dict({"a": spaces.Discrete(5)}), None, "`a` is missing"),
        (spaces.Tuple((spaces.Discrete(5), spaces.Discrete(5))), (1,), "`1` is missing"),
        (MIXED, {**mixed_value(1), "arm": (np.zeros(3), 1)}, r"`arm`: `0`: expected shape \(2,\), got \(3,\)"),
    ],
)
def test_a_value_of_another_shape_or_structure_is_refused(
    space: spaces.Space[Any], value: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        filled(space, [value])


def test_no_value_at_all_is_refused_with_the_leaf_named() -> None:
    space = spaces.Dict({"n": spaces.Box(0, 9, (), np.int32)})
    with pytest.raises(ValueError, match="`n`"):
        filled(space, [{"n": None}])


@pytest.mark.parametrize(
    ("space", "value", "words"),
    [
        (spaces.Box(-9, 9, (1,), np.float32), np.zeros(1, np.float64), "float64 is stored as float32"),
        (spaces.Box(-9, 9, (1,), np.float64), np.zeros(1, np.float32), ""),
        (spaces.Box(-9, 9, (1,), np.float16), np.zeros(1, np.float32), "float32 is stored as float16"),
        (spaces.Box(0, 255, (1,), np.uint8), np.zeros(1, np.int64), "int64 is stored as uint8"),
        (spaces.Box(-9, 9, (), np.float32), 0.5, ""),
        (spaces.Discrete(3), 1, ""),
        (spaces.Dict({"t": spaces.Tuple((spaces.Box(-9, 9, (1,)),))}), {"t": (np.zeros(1),)}, "`t`: `0`: float64"),
        (MIXED, mixed_value(1), ""),
    ],
)
def test_a_loss_of_precision_is_named(space: spaces.Space[Any], value: Any, words: str) -> None:
    found = BatchLayout(view_of(space)).casts(value)
    assert found.startswith(words)
    assert bool(found) == bool(words)


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (spaces.Discrete(3), 1.7),
        (spaces.Discrete(3), np.float64(1.7)),
        (spaces.Box(0, 255, (), np.uint8), 300),
        (spaces.Box(0, 255, (), np.uint8), -1),
    ],
)
def test_a_python_number_that_is_stored_as_another_one_is_refused_or_named(
    space: spaces.Space[Any], value: Any
) -> None:
    layout = BatchLayout(view_of(space))
    batch = layout.allocate(1)
    try:
        layout.write(batch, 0, value)
    except (ValueError, OverflowError):
        return
    assert batch[0] == value or layout.casts(value) != ""


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Box(-9, 9, (7,)), "float32[2, 7]"),
        (
            spaces.Dict({"image": spaces.Box(0, 255, (8, 8, 3), np.uint8), "words": spaces.Text(3)}),
            "image: uint8[2, 8, 8, 3], words: list of 2",
        ),
        (spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))), "(int64[2], int64[2])"),
    ],
)
def test_the_signature_lists_the_leaves(space: spaces.Space[Any], text: str) -> None:
    assert batches.signature(BatchLayout(view_of(space)).allocate(2)) == text


@pytest.mark.parametrize(
    ("space", "value", "fitting"),
    [
        (spaces.Box(0, 255, (2,), np.uint8), np.array([0.9, 3.0]), np.array([9.0, 3.0])),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([300, 3]), np.array([200, 3])),
        (spaces.Box(0, 255, (2,), np.uint8), np.array([np.nan, 3]), np.float32([4, 3])),
        (spaces.Discrete(5), np.float64(2.7), np.float64(2.0)),
        (spaces.MultiDiscrete([5, 5]), np.float32([1.5, 2]), np.float32([1, 2])),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_whole_numbers_are_never_cut_off(space: spaces.Space[Any], value: Any, fitting: Any) -> None:
    assert filled(space, [fitting])[0].tolist() == fitting.tolist()
    for given_value in (value, value.tolist()):
        with pytest.raises(ValueError, match="does not fit into"):
            filled(space, [given_value])
