"""What goes through shared memory, what does not, and that nobody can tell from the records."""

from __future__ import annotations

import errno
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from env_fakes import Ending, Sampled, Telling
from env_plays import same
from gymnasium import spaces

from rlmesh_adapters.batches import row_of
from rlmesh_envs import processes
from rlmesh_envs.bells import Bell
from rlmesh_envs.lanes import LaneVectorEnv
from rlmesh_envs.make import serve_request
from rlmesh_envs.processes import WorkerLanes
from rlmesh_envs.request import EnvRequest

MIXED = spaces.Dict(
    image=spaces.Box(0, 255, (64, 48, 3), np.uint8),
    half=spaces.Box(-1, 1, (3,), np.float16),
    wide=spaces.Box(-1, 1, (2, 2), np.float64),
    pair=spaces.Tuple((spaces.Discrete(5, start=-2), spaces.MultiBinary(3))),
    none=spaces.Box(-1, 1, (0,), np.float32),
)
SPACES: dict[str, spaces.Space[Any]] = {
    "mixed": MIXED,
    "words": spaces.Dict(text=spaces.Text(5), image=spaces.Box(0, 255, (40, 40, 3), np.uint8)),
    "image": spaces.Box(0, 255, (48, 64, 3), np.uint8),
    "half": spaces.Box(-1, 1, (3,), np.float16),
    "discrete": spaces.Discrete(7),
}


@pytest.fixture
def start() -> Iterator[Any]:
    """Start lanes in workers; they are closed after the test."""
    started: list[WorkerLanes] = []

    def begin(env: str, *, workers: int = 2, start_method: str = "fork", **request: Any) -> WorkerLanes:
        wanted = EnvRequest(id=env, workers=workers, start_method=start_method, **request)
        started.append(WorkerLanes(wanted, serve_request))
        return started[-1]

    yield begin
    for lanes in started:
        lanes.close()


def play_both(here: Any, there: Any, calls: int) -> None:
    """Reset and step random lanes in random order on both, and compare all that they give."""
    rng = np.random.default_rng(3)
    count = here.num_envs
    running: set[int] = set()
    for call in range(calls):
        lanes = tuple(int(lane) for lane in rng.permutation(count)[: rng.integers(1, count + 1)])
        if call % 2 == 0:
            seeds = [int(seed) for seed in rng.integers(0, 99, len(lanes))]
            compare(here.reset_lanes(lanes, seeds), there.reset_lanes(lanes, seeds), len(lanes))
            running.update(lanes)
        lanes = tuple(lane for lane in lanes if lane in running)
        for _ in range(2):
            actions = rng.integers(0, 2, len(lanes))
            ours, theirs = here.step_lanes(actions, lanes), there.step_lanes(actions, lanes)
            compare(ours, theirs, len(lanes))
            assert (theirs.ended, list(theirs.rewards)) == (ours.ended, list(ours.rewards))


def compare(ours: Any, theirs: Any, rows: int) -> None:
    assert theirs.failures == ours.failures == {}
    for row in range(rows):
        assert same(row_of(ours.observations, row), row_of(theirs.observations, row))
    assert (theirs.infos is None) == (ours.infos is None)
    for one, other in zip(ours.infos or (), theirs.infos or (), strict=True):
        assert list(one) == list(other)
        assert [type(value) for value in one.values()] == [type(value) for value in other.values()]
        assert same(list(one.values()), list(other.values()))


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize(("lanes", "workers"), [(1, 1), (5, 2), (5, 3), (4, 2)])
def test_observations_of_any_space_are_those_of_lanes_in_this_process(start, name, lanes, workers):
    there = start("env_fakes:Sampled", workers=workers, num_envs=lanes, kwargs={"space": SPACES[name]})
    play_both(LaneVectorEnv([lambda: Sampled(SPACES[name])] * lanes), there, 12)


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_workers_that_inherit_nothing_share_memory_too(start, method):
    there = start("env_fakes:Sampled", num_envs=3, start_method=method, kwargs={"space": MIXED})
    assert dict(there.info.notes) == {}
    play_both(LaneVectorEnv([lambda: Sampled(MIXED)] * 3), there, 8)


