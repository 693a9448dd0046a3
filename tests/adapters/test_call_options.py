"""What corners are given besides observations: horizon, contexts, and the state of each episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import caller_of, column, contexts
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.corners import CORNER_NAMES
from rlmesh_adapters.errors import ActionError

WIDE = spaces.Box(-1e6, 1e6, (), np.float64)


def shaped(name: str, values: list[float]) -> Any:
    """Return answers of the kind that a corner owes for these rows."""
    actions = np.array(values, float)
    if "_chunk" in name:
        actions = np.stack([actions, actions], axis=1)
    return actions if name.endswith("_batch") else actions[0]


def counting(name: str, seen: list[Any]) -> Any:
    """Return a corner that adds each row's observation to that episode's state, and answers with the sum."""

    def act(obs: Any, state: Any) -> Any:
        states = state if name.endswith("_batch") else [state]
        seen.append(list(states))
        values = np.atleast_2d(obs)[:, 0].tolist()
        sums = [(old or 0.0) + value for old, value in zip(states, values, strict=True)]
        return shaped(name, sums), (sums if name.endswith("_batch") else sums[0])

    return act


@pytest.mark.parametrize("name", CORNER_NAMES)
@given(rows=st.lists(st.lists(st.integers(0, 4), unique=True, min_size=1), min_size=1, max_size=6))
@settings(deadline=None, max_examples=25)
def test_each_episode_keeps_a_state_of_its_own_in_any_row_and_company(name: str, rows: list[list[int]]) -> None:
    caller = caller_of(WIDE, horizon=2, **{name: counting(name, [])})
    episodes, sums = contexts(*range(5)), [0.0] * 5
    for step, company in enumerate(rows):
        values = [float(10 * index + step + 1) for index in company]
        prediction = caller.predict(column(*values), tuple(episodes[index] for index in company))
        for place, index in enumerate(company):
            sums[index] += values[place]
            assert np.ravel(prediction.actions[place])[0] == sums[index]


@pytest.mark.parametrize("name", CORNER_NAMES)
def test_the_first_state_of_an_episode_is_none(name: str) -> None:
    seen: list[Any] = []
    caller = caller_of(WIDE, horizon=2, **{name: counting(name, seen)})
    caller.predict(column(1), contexts(0))
    caller.predict(column(1), contexts(1))
    assert seen == [[None], [None]]


def test_states_may_come_stacked() -> None:
    def act(obs: Any, state: Any) -> Any:
        stacked = np.stack([np.zeros(2) if one is None else one for one in state]) + obs
        return stacked[:, 0], stacked

    caller = caller_of(WIDE, predict_batch=act)
    caller.predict(column(1, 2), contexts(0, 1))
    assert caller.predict(column(10, 20), contexts(1, 0)).actions.tolist() == [12, 21]


@pytest.mark.parametrize("name", CORNER_NAMES)
@pytest.mark.parametrize("answer", [3, [3, None], (3,), (3, None, None)], ids=repr)
def test_a_corner_that_takes_a_state_must_return_one(name: str, answer: Any) -> None:
    caller = caller_of(WIDE, horizon=2, **{name: lambda obs, state: answer})
    words = f"a corner that takes `state` returns (action, state), got {type(answer).__name__}"
    if name.endswith("_batch"):
        with pytest.raises(ActionError) as raised:
            caller.predict(column(0), contexts(0))
        assert raised.value.cause == words
    else:
        assert caller.predict(column(0), contexts(0)).failures[0].message.startswith(words)


@pytest.mark.parametrize("states", [[5.0], [5.0, 6.0, 7.0], None, 5.0, ()], ids=repr)
def test_a_wrong_number_of_states_is_a_misfit_and_changes_no_state(states: Any) -> None:
    """Asking again row by row would hide the fault, and step some states twice."""
    given_states: list[Any] = []

    def act(obs: Any, state: Any) -> Any:
        given_states.append(list(state))
        return np.zeros(len(obs)), states

    caller = caller_of(WIDE, predict_batch=act)
    with pytest.raises(ActionError, match="state"):
        caller.predict(column(0, 1), contexts(0, 1))
    assert given_states == [[None, None]]
    assert not caller.states


def test_a_batch_that_raises_is_repeated_with_the_states_it_had() -> None:
    seen: list[Any] = []
    count = counting("predict_batch", seen)

    def act(obs: Any, state: Any) -> Any:
        if len(obs) > 1 and obs[0, 0] == 7:
            raise ValueError("no company")
        return count(obs, state)

    caller = caller_of(WIDE, predict_batch=act)
    caller.predict(column(1, 2), contexts(0, 1))
    assert caller.predict(column(7, 8), contexts(0, 1)).actions.tolist() == [8, 10]
    assert seen == [[None, None], [1.0], [2.0]]


def test_a_row_that_raises_keeps_the_state_it_had() -> None:
    count = counting("predict", [])

    def act(obs: Any, state: Any) -> Any:
        if obs[0] == 7:
            raise ValueError("no")
        return count(obs, state)

    caller = caller_of(WIDE, predict=act)
    caller.predict(column(1, 2), contexts(0, 1))
    assert list(caller.predict(column(7, 3), contexts(0, 1)).failures) == [0]
    assert caller.predict(column(5, 5), contexts(0, 1)).actions.tolist() == [6, 10]


@pytest.mark.parametrize("parameter", ["horizon", "execution_horizon"])
@pytest.mark.parametrize("name", CORNER_NAMES)
def test_the_horizon_is_given_under_the_name_that_asks_for_it(name: str, parameter: str) -> None:
    seen: list[int] = []

    def act(obs: Any, *, horizon: int) -> Any:
        seen.append(horizon)
        return shaped(name, [0.0, 0.0])

    def act_by_the_longer_name(obs: Any, execution_horizon: int = -1) -> Any:
        return act(obs, horizon=execution_horizon)

    chosen = act if parameter == "horizon" else act_by_the_longer_name
    caller_of(WIDE, horizon=2, **{name: chosen}).predict(column(0, 1), contexts(0, 1))
    assert set(seen) == {2}


@pytest.mark.parametrize("name", CORNER_NAMES)
def test_batch_corners_get_a_list_of_contexts_and_the_others_one(name: str) -> None:
    seen: list[Any] = []

    def act(obs: Any, context: Any) -> Any:
        seen.append(context)
        return shaped(name, [0.0] * len(np.atleast_2d(obs)))

    episodes = contexts(4, 2)
    caller_of(WIDE, horizon=2, **{name: act}).predict(column(0, 1), episodes)
    assert seen == ([list(episodes)] if name.endswith("_batch") else list(episodes))
