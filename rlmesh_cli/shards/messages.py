"""Messages between the process that keeps a run's books and the workers that play its episodes.

Plain data, so that they cross the borders of processes and machines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from rlmesh_adapters.advisories import Advisory
from rlmesh_adapters.contract import RoutePlan
from rlmesh_cli.episodes import Episode, EpisodeResult
from rlmesh_cli.schema import Route
from rlmesh_cli.tallies import Tally


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is told first: what it will play, and how.

    route: its policy is named so that the worker finds it. source: see evaluate.
    first_lane: number of the worker's lane 0 among all lanes of the run.
    sharing, is_cleared: what was decided before the run; see RouteContract.
    has_answered: whether a policy call that fails is a failure of its episode from the first one on.
    traced: indices of the episodes whose actions and rewards are wanted.
    seed: what the global random numbers begin from.
    threads: most threads of numerical libraries. spec: the environment's registered spec, pickled, or None.
    """

    route: Route
    source: dict[str, Any]
    first_lane: int
    sharing: str
    is_cleared: bool
    has_answered: bool
    trusts_entrypoints: bool
    traced: frozenset[int]
    threads: int
    seed: int = 0
    spec: bytes | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether what passes in episodes is kept."""
        return bool(self.route.record) or self.route.is_filmed


class Grant(msgspec.Struct, frozen=True):
    """Episodes to be played.

    is_last: nothing follows before they have ended; of no episodes, that nothing waits at the moment.
    """

    episodes: tuple[Episode, ...]
    is_last: bool = False


class Stop(msgspec.Struct, frozen=True):
    """Finish the step, report what has ended, and end."""


class Close(msgspec.Struct, frozen=True):
    """There is nothing more to play."""


Order = Task | Grant | Stop | Close


class Hello(msgspec.Struct, frozen=True):
    """Policy and environments are built. advisories: what was noted meanwhile, by key."""

    plan: RoutePlan
    advisories: dict[str, Advisory]


class Refused(msgspec.Struct, frozen=True):
    """What the user can mend; the parts of a HarnessError."""

    cause: str
    where: str
    mend: str


class Crashed(msgspec.Struct, frozen=True):
    """A bug of ours, or of code that no rule catches. trace: the traceback."""

    trace: str


class Answered(msgspec.Struct, frozen=True):
    """The policy's first call went well."""


class Asks(msgspec.Struct, frozen=True):
    """More episodes are wanted; is_idle: nothing is being played, so the answer may take its time."""

    is_idle: bool


class Report(msgspec.Struct, frozen=True):
    """Episodes that have ended, and what was done and noted since the last report."""

    rows: tuple[EpisodeResult, ...]
    tally: Tally
    advisories: dict[str, Advisory]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle in a tenth of the time that its rows would take: of all words this is said most often."""
        try:
            return _unpacked, (msgspec.msgpack.encode(self),)
        except (OverflowError, UnicodeEncodeError):  # a seed of more than 64 bits, a text that is none
            return Report, (self.rows, self.tally, self.advisories)


_REPORTS = msgspec.msgpack.Decoder(Report)


def _unpacked(packed: bytes) -> Report:
    report = _REPORTS.decode(packed)
    if any(math.isnan(number) for row in report.rows for number in row.metrics.values() if number is not None):
        return msgspec.structs.replace(report, rows=tuple(map(_with_one_nan, report.rows)))
    return report


def _with_one_nan(row: EpisodeResult) -> EpisodeResult:
    """Return a row with the one nan of this process, which equals itself where it is looked at as an object."""
    metrics = {
        name: math.nan if number is not None and math.isnan(number) else number
        for name, number in row.metrics.items()
    }
    return msgspec.structs.replace(row, metrics=metrics)


class Traced(msgspec.Struct, frozen=True):
    """Rewards and actions of one episode; see traces.Column."""

    index: int
    columns: Sequence[Any]


class Recorded(msgspec.Struct, frozen=True):
    """What was recorded of an episode that has ended; said before its row is. files: see recording.recorder."""

    row: EpisodeResult
    files: dict[str, bytes]


class Bye(msgspec.Struct, frozen=True, kw_only=True):
    """The last word: what only shows at the end.

    in_flight: episodes that were begun and broken off. casts: see Rollout. actuators: see Stage.
    """

    report: Report
    in_flight: int
    chunk_length: int | None
    actuators: list[Any]
    casts: str


class Gone(msgspec.Struct, frozen=True):
    """Said of a worker that ended. reason: how, for people."""

    reason: str


Word = Hello | Refused | Crashed | Answered | Asks | Report | Traced | Recorded | Bye | Gone
