"""Views of gymnasium spaces."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_envs.spaces import view_of

UNEVEN = np.array([-2, 0], np.float32)


@pytest.mark.parametrize(
    ("space", "kind", "shape", "dtype", "low", "high"),
    [
        (spaces.Box(-1, 2, (2,), np.float16), "box", (2,), np.float16, [-1, -1], [2, 2]),
        (spaces.Box(0, np.inf, (), np.float64), "box", (), np.float64, 0, np.inf),
        (spaces.Box(UNEVEN, UNEVEN + 3), "box", (2,), np.float32, [-2, 0], [1, 3]),
        (spaces.Box(0, 255, (1, 2, 1), np.uint8), "box", (1, 2, 1), np.uint8, [[[0], [0]]], [[[255], [255]]]),
        (spaces.Box(0, 1, (0, 3)), "box", (0, 3), np.float32, np.zeros((0, 3)), np.zeros((0, 3))),
        (spaces.Discrete(4), "discrete", (), np.int64, 0, 3),
        (spaces.Discrete(3, start=-5), "discrete", (), np.int64, -5, -3),
        (spaces.Discrete(1, start=2**62), "discrete", (), np.int64, 2**62, 2**62),
        (spaces.MultiDiscrete([2, 5]), "multi_discrete", (2,), np.int64, [0, 0], [1, 4]),
        (spaces.MultiDiscrete([[2, 3]], start=[[-1, 7]]), "multi_discrete", (1, 2), int, [[-1, 7]], [[0, 9]]),
        (spaces.MultiDiscrete([2, 3], dtype=np.int32), "multi_discrete", (2,), np.int32, [0, 0], [1, 2]),
        (spaces.MultiDiscrete([1, 255], dtype=np.uint8), "multi_discrete", (2,), np.uint8, [0, 0], [0, 254]),
        (spaces.MultiBinary(3), "multi_binary", (3,), np.int8, [0, 0, 0], [1, 1, 1]),
        (spaces.MultiBinary((1, 2)), "multi_binary", (1, 2), np.int8, [[0, 0]], [[1, 1]]),
    ],
)  # fmt: skip
def test_an_array_space_keeps_its_shape_type_and_inclusive_bounds(space, kind, shape, dtype, low, high):
    view = view_of(space)
    assert (view.kind, view.shape, view.dtype, view.children) == (kind, shape, np.dtype(dtype), ())
    assert view.is_array
    assert (view.low.dtype, view.high.dtype) == (dtype, dtype)
    assert (view.low.shape, view.high.shape) == (shape, shape)
    np.testing.assert_array_equal(view.low, low)
    np.testing.assert_array_equal(view.high, high)
    assert view.label == repr(space)
    assert view.contains is None


@pytest.mark.parametrize(
    ("space", "kind", "member", "stranger"),
    [
        (spaces.Text(3, charset="ab漢"), "text", "a漢", "xyz"),
        (spaces.Sequence(spaces.Discrete(2)), "opaque", (0, 1, 1), (0, 2)),
        (spaces.OneOf((spaces.Discrete(2), spaces.Text(1))), "opaque", (1, "a"), (0, "a")),
        (
            spaces.Graph(spaces.Discrete(2), None),
            "opaque",
            spaces.GraphInstance(np.array([0, 1]), None, None),
            spaces.GraphInstance(np.array([0, 7]), None, None),
        ),
    ],
)
def test_what_does_not_stack_knows_its_members_and_nothing_else(space, kind, member, stranger):
    view = view_of(space)
    assert (view.kind, view.shape, view.dtype, view.low, view.high) == (kind, (), None, None, None)
    assert not view.is_array
    assert view.contains(member) is True
    assert view.contains(stranger) is False
    assert view.label == repr(space)


def test_a_space_of_somebody_elses_kind_is_opaque():
    class Even(spaces.Space[int]):
        def contains(self, x):
            return x % 2 == 0

    view = view_of(Even())
    assert (view.kind, view.contains(4), view.contains(5)) == ("opaque", True, False)


def test_a_subclass_of_a_known_space_is_seen_as_that_space():
    class Angle(spaces.Box):
        pass

    view = view_of(Angle(-1, 1, (2,)))
    assert (view.kind, view.shape, view.low.tolist()) == ("box", (2,), [-1, -1])


def test_containers_keep_the_order_that_the_space_itself_has():
    space = spaces.Dict(OrderedDict(z=spaces.Discrete(2), a=spaces.Tuple((spaces.Text(1), spaces.MultiBinary(2)))))
    view = view_of(space)
    assert view.kind == "dict"
    assert [name for name, _ in view.children] == list(space.spaces) == ["z", "a"]
    assert view.children[0][1].label == "Discrete(2)"
    pair = view.children[1][1]
    assert pair.kind == "tuple"
    assert [(name, child.kind) for name, child in pair.children] == [(0, "text"), (1, "multi_binary")]
    assert str(view_of(spaces.Dict(a=spaces.Box(0, 1, (2,)), n=spaces.Discrete(2)))) == (
        "{a: float32[2], n: Discrete(2)}"
    )


@pytest.mark.parametrize("space", [spaces.Dict(), spaces.Tuple(())])
def test_an_empty_container_has_no_children(space):
    view = view_of(space)
    assert (view.kind, view.children) == (type(space).__name__.lower(), ())


def test_bounds_are_read_only_copies():
    space = spaces.Box(-1, 1, (2,))
    view = view_of(space)
    space.low[:] = -9
    assert view.low.tolist() == [-1, -1]
    with pytest.raises(ValueError, match="read-only"):
        view.high[0] = 5


_ARRAY_SPACES = st.one_of(
    st.builds(
        lambda low, width, shape, dtype: spaces.Box(low, low + width, tuple(shape), dtype),
        st.integers(0, 50),
        st.integers(0, 50),
        st.lists(st.integers(0, 3), max_size=3),
        st.sampled_from([np.float16, np.float32, np.float64, np.uint8, np.int64]),
    ),
    st.builds(lambda n, start: spaces.Discrete(n, start=start), st.integers(1, 9), st.integers(-9, 9)),
    st.builds(
        lambda counts, start: spaces.MultiDiscrete(counts, start=[start] * len(counts)),
        st.lists(st.integers(1, 9), min_size=1, max_size=4),
        st.integers(-9, 9),
    ),
    st.builds(spaces.MultiBinary, st.integers(1, 5)),
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(space=_ARRAY_SPACES, seed=st.integers(0, 1000))
def test_every_sample_has_the_views_type_and_lies_within_its_bounds(space, seed):
    space.seed(seed)
    view, sample = view_of(space), np.asarray(space.sample())
    assert (sample.shape, sample.dtype) == (view.shape, view.dtype)
    assert np.all(view.low <= sample)
    assert np.all(sample <= view.high)
    assert view.size == sample.size
