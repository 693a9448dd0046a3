from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import ACTION_SPACES, box_view
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.spaces import SpaceView, frozen_array, sample_value, zero_value
from rlmesh_envs.spaces import view_of

MORE_SPACES: dict[str, spaces.Space[Any]] = {
    **ACTION_SPACES,
    "bounded below": spaces.Box(3, np.inf, (4,), np.float32),
    "bounded above": spaces.Box(-np.inf, -3, (4,), np.float64),
    "half precision": spaces.Box(-1, 1, (3,), np.float16),
    "pixels": spaces.Box(0, 255, (4, 4, 3), np.uint8),
    "whole numbers above zero": spaces.Box(3, 9, (2,), np.int32),
    "every int64": spaces.Box(-(2**63), 2**63 - 1, (2,), np.int64),
    "every uint64": spaces.Box(0, 2**64 - 1, (2,), np.uint64),
    "booleans": spaces.Box(0, 1, (2,), np.bool_),
    "below zero": spaces.Discrete(3, start=-7),
    "shifted": spaces.MultiDiscrete([3, 4], start=[5, -9]),
    "nothing": spaces.Dict({}),
}

every_space = pytest.mark.parametrize("space", MORE_SPACES.values(), ids=MORE_SPACES.keys())


def is_member(space: spaces.Space[Any], value: Any) -> bool:
    """Ask gymnasium; it warns about numbers in a Box of shape ()."""
    return space.contains(np.asarray(value) if isinstance(space, spaces.Box) else value)


@every_space
def test_every_sample_is_a_member(space: spaces.Space[Any]) -> None:
    rng = np.random.default_rng(0)
    assert all(is_member(space, sample_value(view_of(space), rng)) for _ in range(50))


@every_space
def test_zero_is_a_member(space: spaces.Space[Any]) -> None:
    assert is_member(space, zero_value(view_of(space)))


def test_equal_generators_draw_equal_samples() -> None:
    view = view_of(ACTION_SPACES["tuple"])
    first, second = (sample_value(view, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_equal(first, second)


@given(low=st.floats(-9, 9, width=32), width=st.floats(0, 9, width=16))
@settings(deadline=None, max_examples=50)
def test_zero_is_the_member_nearest_to_zero(low: float, width: float) -> None:
    high = float(np.float32(low + width))
    nearest = 0 if low <= 0 <= high else min((low, high), key=abs)
    np.testing.assert_array_equal(zero_value(box_view(low, high, (2,), np.float32)), np.float32([nearest] * 2))


def test_every_value_of_a_discrete_space_is_drawn_about_equally_often() -> None:
    rng = np.random.default_rng(0)
    drawn = [int(sample_value(view_of(spaces.Discrete(4, start=-1)), rng)) for _ in range(2000)]
    assert all(430 < drawn.count(value) < 570 for value in (-1, 0, 1, 2))


def test_bounded_floats_are_uniform_and_unbounded_ones_are_standard_normal() -> None:
    rng = np.random.default_rng(0)
    uniform = sample_value(box_view(2, 6, (20_000,), np.float64), rng)
    normal = sample_value(box_view(-np.inf, np.inf, (20_000,), np.float64), rng)
    assert (uniform.mean(), uniform.var()) == pytest.approx((4, 16 / 12), rel=0.03)
    assert (normal.mean(), normal.std()) == pytest.approx((0, 1), abs=0.03)


@pytest.mark.parametrize(("low", "high", "sign"), [(3, np.inf, 1), (-np.inf, 3, -1)])
def test_floats_bounded_on_one_side_are_exponential_from_there(low: float, high: float, sign: int) -> None:
    drawn = sample_value(box_view(low, high, (20_000,), np.float64), np.random.default_rng(0))
    away = sign * (drawn - 3)
    assert away.min() >= 0
    assert (away.mean(), away.std()) == pytest.approx((1, 1), abs=0.03)


def test_sampling_the_widest_box_of_float64_does_not_overflow() -> None:
    most = np.finfo(np.float64).max
    drawn = sample_value(box_view(-most, most, (8,), np.float64), np.random.default_rng(0))
    assert np.isfinite(drawn).all()


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (spaces.Box(-1, 1, (4,), np.float32), "float32[4]"),
        (spaces.Box(0, 255, (8, 8, 3), np.uint8), "uint8[8, 8, 3]"),
        (spaces.Box(0, 1, ()), "float32[]"),
        (spaces.Discrete(2), "Discrete(2)"),
        (
            spaces.Dict([("b", spaces.Discrete(2)), ("a", spaces.Box(0, 1, (1,)))]),
            "{b: Discrete(2), a: float32[1]}",
        ),
        (spaces.Tuple((spaces.Discrete(2), spaces.Tuple(()))), "(Discrete(2), ())"),
    ],
)
def test_a_space_is_printed_shortly(space: spaces.Space[Any], text: str) -> None:
    assert str(view_of(space)) == text


@pytest.mark.parametrize(("shape", "size"), [((), 1), ((0,), 0), ((3, 2), 6), ((70_000, 70_000), 4_900_000_000)])
def test_size_counts_the_numbers_of_one_value(shape: tuple[int, ...], size: int) -> None:
    assert SpaceView(kind="box", shape=shape).size == size


@pytest.mark.parametrize("space", [spaces.Text(5), spaces.Sequence(spaces.Discrete(2))], ids=type)
def test_spaces_without_numbers_have_neither_zero_nor_samples(space: spaces.Space[Any]) -> None:
    inside = view_of(spaces.Dict({"said": space}))
    with pytest.raises(TypeError, match=r"(Text|Sequence)\(.*\) has no zero"):
        zero_value(inside)
    with pytest.raises(TypeError, match=r"(Text|Sequence)\(.*\) cannot be sampled"):
        sample_value(inside, np.random.default_rng(0))


def test_frozen_arrays_are_copies_that_nobody_writes_to() -> None:
    given_values = np.array([1.0, 2.0])
    kept = frozen_array(given_values, shape=(3, 2), dtype=np.float32)
    given_values[:] = 9
    np.testing.assert_array_equal(kept, np.float32([[1, 2]] * 3))
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 5
