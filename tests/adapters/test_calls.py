"""What every corner gives for good and bad actions, next to plain numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import ACTION_SPACES, DlpackOnly, Tensor, caller_of, column, contexts, leaf_arrays, rows_of
from gymnasium import spaces
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlmesh_adapters.corners import CORNER_NAMES
from rlmesh_adapters.predictions import Prediction


def raw_actions(space: spaces.Space[Any], lead: tuple[int, int], rng: np.random.Generator) -> Any:
    """Return actions (M, H, ...), most of them members; some clipped, some not finite, some out of range."""
    if isinstance(space, spaces.Dict):
        return {name: raw_actions(part, lead, rng) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(raw_actions(part, lead, rng) for part in space.spaces)
    shape = (*lead, *space.shape)
    if isinstance(space, spaces.Box):
        values = rng.normal(1, 1.5, shape).astype(space.dtype)
        odd = rng.random(shape) < 0.02
        values[odd] = rng.choice([np.nan, np.inf, -np.inf], int(odd.sum()))
        return values
    space.seed(int(rng.integers(2**31)))
    values = np.array([space.sample() for _ in range(lead[0] * lead[1])]).reshape(shape)
    return np.where(rng.random(shape) < 0.05, rng.choice([-9, 9], shape), values).astype(values.dtype)


def verdicts(space: spaces.Space[Any], actions: Any) -> list[tuple[Any, Any, Any]]:
    """Return for every leaf the values that are executed (M, H, ...), which are clipped, which are refused."""
    if isinstance(space, spaces.Dict):
        return [found for name in sorted(space.spaces) for found in verdicts(space[name], actions[name])]
    if isinstance(space, spaces.Tuple):
        return [
            found for part, action in zip(space.spaces, actions, strict=True) for found in verdicts(part, action)
        ]
    axes = tuple(range(2, actions.ndim))
    if isinstance(space, spaces.Box):
        outside = ((actions < space.low) | (actions > space.high)).any(axis=axes)
        return [(np.clip(actions, space.low, space.high), outside, ~np.isfinite(actions).all(axis=axes))]
    if isinstance(space, spaces.MultiBinary):
        low, high = 0, 1
    else:
        low, high = space.start, space.start + (space.n if isinstance(space, spaces.Discrete) else space.nvec) - 1
    refused = ((actions < low) | (actions > high)).any(axis=axes)
    return [(actions, np.zeros_like(refused), refused)]


def answering(name: str, actions: Any) -> Any:
    """Return a corner that answers from (M, H, ...) actions; the observation is the row's number."""
    if name == "predict":
        return lambda obs: rows_of(actions, (int(obs[0]), 0))
    if name == "predict_chunk":
        return lambda obs: rows_of(actions, int(obs[0]))
    if name == "predict_batch":
        return lambda obs: rows_of(actions, (obs[:, 0].astype(int), 0))
    return lambda obs: rows_of(actions, obs[:, 0].astype(int))


def assert_row(
    prediction: Prediction, place: int, row: int, expected: list[tuple[Any, Any, Any]], used: int | None
) -> None:
    """used: steps of a chunk, None for a single action."""
    steps = slice(0, used) if used is not None else 0
    refused = any(np.any(bad[row, steps]) for _, _, bad in expected)
    assert (place in prediction.failures) == refused
    if refused:
        return
    for leaf, (values, _, _) in zip(leaf_arrays(prediction.actions), expected, strict=True):
        np.testing.assert_array_equal(leaf[place] if used is None else leaf[place, :used], values[row, steps])
        assert leaf.dtype == values.dtype
    clips = np.logical_or.reduce([flag[row, steps] for _, flag, _ in expected])
    found = False if prediction.clipped is None else prediction.clipped[place]
    np.testing.assert_array_equal(np.broadcast_to(found, np.shape(clips)), clips)


@pytest.mark.parametrize("space", ACTION_SPACES.values(), ids=ACTION_SPACES.keys())
@pytest.mark.parametrize("name", CORNER_NAMES)
@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 5), length=st.integers(1, 4), horizon=st.integers(1, 4))
@example(seed=0, rows=2, length=3, horizon=2)
@settings(deadline=None, max_examples=12)
def test_a_row_gets_the_same_alone_and_in_company_and_it_is_what_numpy_says(
    space: spaces.Space[Any], name: str, seed: int, rows: int, length: int, horizon: int
) -> None:
    actions = raw_actions(space, (rows, length), np.random.default_rng(seed))
    expected = verdicts(space, actions)
    caller = caller_of(space, horizon=horizon, **{name: answering(name, actions)})
    used = min(length, horizon) if "_chunk" in name else None
    episodes, numbers = contexts(*range(rows)), column(*range(rows))
    together = caller.predict(numbers, episodes)
    for row in range(rows):
        alone = caller.predict(numbers[row : row + 1], episodes[row : row + 1])
        for prediction, place, count in ((together, row, rows), (alone, 0, 1)):
            assert_row(prediction, place, row, expected, used)
            if used is not None and prediction.actions is not None:
                assert prediction.lengths == (None if used == horizon else [used] * count)
                assert prediction.planned == length


