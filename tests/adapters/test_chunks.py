from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
from adapter_fakes import contexts
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rlmesh_adapters.chunks import ChunkReplay, chunk_length, split_chunk, with_chunk_axis
from rlmesh_adapters.roster import Roster

LANES = 4


class ReplayIsOneQueueALane(RuleBasedStateMachine):
    """ChunkReplay against a dict of deques: what a plain reader would write.

    An action is (index of the episode, number of the plan it belongs to), so that no two are equal.
    """

    @initialize(horizon=st.integers(1, 5), nested=st.booleans())
    def begin(self, horizon: int, nested: bool) -> None:
        self.horizon, self.nested = horizon, nested
        self.replay = ChunkReplay(LANES, horizon)
        self.queues: dict[int, deque[tuple[tuple[float, float], bool]]] = {}
        self.playing: dict[int, Any] = {}
        self.roster = Roster((), ())
        self.started = self.planned = 0

    def seat(self) -> None:
        lanes = sorted(self.playing)
        self.roster = Roster(lanes, [self.playing[lane] for lane in lanes])

    def play(self, lanes: set[int]) -> None:
        for lane in lanes - set(self.playing):
            self.playing[lane] = contexts(self.started)[0]
            self.queues[lane] = deque()
            self.started += 1
        self.seat()

    @rule(lanes=st.sets(st.integers(0, LANES - 1), min_size=1))
    def start(self, lanes: set[int]) -> None:
        self.play(lanes)

    @precondition(lambda self: self.playing)
    @rule(data=st.data(), restart=st.booleans())
    def end(self, data: st.DataObject, restart: bool) -> None:
        lanes = data.draw(st.sets(st.sampled_from(sorted(self.playing)), min_size=1))
        for lane in lanes:
            self.drop(lane)
        self.play(lanes if restart else set())

    def drop(self, lane: int) -> None:
        self.replay.clear(lane)
        del self.playing[lane], self.queues[lane]

    @precondition(lambda self: self.playing)
    @rule(data=st.data(), mode=st.sampled_from(["full", "full", "short", "ragged"]), clips=st.booleans())
    def step(self, data: st.DataObject, mode: str, clips: bool) -> None:
        roster = self.roster
        empty = [row for row, lane in enumerate(roster.lanes) if not self.queues[lane]]
        for _ in range(2):  # asking twice changes nothing
            asking = self.replay.asking(roster)
            assert (list(range(len(roster))) if asking is None else list(asking)) == empty
        if empty:
            failed = data.draw(st.sets(st.sampled_from(empty), max_size=1))
            self.load(asking, [row for row in empty if row not in failed], mode, clips, data)
            if failed:
                for row in failed:
                    self.drop(roster.lanes[row])
                self.seat()
                return
        self.pop()

    def load(self, asking: Any, rows: list[int], mode: str, clips: bool, data: st.DataObject) -> None:
        if not rows:
            return
        count, length = len(rows), self.horizon if mode == "full" else data.draw(st.integers(1, self.horizon))
        lengths = [length] * count
        if mode == "ragged":
            lengths = data.draw(st.lists(st.integers(1, length), min_size=count, max_size=count))
        actions = np.full((count, length, 2), -1.0)
        flags = np.zeros((count, length), bool)
        for place, row in enumerate(rows):
            lane = self.roster.lanes[row]
            for step in range(lengths[place]):
                actions[place, step] = (self.roster.episodes[row].index, self.planned)
                flags[place, step] = clips and self.planned % 3 == 0
                self.queues[lane].append((tuple(actions[place, step]), bool(flags[place, step])))
                self.planned += 1
        everyone = asking is None and count == len(self.roster)
        self.replay.load(
            self.roster,
            None if everyone else rows,
            {"a": actions[..., 0], "b": (actions[..., 1],)} if self.nested else actions,
            lengths if mode == "ragged" else None,
            flags if clips else None,
        )

    def pop(self) -> None:
        popped, clipped = self.replay.pop(self.roster)
        actions = np.stack([popped["a"], popped["b"][0]], axis=1) if self.nested else popped
        expected = [self.queues[lane].popleft() for lane in self.roster.lanes]
        assert [tuple(row) for row in actions] == [action for action, _ in expected]
        assert [index for index, _ in actions] == [episode.index for episode in self.roster.episodes]
        flags = [False] * len(expected) if clipped is None else clipped.tolist()
        assert flags == [flag for _, flag in expected]

    @invariant()
    def every_running_lane_has_a_queue(self) -> None:
        assert set(self.queues) == set(self.playing) == set(self.roster.lanes)


