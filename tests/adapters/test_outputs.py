from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import DlpackOnly, Tensor

from rlmesh_adapters.outputs import to_array


class DetachableDlpack(DlpackOnly):
    """A tensor with Torch's ways to the host, and no `__array__`."""

    def detach(self) -> DetachableDlpack:
        return self

    def cpu(self) -> DetachableDlpack:
        return self


class ArrayLike:
    """Read by numpy alone, as JAX arrays are."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array([1, 2], dtype)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, np.array(3)),
        (True, np.array(True)),
        (np.float16(0.5), np.array(0.5, np.float16)),
        ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
        ((1.5, 2), np.array([1.5, 2.0])),
        ([], np.array([])),
        (range(3), np.array([0, 1, 2])),
        (ArrayLike(), np.array([1, 2])),
        (Tensor([1, 2]), np.array([1, 2])),
        (Tensor([1, 2], needs=()), np.array([1, 2])),
        (Tensor(7), np.array(7)),
        (Tensor([0.5, 2], half=True), np.array([0.5, 2], np.float32)),
        ([Tensor([1, 2]), Tensor([3, 4])], np.array([[1, 2], [3, 4]])),
        ((Tensor(1), Tensor(2)), np.array([1, 2])),
        ([Tensor([0.5], half=True), Tensor([2.0], half=True)], np.array([[0.5], [2]], np.float32)),
        ([[Tensor(1), Tensor(2)], [Tensor(3), Tensor(4)]], np.array([[1, 2], [3, 4]])),
        ([1.5, Tensor(2.0)], np.array([1.5, 2.0])),
        (DlpackOnly(np.float32([1, 2])), np.float32([1, 2])),
        (DetachableDlpack(np.float32([1, 2])), np.float32([1, 2])),
        ([DlpackOnly(np.float32([1])), DlpackOnly(np.float32([2]))], np.float32([[1], [2]])),
    ],
)
def test_what_policies_return_becomes_an_array_of_the_same_numbers(value: Any, expected: Any) -> None:
    array = to_array(value)
    assert type(array) is np.ndarray
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


def test_an_array_is_passed_on_without_a_copy() -> None:
    array = np.zeros((2, 3))
    array.setflags(write=False)
    assert to_array(array) is array


def test_a_subclass_of_arrays_is_made_a_plain_array() -> None:
    """A masked array indexes and compares in ways of its own."""
    array = to_array(np.ma.masked_array([1.0, 2.0], mask=[False, True]))
    assert type(array) is np.ndarray


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "NoneType"), ({"a": 1}, "dict"), (iter([1]), "list_iterator"), (object(), "object"), ({1, 2}, "set")],
)
def test_what_is_no_array_is_refused_by_its_type(value: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} is not an array of numbers"):
        to_array(value)


@pytest.mark.parametrize(
    ("value", "words"),
    [([[1], [1, 2]], "inhomogeneous"), ([Tensor([1]), Tensor([1, 2])], "same shape")],
)
def test_ragged_lists_are_refused(value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        to_array(value)
