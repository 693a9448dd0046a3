"""Chance told from memory by the order of answers: the rates at which that goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

from rlmesh_adapters.probe.answers import Answer
from rlmesh_adapters.probe.series import IS_MEMORY, dependence

COUNT = 128
DRAWS = {
    "normal": lambda rng, size: rng.normal(size=size),
    "uniform": lambda rng, size: rng.random(size),
    "heavy tails": lambda rng, size: rng.standard_cauchy(size),
    "two values": lambda rng, size: rng.integers(2, size=size).astype(float),
    "one in three": lambda rng, size: (rng.random(size) < 0.33).astype(float),
    "one in six": lambda rng, size: (rng.random(size) < 0.17).astype(float),
    "one in fifty": lambda rng, size: (rng.random(size) < 0.02).astype(float),
}


def strength(numbers: np.ndarray) -> float:
    return dependence([Answer(row, False, "") for row in numbers])[0]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("width", [1, 7, 50])
def test_chance_is_never_called_memory(draw, width):
    rng = np.random.default_rng(1)
    found = [strength(draw(rng, (COUNT, width))) for _ in range(100)]
    assert max(found) < IS_MEMORY


def drift(rng, noise):
    return np.arange(COUNT) / COUNT + noise * rng.normal(size=COUNT)


def alternate(rng, noise):
    return np.arange(COUNT) % 2 + noise * rng.normal(size=COUNT)


def period_three(rng, noise):
    return (np.arange(COUNT) % 3 == 0) + noise * rng.normal(size=COUNT)


def wander(rng, noise):
    return np.cumsum(rng.normal(size=COUNT)) + noise * rng.normal(size=COUNT)


@pytest.mark.parametrize("memory", [drift, alternate, period_three, wander])
def test_memory_under_some_noise_is_found_nineteen_times_in_twenty(memory):
    rng = np.random.default_rng(2)
    found = [strength(memory(rng, 0.1)[:, None]) > IS_MEMORY for _ in range(200)]
    assert np.mean(found) >= 0.95


def test_steady_answers_and_too_few_have_no_order():
    assert strength(np.ones((COUNT, 2))) == 0
    assert strength(np.arange(7.0)[:, None]) == 0
