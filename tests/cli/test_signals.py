"""Signals: the first lets the current step finish, the second does not wait."""

from __future__ import annotations

import signal
import threading

import pytest

from rlmesh_cli.signals import StopOnSignal

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", SIGNALS)
def test_before_anyone_listens_a_signal_interrupts_at_once(number):
    with StopOnSignal(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("second", SIGNALS)
def test_first_signal_asks_and_the_second_interrupts(number, second, capfd):
    asked = []
    with StopOnSignal() as stopper:
        stopper.watch(lambda: asked.append("stop"))
        signal.raise_signal(number)
        assert asked == ["stop"]
        assert "press Ctrl-C again to stop at once" in capfd.readouterr().err
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(second)
    assert asked == ["stop"]


def test_handlers_are_put_back_also_on_error():
    def mine(number, frame):
        raise AssertionError

    before = {number: signal.signal(number, mine) for number in SIGNALS}
    try:
        with pytest.raises(ValueError, match="inside"), StopOnSignal():
            raise ValueError("inside" if signal.getsignal(signal.SIGINT) is not mine else "not taken over")
        assert [signal.getsignal(number) for number in SIGNALS] == [mine, mine]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_other_threads_leave_the_hosts_handlers_alone():
    seen = []

    def run() -> None:
        with StopOnSignal() as stopper:
            stopper.watch(lambda: None)
            seen.extend(signal.getsignal(number) for number in SIGNALS)

    before = [signal.getsignal(number) for number in SIGNALS]
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == before
