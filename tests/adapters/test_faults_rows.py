"""Faults that were found by hunting in how rows fail: alone, and with words of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from adapter_routes import (
    DRIVE,
    NUMBER,
    NUMBER_TAG,
    Asked,
    adapter_of,
    assembled,
    drive,
    free,
    predicted,
    route_of,
    state,
    tag,
)
from gymnasium import spaces

from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.spec import Concat, Custom, State

QUAT = tag("x/r", encoding="quat_xyzw")
AS_VECTOR = {"role": "x/r", "encoding": "axis_angle"}
UNIT, NONE = [0, 0, 0, 1], [0, 0, 0, 0]
TURNS = drive(dim=3, encoding="axis_angle")


def floats(*rows: Any) -> Any:
    return np.array(rows, np.float32)


def answers(observations: Any) -> Any:
    return np.zeros((len(observations), 1))


def asked_of(wanted: Any, rows: Any, space: Any = NUMBER, tags: Any = NUMBER_TAG) -> Any:
    """Return what a new route answers to a batch."""
    policy = Asked({"input": wanted, "output": {"components": [DRIVE]}}, answers)
    engine = route_of(policy, space, tags, num_lanes=len(rows))
    return engine.predict("route", rows, contexts(*range(len(rows))))


def small_only(values: Any) -> Any:
    if values[0] > 5:
        raise ValueError(f"{values[0]} is no turn")
    return values


def tenth(observation: Any) -> Any:
    if observation[0] < 0:
        raise ValueError(f"{observation[0]} is no length")
    return float(observation[0]) / 10


OWN = CustomEncoding("axis_angle", from_base=small_only)


@pytest.mark.parametrize(
    ("space", "tags", "wanted", "good", "bad"),
    [
        (free(4), QUAT, state(AS_VECTOR), UNIT, [NONE, [np.nan] * 4, [0, 0, 1e-9, 0]]),
        (free(1), tag("x/s"), state("x/s", dtype="uint8"), [7], [[0.5], [-3], [300]]),
        (free(1), tag("x/s"), state("x/s", dtype="float16"), [7], [[1e6], [-1e7]]),
        (free(3), tag("x/r", encoding="axis_angle"), Concat(State("x/r", OWN)), [1, 0, 0], [[6, 0, 0], [7, 0, 0]]),
        (NUMBER, NUMBER_TAG, Custom(tenth), [1], [[-1], [-0.5]]),
    ],
)
def test_an_observation_s_failure_says_the_same_alone_and_in_company(
    space: Any, tags: Any, wanted: Any, good: Any, bad: Any
) -> None:
    """What is recorded of an episode must not depend on how many run beside it."""
    alone = [asked_of(wanted, floats(good, value), space, tags).failures[1].message for value in bad]
    company = asked_of(wanted, floats(good, good, *bad, good), space, tags).failures
    assert [company[row].message for row in range(2, 2 + len(bad))] == alone
    assert len({*alone}) == len(bad)


@pytest.mark.parametrize(
    ("action", "env", "model", "good", "bad"),
    [
        (free(3), TURNS, drive(dim=4, encoding="quat_xyzw"), UNIT, [NONE, [0, 1e-9, 0, 0]]),
        (spaces.Discrete(3), drive(), drive(select="index"), [1], [[3], [0.5], [-1]]),
        (spaces.Box(0, 9, (2,), np.int16), drive(dim=2), drive(dim=2), [1, 2], [[0.5, 1], [1, 2.5]]),
        (free(1), drive(), drive(), [1], [[1e39], [-1e40]]),
    ],
)
def test_an_action_s_failure_says_the_same_alone_and_in_company(
    action: Any, env: Any, model: Any, good: Any, bad: Any
) -> None:
    adapter = adapter_of(action=action, drives=[env], output=[model])
    alone = [predicted(adapter, [value]).failures[0].message for value in bad]
    company = predicted(adapter, [good, *bad, good]).failures
    assert [company[row].message for row in range(1, 1 + len(bad))] == alone
    chunks = predicted(adapter, [[good, good], *([good, value] for value in bad)]).failures
    assert [chunks[row].message for row in range(1, 1 + len(bad))] == alone
    assert len({*alone}) == len(bad)


def test_texts_of_several_wrong_types_are_each_told() -> None:
    space = spaces.Dict({"say": spaces.Text(9)})
    leaf = {"type": "text", "role": "text/instruction"}
    adapter = adapter_of(space, {"say": leaf}, leaf)
    with pytest.raises(ValueError, match="expected text, got int") as caught:
        adapter.observations.apply({"say": ["go", 3, None]}, ["a", "b", "c"])
    assert caught.value.messages[2].endswith("expected text, got NoneType")  # type: ignore[attr-defined]


def test_a_custom_input_is_made_at_most_twice_however_many_rows_fail() -> None:
    """Every failing row had all others made again, and over a thousand were too deep for Python."""
    calls = list[float]()

    def counted(observation: Any) -> Any:
        calls.append(observation[0])
        return tenth(observation)

    rows = np.full((1200, 1), -1, np.float32)
    rows[0] = 1
    prediction = asked_of(Custom(counted), rows)
    assert (len(prediction.failures), len(calls) <= 2 * 1200) == (1199, True)


def test_plain_numbers_of_a_custom_input_are_an_array_whatever_the_neighbours_give() -> None:
    """A whole number beside a fraction made a list of the whole input; whole ones alone stay whole."""

    def whole_above_1(observation: Any) -> Any:
        return int(observation[0]) if observation[0] > 1 else float(observation[0])

    together = assembled(floats([1], [2]), free(1), NUMBER_TAG, Custom(whole_above_1), rows=2)
    alone = [assembled(floats([value]), free(1), NUMBER_TAG, Custom(whole_above_1)) for value in (1, 2)]
    assert (together.tolist(), together.dtype) == ([1, 2], np.float64)
    assert [(part.tolist(), part.dtype) for part in alone] == [([1], np.float64), ([2], np.int64)]
