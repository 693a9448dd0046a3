"""What a policy's exceptions and misfits do to their rows, and to nobody else's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import UNEVEN, UnprintableError, caller_of, column, contexts
from gymnasium import spaces

from rlmesh_adapters.corners import CORNER_NAMES
from rlmesh_adapters.errors import ActionError

DISCRETE = spaces.Discrete(20)


def refusing(name: str, bad: float, error: BaseException, calls: list[list[float]]) -> Any:
    """Return a corner that raises whenever it sees the bad observation; else it answers with the observation."""

    def act(obs: Any) -> Any:
        seen = np.atleast_2d(obs)[:, 0].astype(int)
        calls.append(seen.tolist())
        if bad in seen:
            raise error
        actions = np.stack([seen, seen], axis=1) if "_chunk" in name else seen
        return actions if name.endswith("_batch") else actions[0]

    return act


@pytest.mark.parametrize("name", CORNER_NAMES)
def test_a_row_that_raises_fails_alone(name: str) -> None:
    calls: list[list[float]] = []
    caller = caller_of(DISCRETE, horizon=2, **{name: refusing(name, 7, ValueError("odd"), calls)})
    prediction = caller.predict(column(3, 7, 5), contexts(0, 1, 2))
    assert list(prediction.failures) == [1]
    failure = prediction.failures[1]
    asked = "1, 1" if name.endswith("_batch") else "1"
    assert failure.message == f"ValueError: odd (in {name}, input float32[{asked}])"
    assert (failure.phase, failure.detail.split(" in ")[-1]) == ("policy", "act")
    assert np.asarray(prediction.actions)[[0, 2]].ravel().tolist() == (
        [3, 3, 5, 5] if "_chunk" in name else [3, 5]
    )
    assert calls == ([[3, 7, 5]] if name.endswith("_batch") else []) + [[3], [7], [5]]


@pytest.mark.parametrize("name", ["predict", "predict_chunk"])
def test_a_number_that_fits_no_action_leaves_its_neighbours_exact(name: str) -> None:
    """Together int64 and uint64 become floats: of 2**60 + 1 that would be 2**60, and of its type another."""
    large, misfit = 2**60 + 1, np.uint64(2**64 - 1)

    def act(obs: Any) -> Any:
        answer = misfit if obs[0] == 7 else np.int64(large)
        return np.array([answer, answer]) if "_chunk" in name else answer

    prediction = caller_of(spaces.Discrete(2**61), horizon=2, **{name: act}).predict(
        column(3, 7, 5), contexts(0, 1, 2)
    )
    assert list(prediction.failures) == [1]
    assert f"action {2**64 - 1} is outside" in prediction.failures[1].message
    actions = np.asarray(prediction.actions)
    assert actions.dtype == np.int64
    assert set(actions[[0, 2]].ravel().tolist()) == {large}


@pytest.mark.parametrize("name", CORNER_NAMES)
def test_a_single_row_that_raises_is_not_asked_twice(name: str) -> None:
    calls: list[list[float]] = []
    caller = caller_of(DISCRETE, horizon=2, **{name: refusing(name, 7, ValueError("odd"), calls)})
    prediction = caller.predict(column(7), contexts(0))
    assert (calls, prediction.actions, list(prediction.failures)) == ([[7]], None, [0])


@pytest.mark.parametrize("name", CORNER_NAMES)
def test_an_exception_that_cannot_be_shown_is_a_failure_all_the_same(name: str) -> None:
    prediction = caller_of(DISCRETE, **{name: refusing(name, 7, UnprintableError(), [])}).predict(
        column(7), contexts(0)
    )
    assert prediction.failures[0].message.startswith("UnprintableError: (its message cannot be shown)")


@pytest.mark.parametrize("name", CORNER_NAMES)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()], ids=type)
def test_a_wish_to_stop_is_no_failure_of_a_row(name: str, error: BaseException) -> None:
    caller = caller_of(DISCRETE, **{name: refusing(name, 7, error, [])})
    with pytest.raises(type(error)) as raised:
        caller.predict(column(3, 7), contexts(0, 1))
    assert raised.value is error


@pytest.mark.parametrize(
    ("name", "horizon", "good", "bad", "words"),
    [
        ("predict", 1, 3, [1, 2], "wrong shape: expected int64(), got int64(2,)"),
        ("predict", 1, 3, 0.5, "takes whole numbers, got float64"),
        ("predict", 1, 3, None, "is not an array of numbers"),
        ("predict", 1, 3, 99, "action 99 is outside Discrete(20)"),
        ("predict", 1, 3, 2**70, "is not an array of numbers"),
        ("predict_chunk", 2, [3, 3], 3, "wrong shape: expected int64(H,), got int64()"),
        ("predict_chunk", 2, [3, 3], [[3], [3]], "wrong shape: expected int64(H,), got int64(2, 1)"),
        ("predict_chunk", 2, [3, 3], np.array([], int), "the chunk is empty"),
        ("predict_chunk", 2, [3, 3], [3, 99], "action 99 is outside Discrete(20)"),
        ("predict_chunk", 2, [3, 3], [[3], [3, 3]], "is ragged"),
    ],
)
def test_a_row_whose_answer_does_not_fit_fails_alone(
    name: str, horizon: int, good: Any, bad: Any, words: str
) -> None:
    caller = caller_of(DISCRETE, horizon=horizon, **{name: lambda obs: bad if obs[0] == 7 else good})
    prediction = caller.predict(column(3, 7, 5), contexts(0, 1, 2))
    assert list(prediction.failures) == [1]
    assert words in prediction.failures[1].message
    assert prediction.failures[1].phase == "policy"
    np.testing.assert_array_equal(np.asarray(prediction.actions)[[0, 2]], [good, good])


def test_what_lies_beyond_the_horizon_is_neither_checked_nor_counted() -> None:
    caller = caller_of(UNEVEN, horizon=1, predict_chunk=lambda obs: np.float32([[0, 5], [99, 5], [np.nan, 5]]))
    prediction = caller.predict(column(0), contexts(0))
    assert (prediction.actions.tolist(), prediction.clipped, dict(prediction.failures)) == ([[[0, 5]]], None, {})
    assert prediction.planned == 3


@pytest.mark.parametrize("name", ["predict", "predict_batch"])
def test_a_number_beyond_the_dtype_fails_the_row_that_gave_it(name: str) -> None:
    """As one does that is merely beyond the space; whether lanes ask together must not matter."""
    answers = np.array([[0, 1], [300, 1]])
    act = {"predict": lambda obs: answers[int(obs[0])], "predict_batch": lambda obs: answers}[name]
    prediction = caller_of(spaces.MultiBinary(2), **{name: act}).predict(column(0, 1), contexts(0, 1))
    assert list(prediction.failures) == [1]
    assert "300" in prediction.failures[1].message or "does not fit" in prediction.failures[1].message
    assert prediction.actions[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("predict_batch", np.array([0]), "expected int64(3,), got int64(1,)"),
        ("predict_batch", np.zeros((3, 1), int), "expected int64(3,), got int64(3, 1)"),
        ("predict_batch", 0, "expected int64(3,), got int64()"),
        ("predict_batch", [0.0, 1.0, 2.0], "takes whole numbers, got float64"),
        ("predict_batch", [[0], [1, 2], [3]], "is ragged"),
        ("predict_batch", None, "is not an array of numbers"),
        ("predict_chunk_batch", np.zeros((2, 4), int), "expected int64(3, H), got int64(2, 4)"),
        ("predict_chunk_batch", np.zeros(3, int), "expected int64(3, H), got int64(3,)"),
        ("predict_chunk_batch", np.zeros((3, 0), int), "the chunk is empty"),
        ("predict_chunk_batch", [[0, 1], [0, 1]], "expected int64(3, H), got int64(2, 2)"),
        ("predict_chunk_batch", [[0, 1], [], [1]], "empty"),
        ("predict_chunk_batch", [np.array(0), np.array(1), np.array(2)], "expected int64(3, H), got int64(3,)"),
        ("predict_chunk_batch", [0, [1, 2], [1, 2]], "expected int64(H,), got int64()"),
        ("predict_chunk_batch", [np.array(0), [1, 2], [1, 2]], "expected int64(H,), got int64()"),
    ],
)
def test_an_answer_for_all_rows_that_does_not_fit_is_a_misfit_of_the_corner(
    name: str, answer: Any, words: str
) -> None:
    caller = caller_of(DISCRETE, horizon=2, **{name: lambda obs: answer})
    with pytest.raises(ActionError) as raised:
        caller.predict(column(0, 1, 2), contexts(0, 1, 2))
    assert words in raised.value.cause
    assert raised.value.where == f"{name} of the policy"


@pytest.mark.parametrize(
    "space",
    [DISCRETE, UNEVEN, spaces.Dict({"a": DISCRETE}), spaces.Tuple((DISCRETE, UNEVEN))],
    ids=["discrete", "box", "dict", "tuple"],
)
def test_an_empty_list_is_called_an_empty_chunk(space: spaces.Space[Any]) -> None:
    prediction = caller_of(space, horizon=2, predict_chunk=lambda obs: []).predict(column(0), contexts(0))
    assert "empty" in prediction.failures[0].message


class NeedsGradient:
    """A tensor that numpy may not read."""

    def __len__(self) -> int:
        return 2

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise RuntimeError("requires grad")


@pytest.mark.parametrize("name", CORNER_NAMES)
def test_an_answer_that_raises_when_it_is_read_is_the_policy_s_fault(name: str) -> None:
    caller = caller_of(DISCRETE, horizon=2, **{name: lambda obs: NeedsGradient()})
    try:
        failures = caller.predict(column(0, 1), contexts(0, 1)).failures
    except ActionError as error:
        messages = [error.cause, error.cause]
    else:
        messages = [failures[0].message, failures[1].message]
    assert all("NeedsGradient" in message or "requires grad" in message for message in messages)


@pytest.mark.parametrize("name", ["predict_chunk", "predict_chunk_batch"])
def test_a_planned_action_that_is_never_executed_changes_no_type(name: str) -> None:
    """300 is no byte, so the chunk is left as it came; but what the environment gets of it is bytes."""
    plan = np.array([[1, 2], [300, 0]])
    caller = caller_of(
        spaces.Box(0, 255, (2,), np.uint8),
        horizon=1,
        **{name: lambda obs: np.stack([plan] * len(obs)) if name.endswith("_batch") else plan},
    )
    prediction = caller.predict(column(3, 7), contexts(0, 1))
    assert not prediction.failures
    assert np.asarray(prediction.actions).dtype == np.uint8
    assert np.asarray(prediction.actions).tolist() == [[[1, 2]], [[1, 2]]]
