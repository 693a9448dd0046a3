"""Padding: the policy sees one number of rows, the lanes get their own answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts

from rlmesh_adapters.contract import RouteContract
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import LoadError
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
