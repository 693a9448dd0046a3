"""Deadlines: what takes too long is ended where it is, and nothing else is touched."""

from __future__ import annotations

import queue
import signal
import threading
import time

import pytest

from rlmesh_adapters.errors import OverdueError
from rlmesh_envs.deadlines import deadline, limited


def sleep() -> None:
    time.sleep(30)


def spin() -> None:
    while True:
        pass


def wait_for_a_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def wait_for_a_queue() -> None:
    queue.Queue().get()


@pytest.mark.parametrize("work", [sleep, spin, wait_for_a_lock, wait_for_a_queue])
def test_what_hangs_is_ended(work):
    began = time.monotonic()
    with pytest.raises(OverdueError) as raised, deadline(0.05):
        work()
    assert 0.04 < time.monotonic() - began < 10
    assert work.__name__ in [frame.name for frame in raised.traceback]


def test_what_returns_in_time_is_left_alone():
    before = signal.getsignal(signal.SIGALRM)
    with deadline(0.1):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0
    assert signal.getsignal(signal.SIGALRM) is before


@pytest.mark.parametrize("seconds", [float("inf"), 1e12])
def test_no_limit_is_no_error(seconds):
    with deadline(seconds):
        pass


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_time_that_is_up_already_ends_what_waits(seconds):
    with pytest.raises(OverdueError), deadline(seconds):
        time.sleep(30)


def test_a_timer_of_somebody_else_is_not_taken():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with deadline(0.01):
            time.sleep(0.3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung == [True]


def test_other_threads_have_none():
    done = []

    def work() -> None:
        with deadline(0.01):
            time.sleep(0.05)
        done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done


def test_a_limited_call_that_hangs_is_an_error_with_its_place():
    with pytest.raises(TimeoutError, match=r"the call took longer than 0\.05 s") as raised:
        limited(sleep, 0.05, "the call")()
    assert "sleep" in [frame.name for frame in raised.traceback]


def test_a_limited_call_gives_what_the_call_gives():
    assert limited(lambda one, *, other: (one, other), 1.0, "it")(1, other=2) == (1, 2)
    assert limited(sleep, None, "it") is sleep


def test_the_ring_of_a_limit_around_it_is_passed_on():
    began = time.monotonic()
    with pytest.raises(OverdueError), deadline(0.05):
        limited(sleep, 20.0, "the call")()
    assert time.monotonic() - began < 10
