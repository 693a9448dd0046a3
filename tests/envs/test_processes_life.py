"""Worker processes that die, that must not die, and that must be gone."""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from env_fakes import Answer, Tape, Unreadable
from env_plays import in_order, play_alone, play_lanes

from rlmesh_adapters.errors import EnvironmentBuildError
from rlmesh_envs.make import serve_request
from rlmesh_envs.processes import WorkerLanes
from rlmesh_envs.request import EnvRequest

Start = Callable[..., WorkerLanes]

#: Most seconds that an end may take which should take none.
PATIENCE = 4.0


@pytest.fixture
def start() -> Iterator[Start]:
    """Start lanes over `workers` workers; they are closed after the test."""
    started: list[WorkerLanes] = []

    def begin(workers: int = 2, **request: Any) -> WorkerLanes:
        wanted: dict[str, Any] = {"id": "env_fakes:Tape", "start_method": "fork", "num_envs": 4} | request
        wanted["workers"] = workers
        started.append(WorkerLanes(EnvRequest(**wanted), serve_request))
        return started[-1]

    yield begin
    for lanes in started:
        lanes.close()


def children() -> dict[str, multiprocessing.process.BaseProcess]:
    """Return this process's workers by name."""
    return {child.name: child for child in multiprocessing.active_children() if child.name.startswith("lanes-")}


def step(lanes: WorkerLanes, *named: int) -> Any:
    return lanes.step_lanes(np.ones(len(named), np.int64), named)


def test_a_killed_worker_fails_its_own_lanes_and_plays_their_next_episodes(start):
    lanes = start(kwargs={"length": 3})
    lanes.reset_lanes([0, 1, 2, 3], [0, 1, 2, 3])
    children()["lanes-1"].kill()
    steps = step(lanes, 0, 1, 2, 3)
    assert sorted(steps.failures) == [2, 3]
    assert {failure.phase for failure in steps.failures.values()} == {"step"}
    assert steps.failures[2].message == "the worker process was killed (signal 9), perhaps for want of memory"
    assert "--vectorization sync" in steps.failures[2].mend
    assert steps.observations[:2].tolist() == [[0, 1, 1], [1, 1, 1]]
    resets = lanes.reset_lanes([3, 2], [8, 9])
    assert (resets.failures, resets.observations[:, 0].tolist()) == ({}, [8, 9])
    steps = step(lanes, 0, 1, 2, 3)
    assert steps.failures == {}
    assert steps.observations.tolist() == [[0, 2, 2], [1, 2, 2], [9, 1, 1], [8, 1, 1]]


def test_a_worker_that_is_dead_at_a_reset_fails_that_reset_and_serves_the_next(start):
    lanes = start(workers=1)
    children()["lanes-0"].kill()
    children()
    resets = lanes.reset_lanes([0, 1], [5, 6])
    assert {row: failure.phase for row, failure in resets.failures.items()} == {0: "reset", 1: "reset"}
    played = in_order(play_lanes(lanes, range(6)))
    assert [episode.row() for episode in played] == [play_alone(Tape, seed).row() for seed in range(6)]


def test_an_episode_whose_worker_died_under_another_lanes_reset_is_not_played_on_by_a_stranger(start):
    lanes = start(workers=1, id="env_fakes:Fragile", num_envs=2)
    lanes.reset_lanes([0, 1], [1, 2])
    step(lanes, 0, 1)
    assert lanes.reset_lanes([0], [13]).failures[0].message == "the worker process died (exit code 7)"
    assert lanes.reset_lanes([0], [4]).failures == {}
    steps = step(lanes, 0, 1)
    # Lane 1's environment went down with its worker; the new one has never been reset.
    assert list(steps.failures) == [1]
    assert "worker process died" in steps.failures[1].message
    assert steps.observations[0].tolist() == [1, 1]
    assert lanes.reset_lanes([1], [5]).failures == {}
    assert step(lanes, 0, 1).observations.tolist() == [[1, 2], [1, 1]]


def test_a_worker_that_cannot_be_started_again_says_why_and_is_tried_at_the_next_reset(start, tmp_path):
    switch = tmp_path / "broken"

    def prepare() -> None:
        if switch.exists():
            raise LookupError("the licence server is away")

    lanes = start(workers=1, num_envs=2, prepare=prepare)
    lanes.reset_lanes([0, 1], [1, 2])
    children()["lanes-0"].kill()
    switch.touch()
    assert sorted(step(lanes, 0, 1).failures) == [0, 1]
    failures = lanes.reset_lanes([0, 1], [3, 4]).failures
    assert {failure.phase for failure in failures.values()} == {"reset"}
    assert "LookupError: the licence server is away" in failures[0].message
    switch.unlink()
    assert lanes.reset_lanes([0, 1], [3, 4]).observations[:, 0].tolist() == [3, 4]


def _report(value: Any) -> Callable[[Tape, Answer], Any]:
    def twist(tape: Tape, answer: Answer) -> Any:
        return (*answer[:4], {"thing": value}) if (tape.number, tape.time) == (1, 2) else answer

    return twist


THINGS = {"lock": threading.Lock(), "function": lambda: 0, "unreadable": Unreadable()}


