"""ShardWorker: what runs in a worker, from its task to its last word."""

from __future__ import annotations

import gc
import threading
import traceback
from collections.abc import Sequence
from queue import SimpleQueue

import msgspec

from rlmesh_adapters.advisories import Advisory, AdvisoryBook
from rlmesh_adapters.errors import HarnessError
from rlmesh_cli.episodes import EpisodeResult
from rlmesh_cli.guests import seeded_globals
from rlmesh_cli.rollout import Rollout
from rlmesh_cli.stage import Stage, staged
from rlmesh_cli.tallies import Tally
from rlmesh_cli.traces import Column
from rlmesh_cli.unreset import UnresetWatch, watched

from .feed import Feed
from .messages import (
    Answered,
    Asks,
    Bye,
    Close,
    Crashed,
    Hello,
    Order,
    Recorded,
    Refused,
    Report,
    Stop,
    Task,
    Traced,
    Word,
)
from .outbox import Channel, Outbox, opened
from .threads import limit_threads


def serve(channel: Channel) -> None:
    """Run one worker until it is told to end, or nobody listens any more."""
    try:
        task = channel.recv()
        if not isinstance(task, Task):  # the run came to nothing before it began
            return
        last = _play(channel, task)
        if last is not None:
            channel.send([last])
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _play(channel: Channel, task: Task) -> Word | None:
    """Play a task; return what has to be said where it cannot be played to its end."""
    try:
        limit_threads(task.threads)
        with (
            seeded_globals(task.seed),
            staged(
                task.route,
                source=task.source,
                trusts_entrypoints=task.trusts_entrypoints,
                sharing=task.sharing,
                is_cleared=task.is_cleared,
                has_answered=task.has_answered,
                spec=task.spec,
                is_recorded=True,
            ) as stage,
            opened(channel) as outbox,
        ):
            ShardWorker(channel, outbox, stage, task).play()
    except HarnessError as error:
        return Refused(error.cause, error.where, error.mend)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise
    except BaseException:  # the traceback is worth most to the one who keeps the books
        return Crashed(traceback.format_exc())
    return None


class ShardWorker:
    """Plays what it is granted, and reports what has ended.

    channel: where orders come from; a thread reads them, so that one to stop is heard in the middle of a game.
    outbox: what is said goes through it.
    """

    def __init__(self, channel: Channel, outbox: Outbox, stage: Stage, task: Task) -> None:
        self._channel, self._stage, self._task = channel, stage, task
        self._say, self._say_soon = outbox.say, outbox.say_soon
        self._orders: SimpleQueue[Order] = SimpleQueue()
        self._feed = Feed(lambda is_idle: self._say(Asks(is_idle)), self._orders)
        self._rollout: Rollout | None = None
        self._is_stopped = False
        self._unreset = UnresetWatch(watched(stage))
        self._told = Tally()
        self._noted = stage.engine.advisories.entries()

    def play(self) -> None:
        """Say hello, play until there is nothing more, say bye."""
        self._say(Hello(self._stage.plan, self._noted))
        threading.Thread(target=self._listen, daemon=True).start()
        gc.freeze()  # what was loaded stays; the collector need not go through it again and again
        casts, in_flight = "", 0
        while self._feed.open() and not self._is_stopped:
            rollout = self._begin()
            for results in rollout.run():
                self._unreset.see_episode()
                self._say_soon(self._report(results, rollout.tally))
            casts = casts or rollout.casts
            in_flight += rollout.in_flight
            self._say(self._report((), rollout.tally))
            self._told = Tally()
        self._unreset.note(self._stage.engine.advisories)
        chunk_length, actuators = self._stage.chunk_length, self._stage.actuators
        self._stage.release()
        self._say(
            Bye(
                report=self._report((), Tally()),
                in_flight=in_flight,
                chunk_length=chunk_length,
                actuators=actuators,
                casts=casts,
            )
        )

    def _begin(self) -> Rollout:
        rollout = self._stage.rollout(
            (),
            queue=self._feed,
            on_answer=lambda: self._say(Answered()),
            on_tick=lambda tally: self._say(self._report((), tally)),
            on_trace=self._trace if self._task.traced else None,
            deliver=self._deliver if self._task.is_recorded else None,
        )
        self._rollout = rollout
        rollout.should_stop = self._is_stopped  # the order may have come just now
        return rollout

    def _listen(self) -> None:
        while True:
            try:
                order = self._channel.recv()
            except (EOFError, OSError):
                order = Stop()
            if isinstance(order, Stop):
                self._is_stopped = True
                if self._rollout is not None:
                    self._rollout.should_stop = True
            self._orders.put(order)
            if isinstance(order, (Stop, Close)):
                return

    def _report(self, results: Sequence[EpisodeResult], tally: Tally) -> Report:
        """Return what is new since the last report."""
        first = self._task.first_lane
        rows = tuple(msgspec.structs.replace(row, lane=row.lane + first) for row in results)
        since, self._told = tally.since(self._told), msgspec.structs.replace(tally)
        return Report(rows, since, self._news(self._stage.engine.advisories))

    def _news(self, book: AdvisoryBook) -> dict[str, Advisory]:
        known, self._noted = self._noted, book.entries()
        news = {}
        for key, advisory in self._noted.items():
            count = advisory.count - (known[key].count if key in known else 0)
            if count:
                news[key] = msgspec.structs.replace(advisory, count=count)
        return news

    def _deliver(self, row: EpisodeResult, files: dict[str, bytes]) -> None:
        self._say(Recorded(row, files))

    def _trace(self, index: int, columns: Sequence[Column]) -> None:
        if index in self._task.traced:
            self._say(Traced(index, [bytes(column) for column in columns]))
