"""The records that lanes give back, and what counts as a reward."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.errors import Failure
from rlmesh_envs.steps import LaneResets, LaneSteps, bad_reward, scalar_reward


@settings(max_examples=60, deadline=None, derandomize=True)
@given(number=st.floats(width=32, allow_nan=False))
def test_a_number_is_the_same_reward_in_every_wrapping(number):
    wrapped = [number, np.float32(number), np.array(number), np.array([number], np.float32), [[number]]]
    assert [scalar_reward(one) for one in wrapped] == [number] * len(wrapped)
    assert {type(scalar_reward(one)) for one in wrapped} == {float}


@pytest.mark.parametrize(
    ("reward", "number"),
    [
        (True, 1.0),
        (np.bool_(False), 0.0),
        (np.int8(-5), -5.0),
        (2**53, 9007199254740992.0),
        (np.float16(0.1), 0.0999755859375),
        (Fraction(1, 4), 0.25),
        (np.array([[[3]]], np.uint8), 3.0),
        (np.float64(-0.0), 0.0),
    ],
)
def test_a_reward_is_a_float64_number(reward, number):
    assert scalar_reward(reward) == number
    assert type(scalar_reward(reward)) is float


@pytest.mark.parametrize("reward", [np.nan, np.inf, -np.inf, np.float32("nan"), np.array([np.inf])])
def test_what_is_not_finite_is_handed_on_and_described(reward):
    number = scalar_reward(reward)
    failure = bad_reward(number)
    assert failure.phase == "step"
    assert failure.message == f"the environment's reward is {float(np.asarray(reward).reshape(()))}"


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        (np.zeros(2), r"shape \(2,\).*one number"),
        (np.zeros((2, 1)), r"shape \(2, 1\).*one number"),
        ([], r"shape \(0,\).*one number"),
        ([[1.0], [2.0, 3.0]], "sequence"),
        ("abc", "number|float"),
        ("1.5", "number|float"),
        (b"1", "number|float"),
        (None, "number|float"),
        ({}, "number|float"),
        (1j, "number|float"),
        (np.complex128(1 + 2j), "number|float"),
        (object(), "number|float"),
        pytest.param(10**400, "number|float", id="huge"),
    ],
)
def test_what_is_not_one_number_is_no_reward(reward, words):
    with pytest.raises((TypeError, ValueError), match=words):
        scalar_reward(reward)


@pytest.mark.parametrize(
    "record",
    [
        LaneResets([1, 0], np.zeros((2, 3)), [{}, {"a": 1}], {1: Failure(phase="reset", message="x")}, "cast"),
        LaneSteps({"a": np.ones((1, 2))}, [1.5], [(0, True, False)], [{"b": "c"}]),
        LaneSteps(None, np.ones(2), [], None, {}, LaneResets([0], None, [{}])),
    ],
)
def test_a_record_comes_through_a_pipe_as_it_was(record):
    assert _plain(pickle.loads(pickle.dumps(record))) == _plain(record)


def _plain(value: Any) -> Any:
    if isinstance(value, (LaneResets, LaneSteps)):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def test_records_of_other_steps_do_not_share_their_failures():
    first, second = (LaneSteps(None, [], []) for _ in range(2))
    assert first.failures == {}
    assert first.failures is not second.failures
