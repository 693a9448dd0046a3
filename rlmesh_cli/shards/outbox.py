"""Outbox: what a worker says, on its way to the one who keeps the books."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol

from .messages import Word

# So long a word may wait for others to go with it.
_COMPANY_SECONDS = 0.02
# So often a thread sees whether one is still waiting; when it wakes up, it takes its turn from the one that plays.
_ROUND_SECONDS = 0.1


class Channel(Protocol):
    """The worker's end of what connects it with the one who keeps the books."""

    def recv(self) -> Any:
        """Wait for an order; raise EOFError if nobody is there any more."""
        ...

    def send(self, obj: Any) -> None:
        """Say some words."""
        ...


class Outbox:
    """Sends words in the order in which they are said, several in one piece where they come thick and fast.

    Where episodes end every few microseconds, a message for each would take longer than the episodes do. Where
    they are seldom, each is sent at once: a word waits only if another one was sent in the last 20 ms, and where
    none comes after it, a thread sends it within two tenths of a second.

    channel: gets lists of words. Closing sends what waits.
    """

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: deque[Word] = deque()
        self._sending = threading.Lock()
        self._sent_at = 0.0
        self._rounds = threading.Event()
        self._is_on_rounds = False
        self._closing = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._send_the_last, daemon=True)
        self._thread.start()

    def say(self, word: Word) -> None:
        """Send a word now, after those that wait.

        Raises what sending raised, now or in the thread.
        """
        self._waiting.append(word)
        self._send()

    def say_soon(self, word: Word) -> None:
        """Send a word, now or with those that are said in the next milliseconds; raises as `say` does."""
        self._waiting.append(word)
        if time.monotonic() >= self._sent_at + _COMPANY_SECONDS:
            self._send()
        elif not self._is_on_rounds:
            self._is_on_rounds = True
            self._rounds.set()

    def close(self) -> None:
        """Send what waits, and end the thread; idempotent."""
        self._closing.set()
        self._rounds.set()
        self._thread.join()
        self._send()

    def _send(self) -> None:
        with self._sending:
            if self._error is not None:
                raise self._error
            words = []
            while self._waiting:
                words.append(self._waiting.popleft())
            if words:
                self._channel.send(words)
                self._sent_at = time.monotonic()

    def _send_the_last(self) -> None:
        while not self._closing.is_set():
            self._rounds.wait()
            self._rounds.clear()
            try:
                self._go_round()
            except Exception as error:  # raised again where the next word is said
                self._error = error
                return

    def _go_round(self) -> None:
        """Send what waits too long, until nothing does."""
        while not self._closing.wait(_ROUND_SECONDS):
            if not self._waiting:
                self._is_on_rounds = False
                # Whoever said something before that left it to us.
                if not self._waiting:
                    return
                self._is_on_rounds = True
            if time.monotonic() >= self._sent_at + _COMPANY_SECONDS:
                self._send()


@contextlib.contextmanager
def opened(channel: Channel) -> Iterator[Outbox]:
    """Yield an outbox, and close it; what sending raises then is only raised if nothing else is."""
    outbox = Outbox(channel)
    try:
        yield outbox
    except BaseException:
        with contextlib.suppress(Exception):
            outbox.close()
        raise
    outbox.close()
