from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlmesh_adapters.contract import RoutePlan
from rlmesh_adapters.corners import CORNER_NAMES, choose_corner, corner_names, parameter_names
from rlmesh_adapters.errors import LoadError

ONE, BATCH, CHUNK, BOTH = "predict", "predict_batch", "predict_chunk", "predict_chunk_batch"


def policy_with(*names: str) -> SimpleNamespace:
    return SimpleNamespace(**dict.fromkeys(names, lambda obs: 0))


@pytest.mark.parametrize(
    ("names", "at_one", "over_one"),
    [
        ((ONE,), ONE, ONE),
        ((BATCH,), BATCH, BATCH),
        ((CHUNK,), CHUNK, CHUNK),
        ((BOTH,), BOTH, BOTH),
        ((ONE, BATCH), BATCH, BATCH),
        ((ONE, CHUNK), ONE, CHUNK),
        ((ONE, BOTH), BOTH, BOTH),
        ((BATCH, CHUNK), BATCH, CHUNK),
        ((CHUNK, BOTH), BOTH, BOTH),
        ((ONE, BATCH, CHUNK, BOTH), BATCH, BOTH),
    ],
)
def test_chunks_are_preferred_over_a_horizon_of_one_and_whole_batches_at_one(
    names: tuple[str, ...], at_one: str, over_one: str
) -> None:
    assert choose_corner(policy_with(*names), 1).name == at_one
    assert choose_corner(policy_with(*names), 8).name == over_one


@pytest.mark.parametrize(
    ("name", "is_batched", "is_chunked"),
    [(ONE, False, False), (BATCH, True, False), (CHUNK, False, True), (BOTH, True, True)],
)
def test_the_name_of_a_corner_says_what_it_takes_and_gives(name: str, is_batched: bool, is_chunked: bool) -> None:
    corner = choose_corner(policy_with(name), 1)
    plan = RoutePlan(corner=name, corners=(name,), horizon=1, wants_context=False, sharing="shared")
    assert (corner.is_batched, corner.is_chunked, plan.is_chunked) == (is_batched, is_chunked, is_chunked)


def test_only_what_can_be_called_is_a_corner() -> None:
    policy = SimpleNamespace(predict_chunk_batch=lambda obs: 0, predict=lambda obs: 0, predict_batch="later")
    assert corner_names(policy) == (ONE, BOTH)
    assert corner_names(policy_with(*reversed(CORNER_NAMES))) == CORNER_NAMES


def test_a_policy_without_corners_is_told_all_their_names() -> None:
    with pytest.raises(LoadError) as raised:
        choose_corner(object(), 1)
    assert raised.value.cause == ("object has none of predict, predict_batch, predict_chunk, predict_chunk_batch")
    assert "predict(obs)" in raised.value.mend


class Methods:
    def predict(self, obs: Any, *, context: Any, state: Any = None) -> Any:
        """Take the context and a state."""


def positional(obs: Any, horizon: int = 1, /) -> None:
    """Cannot be given its horizon by name."""


def anything(obs: Any, **options: Any) -> None:
    """Asks for nothing by name."""


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        (lambda obs: 0, ("", False, False)),
        (lambda obs, horizon: 0, ("horizon", False, False)),
        (lambda obs, execution_horizon=1: 0, ("execution_horizon", False, False)),
        (lambda obs, horizon, execution_horizon: 0, ("horizon", False, False)),
        (Methods().predict, ("", True, True)),
        (positional, ("", False, False)),
        (anything, ("", False, False)),
        (lambda state: 0, ("", False, False)),
        (lambda context: 0, ("", False, False)),
        (lambda horizon, state: 0, ("", False, True)),
        (lambda *args, state: 0, ("", False, True)),
        (functools.partial(lambda state, obs: 0, 5), ("", False, False)),
        (functools.partial(lambda obs, context, state: 0, context=5), ("", True, True)),
    ],
)
def test_parameters_are_passed_by_name_and_only_if_asked_for(call: Any, asked: tuple[str, bool, bool]) -> None:
    corner = choose_corner(SimpleNamespace(predict=call), 1)
    assert (corner.horizon_name, corner.wants_context, corner.wants_state) == asked


class LyingSignature:
    __signature__ = "predict(obs)"

    def __call__(self, obs: Any) -> int:
        return 0


@pytest.mark.parametrize("call", [LyingSignature(), np.add], ids=["lying", "built-in"])
def test_a_callable_without_a_readable_signature_is_given_nothing_by_name(call: Any) -> None:
    assert not parameter_names(call) & {"horizon", "context", "state"}


async def later(obs: Any) -> int:
    return 0


def needing(obs: Any, gain: float, *, bias: float, horizon: int = 1) -> int:
    return 0


def by_position(obs: Any, state: Any, /) -> int:
    return 0


@pytest.mark.parametrize(
    ("call", "cause", "mend"),
    [
        (later, "`predict` is async", "plain function"),
        (lambda: 0, "`predict` takes no observation", "write `predict(obs)`"),
        (lambda *, obs: 0, "`predict` takes no observation", "write `predict(obs)`"),
        (needing, "`predict` needs `gain`, `bias`, which nobody passes", "context, state are passed by name"),
        (by_position, "`predict` needs `state`, which nobody passes", "give it a default"),
    ],
)
def test_a_corner_that_cannot_be_called_is_refused_with_its_place(call: Any, cause: str, mend: str) -> None:
    with pytest.raises(LoadError) as caught:
        choose_corner(SimpleNamespace(predict=call), 1)
    assert caught.value.cause == cause
    assert mend in caught.value.mend
    assert caught.value.where == f"{__file__}:{call.__code__.co_firstlineno}"
