from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.errors import Failure
from rlmesh_adapters.predictions import Prediction, merge, padded


def failure(row: int) -> Failure:
    return Failure(phase="policy", message=f"row {row}")


@st.composite
def partitions(draw: Any) -> tuple[int, list[list[int]], set[int]]:
    """Draw a number of rows, disjoint sets of them, and the rows that are in none."""
    rows = draw(st.integers(1, 7))
    owner = draw(st.lists(st.integers(-1, 2), min_size=rows, max_size=rows))
    parts = [[row for row in range(rows) if owner[row] == part] for part in range(3)]
    parts = draw(st.permutations([draw(st.permutations(part)) for part in parts if part]))
    return rows, list(parts), {row for row in range(rows) if owner[row] == -1}


@given(partition=partitions(), seed=st.integers(0, 10**6), nested=st.booleans())
@settings(deadline=None, max_examples=80)
def test_each_row_gets_what_its_own_part_answered(
    partition: tuple[int, list[list[int]], set[int]], seed: int, nested: bool
) -> None:
    rows, parts, missing = partition
    rng = np.random.default_rng(seed)
    predictions, flags, failed = [], np.zeros(rows, bool), set(missing)
    for part in parts:
        clips, answers = rng.random() < 0.5, rng.random() < 0.8
        mask = rng.random(len(part)) < 0.5
        bad = [place for place in range(len(part)) if rng.random() < 0.2 or not answers]
        failed |= {part[place] for place in bad}
        if clips and answers:
            flags[part] = mask
        leaf = np.array(part, float) * 10
        actions = ({"a": leaf, "b": (leaf + 1,)} if nested else leaf) if answers else None
        failures = {place: failure(part[place]) for place in bad}
        predictions.append(
            (part, Prediction(actions, clipped=mask if clips else None, failures=failures, seconds=2.0))
        )
    merged = merge(rows, predictions, {row: failure(row) for row in missing}, is_chunked=False)
    assert dict(merged.failures) == {row: failure(row) for row in failed}
    assert merged.seconds == 2.0 * len(parts)
    for row in set(range(rows)) - failed:
        leaf = merged.actions["a"] if nested else merged.actions
        assert leaf[row] == 10 * row
        assert not nested or merged.actions["b"][0][row] == 10 * row + 1
        assert bool(merged.clipped is not None and merged.clipped[row]) == flags[row]


@given(partition=partitions(), horizon=st.integers(1, 4), seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=80)
def test_each_row_of_a_chunk_keeps_its_length_and_flags(
    partition: tuple[int, list[list[int]], set[int]], horizon: int, seed: int
) -> None:
    """A part tells its lengths only where they fall short of the horizon."""
    rows, parts, missing = partition
    rng = np.random.default_rng(seed)
    used, flags, predictions = [horizon] * rows, np.zeros((rows, horizon), bool), []
    for part in parts:
        longest = int(rng.integers(1, horizon + 1))
        lengths = (
            [int(rng.integers(1, longest + 1)) for _ in part] if rng.random() < 0.5 else [longest] * len(part)
        )
        mask = rng.random((len(part), longest)) < 0.5
        clips = rng.random() < 0.6
        for place, row in enumerate(part):
            used[row] = lengths[place]
            flags[row, :longest] = mask[place] & clips
        actions = 10.0 * np.array(part)[:, None] + np.arange(longest)
        told = None if lengths == [horizon] * len(part) else lengths
        predictions.append((part, Prediction(actions, told, mask if clips else None, planned=part[0])))
    merged = merge(rows, predictions, {row: failure(row) for row in missing}, is_chunked=True)
    assert dict(merged.failures) == {row: failure(row) for row in missing}
    for row in set(range(rows)) - missing:
        length = used[row]
        assert (horizon if merged.lengths is None else merged.lengths[row]) == length
        assert merged.actions[row, :length].tolist() == [10 * row + step for step in range(length)]
        found = [False] * length if merged.clipped is None else merged.clipped[row, :length].tolist()
        assert found == flags[row, :length].tolist()
        assert row != 0 or merged.planned == next(part[0] for part in parts if 0 in part)


def test_nothing_is_said_of_lengths_when_all_chunks_fill_the_horizon() -> None:
    parts = [([row], Prediction(np.zeros((1, 3)), planned=8)) for row in range(2)]
    merged = merge(2, parts, {}, is_chunked=True)
    assert (merged.lengths, merged.clipped, merged.planned) == (None, None, 8)


@pytest.mark.parametrize("is_chunked", [True, False])
def test_if_every_row_failed_there_are_no_actions(is_chunked: bool) -> None:
    part = ([0, 2], Prediction(None, failures={0: failure(0), 1: failure(2)}, seconds=1.0))
    merged = merge(3, [part], {1: failure(1)}, is_chunked=is_chunked)
    assert (merged.actions, merged.seconds) == (None, 1.0)
    assert dict(merged.failures) == {row: failure(row) for row in range(3)}


@pytest.mark.parametrize(("length", "steps"), [(1, [5]), (2, [5, 6]), (4, [5, 6, 6, 6])])
def test_a_chunk_is_cut_or_its_last_action_repeated(length: int, steps: list[int]) -> None:
    chunk = {"a": np.array([[5.0], [6.0]]), "b": (np.array([5, 6]),)}
    np.testing.assert_equal(padded(chunk, length), {"a": np.array(steps, float)[:, None], "b": (np.array(steps),)})
