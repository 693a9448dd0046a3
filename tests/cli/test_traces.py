"""Fingerprints: what TraceBook keeps of an episode, against plain lists."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.roster import Roster
from rlmesh_adapters.spaces import SpaceView, frozen_array
from rlmesh_cli.fingerprints import start_hash
from rlmesh_cli.traces import TraceBook


def box(*shape: int, dtype: Any = np.float32, low: Any = -9, high: Any = 9) -> SpaceView:
    bounds = (frozen_array(bound, shape=shape, dtype=dtype) for bound in (low, high))
    return SpaceView(kind="box", shape=shape, dtype=np.dtype(dtype), low=next(bounds), high=next(bounds))


SPACES = {
    "number": box(dtype=np.int64, low=0),
    "vector": box(3),
    "matrix": box(2, 2, dtype=np.float64),
    "bytes": box(2, dtype=np.uint8, low=0, high=255),
    "nothing": box(0),
    # So large that a block holds few steps.
    "wide": box(256, 128),
    "tree": SpaceView(
        kind="dict",
        children=(("a", box(2)), ("b", SpaceView(kind="tuple", children=((0, box(dtype=np.int8)), (1, box(1)))))),
    ),
}


def draw(view: SpaceView, rng: np.random.Generator) -> Any:
    if view.kind == "dict":
        return {name: draw(child, rng) for name, child in view.children}
    if view.kind == "tuple":
        return tuple(draw(child, rng) for _, child in view.children)
    return rng.integers(0, 9, view.shape).astype(view.dtype)


def stacked(rows: list[Any]) -> Any:
    if isinstance(rows[0], dict):
        return {name: stacked([row[name] for row in rows]) for name in rows[0]}
    if isinstance(rows[0], tuple):
        return tuple(stacked(list(parts)) for parts in zip(*rows, strict=True))
    return np.stack(rows)


@dataclass
class Played:
    """One episode as plain lists."""

    actions: list[Any] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def total(self) -> float:
        total = 0.0
        for reward in self.rewards:
            total += reward
        return total


def roster(lanes: list[int]) -> Roster:
    return Roster(lanes, [EpisodeContext(f"ep-{lane + 1:06d}", lane, lane) for lane in lanes])


def record(book: TraceBook, company: Roster, steps: list[tuple[list[Any], Any]]) -> None:
    """Let the lanes of a roster make some steps together."""
    for actions, rewards in steps:
        book.open(company).add(stacked(actions), rewards)


def alone(view: SpaceView, played: Played) -> tuple[int, float, str]:
    """Return what a book of one lane says of the same episode, recorded for itself."""
    book, company = TraceBook(1, view), roster([0])
    book.begin(0)
    record(
        book,
        company,
        [([action], [reward]) for action, reward in zip(played.actions, played.rewards, strict=True)],
    )
    return book.end(0)


def bits(number: float) -> bytes:
    return struct.pack("<d", number)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_book_agrees_with_plain_lists_whatever_company_and_blocks(data):
    name = data.draw(st.sampled_from(sorted(SPACES)))
    view, lengths = SPACES[name], [1, 2, 7] if name == "wide" else [1, 2, 50, 600]
    # Many lanes are kept in another way than a few.
    num_lanes = data.draw(st.sampled_from([1, 2, 3, 40]))
    lengths = lengths[:3] if num_lanes > 3 else lengths
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    pool = [draw(view, rng) for _ in range(5)]
    book, running, checked, company = TraceBook(num_lanes, view), {}, [], roster([])
    for _ in range(data.draw(st.integers(1, 8))):
        for lane in range(num_lanes):
            if lane not in running and rng.random() < 2 / 3:
                book.begin(lane)
                running[lane] = Played()
        lanes = sorted(running)
        # The same lanes with other episodes are the same company, or a new one.
        is_same = company.lanes == tuple(lanes) and data.draw(st.booleans())
        company = company.playing(roster(lanes).episodes) if is_same else roster(lanes)
        for _ in range(data.draw(st.sampled_from([*lengths, max(1, book.room)])) if lanes else 0):
            actions = [pool[choice] for choice in rng.integers(0, 5, len(lanes))]
            rewards = rng.normal(0, 10.0 ** rng.integers(-9, 9), len(lanes))
            record(book, company, [(actions, rewards if rng.random() < 0.5 else rewards.tolist())])
            for lane, action, reward in zip(lanes, actions, rewards.tolist(), strict=True):
                running[lane].actions.append(action)
                running[lane].rewards.append(reward)
        share = data.draw(st.sampled_from([0.1, 0.5, 1.0]))
        for lane in lanes:
            if rng.random() < share:
                played, drop = running.pop(lane), bool(rng.random() < 0.5)
                ended = book.end(lane, drop_last=drop)
                checked.append((Played(played.actions[:-1], played.rewards[:-1]) if drop else played, ended))
    for lane, played in running.items():
        checked.append((played, book.end(lane)))
    for played, (length, total, trace) in checked:
        assert length == len(played.rewards)
        assert bits(total) == bits(played.total())
        assert trace == alone(view, played)[2]


@pytest.mark.parametrize("length", [1, 24, 25, 26, 511, 512, 513, 3000])
def test_return_is_the_sum_of_a_plain_loop_bit_for_bit(length):
    rewards = np.random.default_rng(length).normal(0, 1e3, length).tolist()
    played = Played([np.array(0)] * length, rewards)
    book = TraceBook(3, SPACES["number"])
    book.begin(1)
    record(book, roster([1]), [([np.array(0)], [reward]) for reward in rewards])
    assert bits(book.end(1)[1]) == bits(played.total())
    assert bits(alone(SPACES["number"], played)[1]) == bits(played.total())
    # Otherwise the sum would not depend on the order, and nothing would be tested.
    assert length < 500 or math.fsum(rewards) != played.total()


@pytest.mark.parametrize("length", [2, 40])
def test_rewards_of_minus_zero_add_up_as_in_a_plain_loop(length):
    played = Played([np.array(0)] * length, [-0.0] * length)
    assert bits(alone(SPACES["number"], played)[1]) == bits(0.0)


def test_episode_that_made_no_step_is_empty():
    book = TraceBook(2, SPACES["vector"])
    book.begin(0)
    assert book.end(0)[:2] == (0, 0.0)
    assert book.end(0)[2] == alone(SPACES["vector"], Played())[2]


def test_reward_of_a_dropped_step_does_not_reach_the_return():
    book = TraceBook(2, SPACES["number"])
    for lane in (0, 1):
        book.begin(lane)
    record(book, roster([0, 1]), [([np.array(0)] * 2, [1.0, 10.0]), ([np.array(0)] * 2, [math.nan, 20.0])])
    assert book.end(0, drop_last=True)[:2] == (1, 1.0)
    assert book.end(1)[:2] == (2, 30.0)


def test_arrays_that_are_used_again_are_copied():
    view = SPACES["vector"]
    book = TraceBook(2, view)
    actions, rewards = np.zeros((2, 3), np.float32), np.zeros(2)
    for lane in (0, 1):
        book.begin(lane)
    company = roster([0, 1])
    for step in range(3):
        actions[:], rewards[:] = step, step
        book.open(company).add(actions, rewards.tolist())
    told = Played([np.full(3, step, np.float32) for step in range(3)], [0.0, 1.0, 2.0])
    assert book.end(0) == book.end(1) == alone(view, told)


@pytest.mark.parametrize("order", ["fortran", "strided", "readonly", "reversed"])
def test_layout_in_memory_changes_no_hash(order):
    plain = np.arange(8, dtype=np.float64).reshape(2, 2, 2)
    other = {
        "fortran": np.asfortranarray(plain),
        "strided": np.repeat(plain, 2, axis=0)[::2],
        "readonly": plain.copy(),
        "reversed": plain[::-1].copy()[::-1],
    }[order]
    other.setflags(write=False)
    ends = []
    for actions in (plain, other):
        book = TraceBook(2, SPACES["matrix"])
        book.begin(0), book.begin(1)
        book.open(roster([0, 1])).add(actions, [1.0, 2.0])
        ends.append((book.end(0), book.end(1)))
    assert ends[0] == ends[1]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(["number", "vector", "bytes", "tree"]), st.integers(0, 9), st.data())
def test_another_action_or_reward_is_another_hash(name, seed, data):
    view, rng = SPACES[name], np.random.default_rng(seed)
    played = Played([draw(view, rng) for _ in range(5)], [1.0] * 5)
    place = data.draw(st.integers(0, 4))
    other = Played(list(played.actions), list(played.rewards))
    if data.draw(st.booleans()):
        other.rewards[place] = math.nextafter(1.0, 2.0)
    else:
        parts = played.actions[place]
        other.actions[place] = {**parts, "a": parts["a"] + 1} if name == "tree" else parts + 1
    assert alone(view, other)[2] != alone(view, played)[2]
    assert alone(view, Played(played.actions[:4], played.rewards[:4]))[2] != alone(view, played)[2]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8])
def test_neighbouring_whole_numbers_of_a_wide_space_have_different_hashes(dtype):
    info = np.iinfo(dtype)
    view = box(dtype=dtype, low=info.min, high=info.max)
    hashes = {alone(view, Played([np.array(value, dtype)], [0.0]))[2] for value in (info.max, info.max - 1, 0, 1)}
    assert len(hashes) == 4


def test_hash_is_sixteen_hex_digits():
    trace = alone(SPACES["number"], Played([np.array(1)], [1.0]))[2]
    assert len(trace) == len(start_hash(np.zeros(2), {})) == 16
    assert int(trace, 16) >= 0


DIFFERENT = [
    (np.zeros(2), {}),
    (np.zeros(2, np.float32), {}),
    (np.zeros((2, 1)), {}),
    (np.array([0.0, 1e-300]), {}),
    ({"a": np.zeros(2)}, {}),
    ({"b": np.zeros(2)}, {}),
    ((np.zeros(2), np.zeros(2)), {}),
    ("pick", {}),
    ("picks", {}),
    (None, {}),
    (np.zeros(2), {"a": 1}),
    (np.zeros(2), {"a": 1.0}),
    (np.zeros(2), {"a": "1"}),
    (np.zeros(2), {"a": True}),
    (np.zeros(2), {"a": None}),
    (np.zeros(2), {"a1": 1}),
    (np.zeros(2), {"a": 11}),
    (np.zeros(2), {"a": [1, 23]}),
    (np.zeros(2), {"a": [12, 3]}),
    (np.zeros(2), {"a": [[1], 2]}),
    (np.zeros(2), {"a": [[1, 2]]}),
    (np.zeros(2), {"a": {"b": 1}, "c": 2}),
    (np.zeros(2), {"a": {"b": 1, "c": 2}}),
    (np.zeros(2), {"a": b"x"}),
    (np.zeros(2), {"a": b"y"}),
]


def test_different_starts_have_different_hashes():
    hashes = [start_hash(*start) for start in DIFFERENT]
    assert [
        (one, other)
        for place, one in enumerate(DIFFERENT)
        for other_place, other in enumerate(DIFFERENT)
        if place < other_place and hashes[place] == hashes[other_place]
    ] == []


def test_equal_starts_have_equal_hashes():
    one, other = object(), object()
    assert start_hash(np.arange(4.0), {"a": 1, "b": 2}) == start_hash(np.arange(8.0)[::2] / 2, {"b": 2, "a": 1})
    assert start_hash(np.zeros(1), {"env": one}) == start_hash(np.zeros(1), {"env": other})
    assert start_hash(np.array([one, 1], object), {}) == start_hash(np.array([other, 1], object), {})
    assert start_hash({"a": np.zeros(1), "b": 1}, {}) == start_hash({"b": 1, "a": np.zeros(1)}, {})
