"""Padding: the policy sees one number of rows, the lanes get their own answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts

from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.corners import Corner
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import LoadError
from rlmesh_adapters.padding import with_rows
from rlmesh_adapters.spaces import SpaceView, frozen_array


def free(width: int) -> SpaceView:
    low, high = (frozen_array(bound, shape=(width,), dtype=np.float64) for bound in (-1e9, 1e9))
    return SpaceView(kind="box", shape=(width,), dtype=np.dtype(np.float64), low=low, high=high)


class Seeing:
    def __init__(self) -> None:
        self.rows: list[int] = []

    def predict_batch(self, obs: Any, context: Any) -> Any:
        self.rows.append(len(obs))
        assert len(context) == len(obs)
        return obs + np.array([known.index for known in context])[:, None]


class Passing:
    def predict_batch(self, obs: Any, state: Any) -> Any:
        assert len(state) == len(obs) == 5
        counts = [0 if known is None else known + 1 for known in state]
        return obs + np.array(counts)[:, None], counts


def engine_of(policy: Any, **options: Any) -> AdapterEngine:
    engine = AdapterEngine()
    contract = RouteContract(observation=free(2), action=free(2), num_lanes=3, **options)
    engine.configure("route", lambda: policy, contract)
    return engine


@pytest.mark.parametrize("asked", [1, 2, 3])
def test_calls_have_the_same_rows_and_answers_are_those_of_the_asking_ones(asked):
    policy = Seeing()
    engine = engine_of(policy, batch_rows=5)
    rows = np.arange(2.0 * asked).reshape(asked, 2)
    found = engine.predict("route", rows, contexts(*range(asked)))
    assert found.actions.tolist() == (rows + np.arange(asked)[:, None]).tolist()
    assert policy.rows == [5]


def test_states_of_padded_rows_are_dropped():
    engine = engine_of(Passing(), batch_rows=5)
    rows = np.zeros((2, 2))
    for count in range(3):
        assert engine.predict("route", rows, contexts(0, 1)).actions.tolist() == [[count, count]] * 2


def test_fewer_rows_than_lanes_are_refused():
    with pytest.raises(LoadError, match="2 rows a call are fewer than 3 lanes"):
        engine_of(Seeing(), batch_rows=2)


def test_a_corner_without_batches_is_refused():
    class Single:
        def predict(self, obs: Any) -> Any:
            return obs

    with pytest.raises(LoadError, match="takes one observation at a time"):
        engine_of(Single(), batch_rows=4)


class Declared(Seeing):
    batch_rows: Any = 5


def test_rows_that_a_policy_declares_are_kept_without_a_word_of_the_route():
    policy = Declared()
    engine_of(policy).predict("route", np.zeros((2, 2)), contexts(0, 1))
    assert policy.rows == [5]


def test_what_the_route_says_of_rows_comes_first():
    policy = Declared()
    engine_of(policy, batch_rows=7).predict("route", np.zeros((2, 2)), contexts(0, 1))
    assert policy.rows == [7]


def test_declared_rows_that_are_fewer_than_the_lanes_name_both_ways_out():
    policy = Declared()
    policy.batch_rows = 2
    with pytest.raises(LoadError) as raised:
        engine_of(policy)
    assert raised.value.cause == "2 rows a call are fewer than 3 lanes"
    assert raised.value.where == "batch_rows of Declared"
    assert raised.value.mend == "use --num-envs 2 or fewer, or --batch-rows 3 or more"


@pytest.mark.parametrize("rows", [0, -1, True, 2.0, "8"])
def test_declared_rows_that_are_no_count_are_refused(rows):
    policy = Declared()
    policy.batch_rows = rows
    with pytest.raises(LoadError, match=f"batch_rows of Declared is {rows!r}, no count of rows"):
        engine_of(policy)


def test_declared_rows_that_cannot_be_read_are_an_error_of_loading():
    class Shy(Seeing):
        @property
        def batch_rows(self) -> int:
            raise KeyError("rows")

    with pytest.raises(LoadError, match="batch_rows of Shy cannot be read: KeyError"):
        engine_of(Shy())


def test_declared_rows_without_a_batched_corner_are_refused():
    class Single:
        batch_rows = 4

        def predict(self, obs: Any) -> Any:
            return obs

    with pytest.raises(LoadError) as raised:
        engine_of(Single())
    assert raised.value.mend == "give the policy predict_batch, or drop batch_rows"


@pytest.mark.parametrize("shape", [lambda rows: rows, list, lambda rows: {"a": rows}])
def test_more_rows_than_a_call_takes_are_asked_for_in_several(shape):
    """A probe asks for four rows at once, whatever the lanes are."""
    seen = []

    def call(obs: Any) -> Any:
        seen.append(len(obs))
        return shape(obs * 2)

    padded = with_rows(Corner(name="predict_batch", call=call), 3, 1).call
    rows = np.arange(14.0).reshape(7, 2)
    assert np.array_equal(_plain(padded(rows)), rows * 2)
    assert seen == [3, 3, 3]


def _plain(answer: Any) -> Any:
    return answer["a"] if isinstance(answer, dict) else np.array(answer)


def test_padded_rows_go_on_as_the_row_they_stand_for():
    """A policy that checks what it draws, and what it is given, finds nothing odd in them."""

    class Strict:
        def predict_batch(self, obs: Any, context: Any, state: Any) -> Any:
            drawn = [known.rng.normal() for known in context]
            turns = [0 if known is None else known["turn"] + 1 for known in state]
            assert len(drawn) == 4
            assert drawn[1:] == [drawn[1]] + [drawn[0]] * 2
            assert len({id(known) for known in context}) == 4
            assert turns == [context[0].step] * 4
            return obs, [{"turn": turn} for turn in turns]

    engine, episodes = engine_of(Strict(), batch_rows=4), contexts(0, 1)
    for step in range(3):
        for episode in episodes:
            episode.step = step
        assert not engine.predict("route", np.zeros((2, 2)), episodes).failures
