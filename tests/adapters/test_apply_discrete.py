"""W8, ours: discrete actions, which the reference refuses, read from scores, indices and thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_routes import acted, adapter_of, drive, predicted
from gymnasium import spaces

FIRST, SECOND = drive("x/first"), drive("x/second")


@pytest.mark.parametrize(
    ("space", "model", "outputs", "right"),
    [
        (spaces.Discrete(3), {"dim": 3, "select": "argmax"}, [[0, 2, 1], [-1, -3, -2], [1, 1, 0]], [1, 0, 0]),
        (spaces.Discrete(3, start=-1), {"dim": 3, "select": "argmax"}, [[0, 2, 1], [0, 0, 5]], [0, 1]),
        (spaces.Discrete(3), {"dim": 3, "select": "argmax", "invert": True}, [[0, 2, -1]], [2]),
        (spaces.Discrete(4, start=-2), {"select": "index"}, [[-2], [1.0]], [-2, 1]),
        (spaces.Discrete(9), {"select": "index", "scale": 4}, [[0.5], [2]], [2, 8]),
        (spaces.Discrete(2), {"select": "threshold", "threshold": 0.5}, [[0.49], [0.5], [9], [-9]], [0, 1, 1, 0]),
        (spaces.Discrete(2, start=5), {"select": "threshold", "threshold": 0}, [[-0.1], [0]], [5, 6]),
        (
            spaces.Discrete(2),
            {"select": "threshold", "threshold": 0, "invert": True},
            [[-0.1], [0.1]],
            [1, 0],
        ),
    ],
)
def test_one_value_is_chosen(space: spaces.Space[Any], model: Any, outputs: Any, right: list[int]) -> None:
    """Of equal scores the first wins; a number on the threshold is over it."""
    actions = acted(outputs, space, [drive()], [drive(**model)])
    assert (actions.tolist(), actions.dtype, actions.shape) == (right, space.dtype, (len(right),))


def test_every_component_is_chosen_by_itself() -> None:
    model = [drive("x/second", 2, select="argmax"), drive("x/first", 3, select="argmax")]
    actions = acted([[0, 1, 5, 4, 6], [1, 0, 5, 4, 3]], spaces.MultiDiscrete([3, 2]), [FIRST, SECOND], model)
    assert (actions.tolist(), actions.dtype) == ([[2, 1], [0, 0]], np.int64)


def test_bits_are_set_by_one_threshold() -> None:
    model = drive(dim=3, select="threshold", threshold=0.5)
    actions = acted([[0.2, 0.5, 0.9]], spaces.MultiBinary(3), [drive(dim=3)], [model])
    assert (actions.tolist(), actions.dtype) == ([[0, 1, 1]], np.int8)


def test_values_that_nobody_drives_are_sent_as_they_are() -> None:
    drives = [FIRST, {"dim": 1, "fill": 4}, drive("x/third", optional=True, fill=1)]
    actions = acted([[2]], spaces.MultiDiscrete([3, 5, 2]), drives, [drive("x/first", select="index")])
    assert actions.tolist() == [[2, 4, 1]]


@pytest.mark.parametrize("bad", [2.5, -3, 2, 1e9])
def test_an_index_that_is_no_value_fails_its_row_alone(bad: float) -> None:
    adapter = adapter_of(action=spaces.Discrete(4, start=-2), drives=[drive()], output=[drive(select="index")])
    prediction = predicted(adapter, [[1], [bad], [-2]])
    assert (list(prediction.failures), prediction.actions[[0, 2]].tolist()) == ([1], [1, -2])
    assert "is no value from -2 to 1" in prediction.failures[1].message


def test_a_score_that_is_no_number_fails_its_row_alone() -> None:
    adapter = adapter_of(action=spaces.Discrete(2), drives=[drive()], output=[drive(dim=2, select="argmax")])
    prediction = predicted(adapter, [[0, 1], [np.nan, 1]])
    assert (list(prediction.failures), prediction.actions[0]) == ([1], 1)


def test_chunks_of_scores_are_chunks_of_values() -> None:
    adapter = adapter_of(action=spaces.Discrete(2), drives=[drive()], output=[drive(dim=2, select="argmax")])
    assert predicted(adapter, [[[0, 1], [1, 0], [2, 3]]]).actions.tolist() == [[1, 0, 1]]
    assert adapter.actions.uses == []