def test_memory_of_a_system_without_memfd_is_a_file_without_a_name(start, monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.delattr(os, "posix_fallocate")
    there = start("env_fakes:Sampled", num_envs=3, kwargs={"space": MIXED})
    play_both(LaneVectorEnv([lambda: Sampled(MIXED)] * 3), there, 8)


@pytest.mark.parametrize("name", SPACES)
def test_without_shared_memory_steps_go_through_pipes_and_a_note_says_so(start, name, monkeypatch):
    def refuse(size: int) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(processes, "open_memory", refuse)
    there = start("env_fakes:Sampled", num_envs=5, kwargs={"space": SPACES[name]})
    assert "No space left on device" in there.info.notes["no-shared-memory"]
    assert "changes no result" in there.info.notes["no-shared-memory"]
    play_both(LaneVectorEnv([lambda: Sampled(SPACES[name])] * 5), there, 12)


def test_memory_that_is_not_to_be_had_is_found_out_at_once():
    import resource  # noqa: PLC0415 - not on every system

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            processes.open_memory(1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_of_the_memory_has_a_name(start):
    folder = Path("/dev/shm")
    before = set(folder.iterdir()) if folder.exists() else set()
    lanes = start("env_fakes:Sampled", num_envs=2, kwargs={"space": MIXED})
    lanes.reset_lanes([0, 1], [1, 2])
    lanes.step_lanes(np.zeros(2, np.int64), (0, 1))
    assert (set(folder.iterdir()) if folder.exists() else set()) == before


def test_what_a_step_gave_may_be_kept(start):
    lanes = start("env_fakes:Sampled", num_envs=4, kwargs={"space": MIXED})
    lanes.reset_lanes([0, 1, 2, 3], [1, 2, 3, 4])
    first = lanes.step_lanes(np.zeros(4, np.int64), (0, 1, 2, 3))
    image, rewards = first.observations["image"].copy(), list(first.rewards)
    lanes.step_lanes(np.zeros(4, np.int64), (0, 1, 2, 3))
    lanes.close()
    np.testing.assert_array_equal(first.observations["image"], image)
    assert first.rewards == rewards
    first.observations["image"][:] = 0


def test_a_usual_step_is_one_byte_each_way_and_worker(start, monkeypatch):
    lanes = start("env_fakes:Sampled", num_envs=4, kwargs={"space": MIXED})
    lanes.reset_lanes([0, 1, 2, 3], [1, 2, 3, 4])
    everyone = (0, 1, 2, 3)
    lanes.step_lanes(np.zeros(4, np.int64), everyone)
    heard: list[Any] = []

    def listen(bell: Bell, original: Any = Bell.listen) -> bytes:
        heard.append("listens")
        return original(bell)

    monkeypatch.setattr(Bell, "listen", listen)
    monkeypatch.setattr(
        Bell, "ring", lambda bell, sound, original=Bell.ring: (heard.append(sound), original(bell, sound))
    )
    monkeypatch.setattr(Bell, "send", lambda *_: pytest.fail("a message was sent"))
    monkeypatch.setattr(Bell, "receive_pickled", lambda _: pytest.fail("a message came"))
    lanes.step_lanes(np.zeros(4, np.int64), everyone)
    # Every worker is rung before any is waited for.
    assert heard == [b"s", b"s", "listens", "listens"]


def test_ends_and_resets_are_one_byte_each_way_too(start, monkeypatch):
    lanes = start("env_fakes:Sampled", num_envs=4, kwargs={"space": MIXED})
    everyone = (0, 1, 2, 3)
    lanes.reset_lanes(everyone, everyone)
    lanes.step_lanes(np.zeros(4, np.int64), everyone)
    monkeypatch.setattr(Bell, "send", lambda *_: pytest.fail("a message was sent"))
    monkeypatch.setattr(Bell, "receive_pickled", lambda _: pytest.fail("a message came"))
    lanes.step_lanes(np.zeros(4, np.int64), everyone)
    ended = lanes.step_lanes(np.zeros(4, np.int64), everyone).ended
    assert ended == [(row, True, False) for row in everyone]
    rooms = lanes.reset_lanes((1, 3), (5, 6)).observations["image"]
    for room, seed in zip(rooms, (5, 6), strict=True):
        np.testing.assert_array_equal(room, Sampled(MIXED).reset(seed=seed)[0]["image"])


@pytest.mark.parametrize("seeds", [(0, 1, 2, 3), (4, 5, 6, 7), (9, 12, 15, 18), (17, 16, 10, 11), (0, 9, 3, 15)])
def test_ends_of_any_kind_come_as_they_were_given(start, seeds):
    there = start("env_fakes:Ending", num_envs=4)
    here = LaneVectorEnv([Ending] * 4)
    everyone, running = (0, 1, 2, 3), (0, 1, 2, 3)
    for _ in range(2):
        compare(here.reset_lanes(everyone, seeds), there.reset_lanes(everyone, seeds), 4)
        while running:
            actions = np.zeros(len(running), np.int64)
            ours, theirs = here.step_lanes(actions, running), there.step_lanes(actions, running)
            compare(ours, theirs, len(running))
            assert theirs.ended == ours.ended
            running = tuple(lane for row, lane in enumerate(running) if row not in [end[0] for end in ours.ended])
        running = everyone


@pytest.mark.parametrize("seeds", [(1, None, 3), (2**63 - 1, 2**63, 2**70), (np.int64(4), 5, True), (-1, 0, 1)])
@pytest.mark.parametrize("lanes", [(0, 1, 2), (2, 1, 0), (3, 0, 2)])
def test_any_seed_reaches_the_lane_it_is_meant_for(start, seeds, lanes):
    there = start("env_fakes:Telling", num_envs=4)
    assert [info["seed"] for info in there.reset_lanes(lanes, seeds).infos] == list(seeds)


def test_a_reset_that_a_dead_worker_has_left_undone_is_not_done_by_the_next_one(start):
    there = start("env_fakes:Ending", num_envs=4)
    everyone = (0, 1, 2, 3)
    there.reset_lanes(everyone, everyone)
    assert sorted(there.reset_lanes((2, 3), (13, 13)).failures) == [0, 1]
    assert there.reset_lanes((2,), (1,)).observations.tolist() == [[1.0, 0.0]]
    assert there.reset_lanes((3,), (1,)).observations.tolist() == [[1.0, 0.0]]
    assert there.reset_lanes((0, 2), (1, 1)).observations.tolist() == [[2.0, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_infos_come_as_they_were_given(start, dtype):
    there = start("env_fakes:Telling", num_envs=5)
    here = LaneVectorEnv([Telling] * 5)
    for lanes in ((0, 1, 2, 3, 4), (4, 1, 2), (0, 2)):
        seeds = [lane + 2 for lane in lanes]
        here.reset_lanes(lanes, seeds)
        there.reset_lanes(lanes, seeds)
        for _ in range(27):
            actions = np.ones(len(lanes), dtype)
            compare(here.step_lanes(actions, lanes), there.step_lanes(actions, lanes), len(lanes))
            compare(here.step_lanes(actions[:0], ()), there.step_lanes(actions[:0], ()), 0)


def test_a_worker_that_died_is_given_the_memory_again(start):
    space = SPACES["image"]
    there = start("env_fakes:Sampled", num_envs=4, kwargs={"space": space})
    here = LaneVectorEnv([lambda: Sampled(space)] * 4)
    everyone = (0, 1, 2, 3)
    for lanes in (here, there):
        lanes.reset_lanes(everyone, everyone)
    there._crew[1].process.kill()
    assert sorted(there.step_lanes(np.zeros(4, np.int64), everyone).failures) == [2, 3]
    here.step_lanes(np.zeros(4, np.int64), everyone)
    for lanes in (here, there):
        lanes.reset_lanes((2, 3), (7, 8))
    for _ in range(2):
        actions = np.zeros(4, np.int64)
        compare(here.step_lanes(actions, everyone), there.step_lanes(actions, everyone), 4)


@pytest.mark.parametrize(("late", "looks"), [(False, 40), (True, 18)])
def test_a_bell_that_is_rung_late_is_looked_for_now_and_then_only(late, looks, monkeypatch):
    ours, theirs = multiprocessing.Pipe()
    bell = Bell(ours, spin=1e-4)
    times = iter(range(10**6))
    looked: list[int] = []
    monkeypatch.setattr("rlmesh_envs.bells.time.perf_counter", lambda: looked.append(1) or next(times))
    poll = bell._poll
    bell._poll = Deaf() if late else poll
    for _ in range(40):
        theirs.send_bytes(b"")
        assert bell.listen() == b"\0"
        os.read(ours.fileno(), 3)
    bell.close()
    theirs.close()
    # One time is read where the bell is heard at once, two where it is not.
    assert len(looked) == (looks * 2 if late else looks)


class Deaf:
    """A poll that never hears anything."""

    def poll(self, milliseconds: int) -> list[Any]:
        return []