@pytest.mark.parametrize("thing", THINGS)
@pytest.mark.parametrize("workers", [1, 2])
def test_an_info_that_cannot_be_sent_fails_its_own_lane_with_a_way_out(thing, workers, start):
    lanes = start(workers=workers, num_envs=2, kwargs={"length": 3, "twist": _report(THINGS[thing])})
    lanes.reset_lanes([0, 1], [1, 2])
    step(lanes, 0, 1)
    steps = step(lanes, 0, 1)
    assert list(steps.failures) == [0]
    assert "cannot be" in steps.failures[0].message
    assert steps.failures[0].mend == "use --vectorization sync"
    assert steps.observations[1].tolist() == [2, 2, 2]
    assert lanes.reset_lanes([0], [4]).failures == {}
    assert step(lanes, 0, 1).observations.tolist() == [[4, 1, 1], [2, 3, 3]]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_failed_already_is_told_before_an_info_that_cannot_be_sent(workers, start):
    def twist(tape: Tape, answer: Answer) -> Any:
        return (answer[0], [1.0, 2.0], *answer[2:4], {"lock": threading.Lock()}) if tape.number == 1 else answer

    lanes = start(workers=workers, num_envs=2, kwargs={"twist": twist})
    lanes.reset_lanes([0, 1], [1, 2])
    assert {row: failure.message for row, failure in step(lanes, 0, 1).failures.items()} == {
        0: "ValueError: the reward has shape (2,), expected one number"
    }


def test_an_info_of_a_reset_that_cannot_be_sent_fails_that_reset(start):
    lanes = start(workers=1, num_envs=1, id="env_fakes:Locked")
    assert "cannot be sent" in lanes.reset_lanes([0], [1]).failures[0].message
    assert lanes.reset_lanes([0], [2]).failures == {}


def test_a_worker_goes_on_after_sigint_and_sigterm(start):
    lanes = start(workers=1, num_envs=1)
    lanes.reset_lanes([0], [3])
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(children()["lanes-0"].pid, number)
    assert step(lanes, 0).observations.tolist() == [[3, 1, 1]]


def test_no_worker_is_left_after_close_which_may_be_called_again(start):
    before = set(multiprocessing.active_children())
    lanes = start(workers=3)
    lanes.reset_lanes([0, 1, 2, 3], [0, 1, 2, 3])
    left = list(children().values())
    assert len(left) == 3
    lanes.close()
    lanes.close()
    assert [child.exitcode for child in left] == [0, 0, 0]
    assert set(multiprocessing.active_children()) == before


def test_closing_closes_the_environments(start, tmp_path):
    lanes = start(workers=2, num_envs=3, id="env_fakes:Leaving", kwargs={"folder": str(tmp_path)})
    lanes.close()
    assert len(list(tmp_path.iterdir())) == 3


def test_no_worker_is_left_when_one_cannot_be_built(start, tmp_path):
    marker = tmp_path / "first"

    def prepare() -> None:
        # Only one of the workers can make the folder.
        marker.mkdir()

    with pytest.raises(EnvironmentBuildError, match="FileExistsError"):
        start(workers=3, prepare=prepare)
    assert children() == {}


def test_workers_end_when_their_parent_is_killed():
    ended = _run_in_a_child(_start_and_die)
    assert len(ended) == 2


def test_a_process_that_forgets_to_close_its_lanes_still_ends():
    ended = _run_in_a_child(_start_and_forget)
    assert len(ended) == 3


def _start_lanes() -> WorkerLanes:
    request = EnvRequest(id="env_fakes:Tape", num_envs=2, start_method="fork", workers=2)
    return WorkerLanes(request, serve_request)


def _start_and_die(connection: Any) -> None:
    lanes = _start_lanes()
    lanes.reset_lanes([0, 1], [1, 2])
    connection.send([child.pid for child in multiprocessing.active_children()])
    os.kill(os.getpid(), signal.SIGKILL)


def _start_and_forget(connection: Any) -> None:
    global _kept
    _kept = _start_lanes()
    connection.send([os.getpid(), *(child.pid for child in multiprocessing.active_children())])


_kept: Any = None


def _run_in_a_child(target: Callable[[Any], None]) -> list[int]:
    """Run a function in a process of its own; return those it named that ended in time, and kill the others."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=target, args=(theirs,))
    child.start()
    theirs.close()
    ended = []
    for pid in ours.recv():
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:  # has ended before it could be waited for
            ended.append(pid)
            continue
        if select.select([handle], [], [], PATIENCE)[0]:
            ended.append(pid)
        else:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)
    child.join()
    return ended


def test_a_worker_that_ends_before_it_has_built_anything_is_said_to(start):
    with pytest.raises(EnvironmentBuildError) as caught:
        start(workers=2, prepare=lambda: os._exit(3))
    assert caught.value.cause == "the worker process died (exit code 3) before it had built the environment"
    assert "--start-method" in caught.value.mend
    assert children() == {}


def test_a_process_that_cannot_be_started_is_said_with_what_to_do(start, monkeypatch):
    def refuse(process: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
    with pytest.raises(EnvironmentBuildError) as caught:
        start(workers=2)
    assert "cannot be started: BlockingIOError" in caught.value.cause
    assert "--env-workers" in caught.value.mend


def test_a_worker_that_cannot_be_started_again_fails_its_own_lanes(start, monkeypatch):
    lanes = start()
    lanes.reset_lanes([0, 1, 2, 3], [0, 1, 2, 3])
    children()["lanes-1"].kill()
    step(lanes, 0, 1, 2, 3)

    def refuse(process: Any) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
    resets = lanes.reset_lanes([2, 0], [5, 6])
    assert list(resets.failures) == [0]
    assert "cannot be started" in resets.failures[0].message
    assert resets.observations[1].tolist() == [6, 0, 0]
    assert step(lanes, 0).observations.tolist() == [[6, 1, 1]]


@pytest.mark.parametrize(("asked", "lanes", "used"), [(1, 4, 1), (3, 4, 3), (4, 4, 4), (9, 2, 2)])
def test_as_many_workers_as_asked_for_but_at_most_one_a_lane(start, asked, lanes, used):
    there = start(workers=asked, num_envs=lanes)
    assert len(children()) == there.info.workers == used
    assert ("env-workers-capped" in there.info.notes) == (asked > lanes)