TestReplayIsOneQueueALane = ReplayIsOneQueueALane.TestCase
TestReplayIsOneQueueALane.settings = settings(deadline=None, max_examples=120, stateful_step_count=40)


def plan(rows: int, length: int, *, base: float = 0) -> np.ndarray[Any, Any]:
    """Return chunks (rows, length): action t of row r is base + 10 r + t."""
    return base + 10.0 * np.arange(rows)[:, None] + np.arange(length)


def test_what_is_left_of_a_chunk_dies_with_its_episode() -> None:
    replay = ChunkReplay(2, 4)
    first = Roster((0, 1), contexts(0, 1))
    assert replay.asking(first) is None
    replay.load(first, None, plan(2, 4))
    assert replay.pop(first)[0].tolist() == [0, 10]
    replay.clear(0)
    second = Roster((0, 1), contexts(2, 1))
    assert list(replay.asking(second)) == [0]
    replay.load(second, [0], plan(1, 4, base=100))
    assert replay.pop(second)[0].tolist() == [100, 11]


@pytest.mark.parametrize("shared", [True, False], ids=["one call for all lanes", "a queue a lane"])
def test_an_action_of_another_episode_is_never_handed_out(shared: bool) -> None:
    replay = ChunkReplay(2, 4)
    first = Roster((0, 1), contexts(0, 1))
    replay.load(first, None if shared else [0, 1], plan(2, 4))
    replay.pop(first)
    second = Roster((0, 1), contexts(2, 1))
    assert list(replay.asking(second)) == []
    with pytest.raises(RuntimeError, match="lane 0 has no action planned in ep-000003"):
        replay.pop(second)


@pytest.mark.parametrize("shared", [True, False], ids=["one call for all lanes", "a queue a lane"])
def test_popping_an_empty_queue_is_a_fault_of_ours(shared: bool) -> None:
    replay = ChunkReplay(2, 2)
    roster = Roster((0, 1), contexts(0, 1))
    replay.load(roster, None if shared else [0, 1], plan(2, 2))
    replay.pop(roster)
    replay.pop(roster)
    with pytest.raises(RuntimeError, match="lane 0 has no action planned"):
        replay.pop(roster)


def test_popping_before_anything_was_planned_is_a_fault_of_ours() -> None:
    with pytest.raises(RuntimeError, match="lane 1 has no action planned in ep-000006"):
        ChunkReplay(2, 2).pop(Roster((1,), contexts(5)))


def test_queued_actions_do_not_follow_an_array_that_the_policy_reuses() -> None:
    """Lanes that ask at different times are planned for by calls that may share one output array."""
    replay = ChunkReplay(2, 3)
    roster = Roster((0, 1), contexts(0, 1))
    output = plan(2, 3)
    replay.load(roster, None, output, lengths=[3, 2])
    output[:] = -1
    assert [replay.pop(roster)[0].tolist() for _ in range(2)] == [[0, 10], [1, 11]]


def test_a_chunk_is_split_into_views_of_its_steps() -> None:
    chunk = {"a": plan(2, 5), "b": (plan(2, 5, base=100),)}
    part = split_chunk(chunk, 1, 3)
    np.testing.assert_equal(
        part, {"a": np.array([[1.0, 2], [11, 12]]), "b": (np.array([[101.0, 102], [111, 112]]),)}
    )
    assert part["a"].base is not None
    assert split_chunk(plan(2, 5), 3).tolist() == [[3, 4], [13, 14]]


@pytest.mark.parametrize("structure", [lambda leaf: leaf, lambda leaf: {"x": (leaf,)}], ids=["array", "tree"])
def test_single_actions_are_chunks_of_one(structure: Any) -> None:
    chunks = with_chunk_axis(structure(np.arange(6).reshape(3, 2)))
    np.testing.assert_equal(chunks, structure(np.arange(6).reshape(3, 1, 2)))
    assert chunk_length(chunks) == 1
    assert chunk_length(structure(np.zeros((3, 7, 2)))) == 7
