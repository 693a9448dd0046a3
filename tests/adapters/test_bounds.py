from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import box_view
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.bounds import Bounds
from rlmesh_adapters.spaces import SpaceView
from rlmesh_envs.spaces import view_of

FLOATS = (np.float16, np.float32, np.float64)
WHOLE = (np.int8, np.uint8, np.int32, np.int64, np.uint64)
SHAPES = ((), (1,), (3,), (2, 2), (9,), (5, 4), (0,))
LEADS = ((1,), (2,), (7,), (60,), (0,), (1, 1), (3, 4), (1, 5))


def float_case(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> tuple[SpaceView, list[Any]]:
    """Return a space and what its batches are made of: bounds, their neighbours, NaN and infinities."""
    low = rng.choice([-np.inf, -2, -0.5, 0], shape).astype(dtype)
    high = rng.choice([0, 0.5, 2, np.inf], shape).astype(dtype)
    values = [bound for base in (-2, -0.5, 0, 0.5, 2) for bound in _neighbours(dtype(base))]
    if rng.random() < 0.5:
        values = [0.0, -0.0]
    if rng.random() < 0.3:
        values += [np.nan, np.inf, -np.inf, np.finfo(dtype).max]
    return box_view(low, high, shape, dtype), values


def _neighbours(value: Any) -> list[Any]:
    return [value, np.nextafter(value, value.dtype.type(-9)), np.nextafter(value, value.dtype.type(9))]


def whole_case(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> tuple[SpaceView, list[Any]]:
    info = np.iinfo(dtype)
    low = rng.choice(np.array([info.min, 0, 3], dtype), shape)
    if rng.random() < 0.4:  # as discrete spaces have it
        low = np.zeros(shape, dtype)
    high = rng.choice(np.array([3, 7, info.max], dtype), shape)
    values = [info.min, info.max, 0, 2, 3, 4, 7, 8] if rng.random() < 0.5 else [3]
    return box_view(low, high, shape, dtype), values


def inside(view: SpaceView, batch: Any) -> Any:
    return (batch >= view.low) & (batch <= view.high)


@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(FLOATS + WHOLE),
    shape=st.sampled_from(SHAPES),
    leads=st.lists(st.sampled_from(LEADS), min_size=1, max_size=4),
    finite=st.booleans(),
    layout=st.sampled_from(["plain", "strided", "fortran", "read-only"]),
)
@settings(deadline=None, max_examples=300)
def test_all_inside_is_what_plain_comparisons_say(
    seed: int, dtype: Any, shape: tuple[int, ...], leads: list[tuple[int, ...]], finite: bool, layout: str
) -> None:
    """One tester is asked for batches of several shapes, as when lanes come and go."""
    rng = np.random.default_rng(seed)
    view, values = (float_case if dtype in FLOATS else whole_case)(rng, dtype, shape)
    bounds = Bounds(view, finite=finite)
    for lead in leads:
        batch = arranged(rng.choice(np.array(values, dtype), (*lead, *shape)), layout)
        expected = inside(view, batch)
        if finite and dtype in FLOATS:
            expected &= np.isfinite(batch)
        assert bounds.all_inside(batch) == bool(expected.all())


@given(
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from((np.int8, np.int32, np.int64, ">i4", ">i8", np.uint8)),
    given=st.sampled_from((np.int8, np.int16, np.int32, np.int64, ">i4", ">i8")),
    shape=st.sampled_from(((), (1,), (2,), (3, 2))),
    layout=st.sampled_from(["plain", "strided", "fortran"]),
)
@settings(deadline=None, max_examples=300)
def test_whole_numbers_of_another_type_are_compared_as_what_they_are(
    seed: int, dtype: Any, given: Any, shape: tuple[int, ...], layout: str
) -> None:
    """What does not fit into the space's type comes as it was given."""
    rng, wanted, wide = np.random.default_rng(seed), np.dtype(dtype), np.dtype(given)
    high = int(rng.choice([0, 1, 7, np.iinfo(wanted).max]))
    bounds = Bounds(box_view(np.zeros(shape, wanted), np.full(shape, high, wanted), shape, wanted))
    values = [0, 1, 7, 8, -1, np.iinfo(wide).max, np.iinfo(wide).min]
    for lead in ((60,), (2, 3), (1,)):
        numbers = rng.choice(np.array(values[: int(rng.integers(1, 8))], np.int64), (*lead, *shape))
        batch = arranged(numbers.astype(wide), layout)
        assert bounds.all_inside(batch) == bool(((numbers >= 0) & (numbers <= high)).all())


def arranged(batch: Any, layout: str) -> Any:
    if layout == "strided":
        return np.repeat(batch, 2, axis=0)[::2]
    if layout == "fortran":
        return np.asfortranarray(batch)
    batch.setflags(write=layout != "read-only")
    return batch


@given(seed=st.integers(0, 2**32 - 1), dtype=st.sampled_from(FLOATS + WHOLE), shape=st.sampled_from(SHAPES))
@settings(deadline=None, max_examples=100)
def test_outside_marks_the_values_with_a_number_outside(seed: int, dtype: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    view, values = (float_case if dtype in FLOATS else whole_case)(rng, dtype, shape)
    for lead in LEADS:
        batch = rng.choice(np.array(values, dtype), (*lead, *shape))
        each = [not inside(view, batch[place]).all() for place in np.ndindex(*lead)]
        found = Bounds(view).outside(batch)
        assert found.shape == lead
        assert found.ravel().tolist() == each


@pytest.mark.parametrize(
    ("space", "is_free"),
    [
        (spaces.Box(0, 255, (2, 2, 3), np.uint8), True),
        (spaces.Box(0, 254, (2,), np.uint8), False),
        (spaces.Box(np.array([0, 1], np.uint8), np.array([255, 255], np.uint8), dtype=np.uint8), False),
        (spaces.Box(-(2**63), 2**63 - 1, (2,), np.int64), True),
        (spaces.Box(0, 2**64 - 1, (2,), np.uint64), True),
        (spaces.Box(-np.inf, np.inf, (2,)), False),
        (spaces.Discrete(4), False),
        (spaces.MultiBinary(2), False),
    ],
)
def test_only_whole_numbers_whose_dtype_ends_at_the_bounds_are_free(
    space: spaces.Space[Any], is_free: bool
) -> None:
    assert Bounds(view_of(space)).is_free is is_free


@pytest.mark.parametrize("count", [1, 48, 49, 3000])
@pytest.mark.parametrize("choices", [2, 1024, 1025, 10**12])
def test_one_wrong_index_is_seen_among_any_number(count: int, choices: int) -> None:
    bounds = Bounds(view_of(spaces.Discrete(choices, start=-1)))
    good = np.full(count, choices - 2)
    assert bounds.all_inside(good)
    for wrong in (-2, choices - 1):
        assert not bounds.all_inside(np.concatenate([good[1:], [wrong]]))


@pytest.mark.parametrize("space", [spaces.Text(3), spaces.Dict({"a": spaces.Discrete(2)})], ids=["text", "dict"])
def test_spaces_that_are_no_array_have_no_bounds(space: spaces.Space[Any]) -> None:
    with pytest.raises(TypeError, match="has no bounds"):
        Bounds(view_of(space))