@pytest.mark.parametrize("name", ["predict_chunk", "predict_chunk_batch"])
@pytest.mark.parametrize("kind", ["array", "dict", "nested dict", "tuple"])
@given(lengths=st.lists(st.integers(1, 5), min_size=1, max_size=5), horizon=st.integers(1, 4))
@settings(deadline=None, max_examples=20)
def test_ragged_chunks_keep_each_row_s_own_length(name: str, kind: str, lengths: list[int], horizon: int) -> None:
    leaf = spaces.Box(0, 99, (1,), np.float64)
    shaped = {
        "array": (leaf, lambda chunk: chunk),
        "dict": (spaces.Dict({"a": leaf}), lambda chunk: {"a": chunk}),
        "nested dict": (spaces.Dict({"a": spaces.Dict({"b": leaf})}), lambda chunk: {"a": {"b": chunk}}),
        "tuple": (spaces.Tuple((leaf, leaf)), lambda chunk: (chunk, chunk)),
    }
    space, shape = shaped[kind]
    chunks = [shape(10.0 * row + np.arange(length)[:, None]) for row, length in enumerate(lengths)]
    answer = {"predict_chunk": lambda obs: chunks[int(obs[0])], "predict_chunk_batch": lambda obs: chunks}[name]
    prediction = caller_of(space, horizon=horizon, **{name: answer}).predict(
        column(*range(len(lengths))), contexts(*range(len(lengths)))
    )
    used = [min(length, horizon) for length in lengths]
    assert (prediction.lengths or [horizon] * len(used)) == used
    assert prediction.planned == lengths[0]
    assert not prediction.failures
    for row, length in enumerate(used):
        for found in leaf_arrays(prediction.actions):
            assert found[row, :length, 0].tolist() == [10 * row + step for step in range(length)]


@pytest.mark.parametrize("lengths", [(2, 2), (2, 1), (2,)], ids=["even", "ragged", "one row"])
@pytest.mark.parametrize(
    "space",
    [
        spaces.Dict({"b": spaces.Discrete(9)}),
        spaces.Tuple((spaces.Discrete(9),)),
        spaces.Discrete(9),
    ],
    ids=["dict", "tuple", "discrete"],
)
def test_chunks_may_be_lists_of_single_actions(space: spaces.Space[Any], lengths: tuple[int, ...]) -> None:
    def action(number: int) -> Any:
        if isinstance(space, spaces.Dict):
            return {"b": number}
        return (number,) if isinstance(space, spaces.Tuple) else number

    answer = [[action(3 * row + step) for step in range(length)] for row, length in enumerate(lengths)]
    caller = caller_of(space, horizon=2, predict_chunk_batch=lambda obs: answer)
    prediction = caller.predict(column(*lengths), contexts(*range(len(lengths))))
    assert (prediction.lengths or [2] * len(lengths)) == list(lengths)
    for row, length in enumerate(lengths):
        (leaf,) = leaf_arrays(prediction.actions)
        assert leaf[row, :length].tolist() == [3 * row + step for step in range(length)]


@pytest.mark.parametrize("wrap", [Tensor, lambda values: Tensor(values, half=True), DlpackOnly, np.ndarray.tolist])
@pytest.mark.parametrize("name", CORNER_NAMES)
def test_tensors_of_any_library_are_actions(name: str, wrap: Any) -> None:
    actions = np.float32([[[0, 1], [0.5, 2]], [[1, 3], [-1, 4]]])
    horizon = 2 if "_chunk" in name else 1
    plain = answering(name, actions)
    caller = caller_of(ACTION_SPACES["box"], horizon=horizon, **{name: lambda obs: wrap(plain(obs))})
    prediction = caller.predict(column(0, 1), contexts(0, 1))
    assert not prediction.failures
    np.testing.assert_array_equal(prediction.actions, actions if horizon == 2 else actions[:, 0])


def test_a_list_of_tensors_one_a_row_is_a_batch() -> None:
    caller = caller_of(spaces.Discrete(9), predict_batch=lambda obs: [Tensor(3), Tensor(5)])
    assert caller.predict(column(0, 1), contexts(0, 1)).actions.tolist() == [3, 5]


def test_an_unbatched_corner_sees_one_observation_in_the_structure_of_its_space() -> None:
    seen: list[Any] = []
    caller = caller_of(spaces.Discrete(2), predict=lambda obs: seen.append(obs) or 0)
    batch = {"words": ["a", "b"], "arm": (np.float32([[1, 2], [3, 4]]), np.array([5, 6]))}
    caller.predict(batch, contexts(0, 1))
    np.testing.assert_equal(
        seen,
        [
            {"words": "a", "arm": (np.float32([1, 2]), np.int64(5))},
            {"words": "b", "arm": (np.float32([3, 4]), np.int64(6))},
        ],
    )


def test_the_seconds_of_a_call_are_those_inside_the_policy() -> None:
    now = [0.0]

    def act(obs: Any) -> Any:
        now[0] += 3.0
        return np.zeros(len(obs), int)

    caller = caller_of(spaces.Discrete(2), clock=lambda: now[0], predict_batch=act)
    assert [caller.predict(column(0, 1), contexts(0, 1)).seconds for _ in range(2)] == [3.0, 3.0]


def test_repeated_calls_are_counted_into_the_seconds() -> None:
    now = [0.0]

    def act(obs: Any) -> Any:
        now[0] += 1.0
        if len(obs) > 1:
            raise ValueError("one at a time")
        return np.zeros(1, int)

    caller = caller_of(spaces.Discrete(2), clock=lambda: now[0], predict_batch=act)
    assert caller.predict(column(0, 1), contexts(0, 1)).seconds == 3.0
