"""Books: what is written of a run - its rows, its record, its folder - and what is counted of it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rlmesh_adapters.errors import HarnessError

from .bars import Bars
from .episodes import EpisodeResult
from .judging import keep_advisories
from .run_record import RunRecord
from .stage import Stage
from .store import RunStore
from .tallies import Tally

if TYPE_CHECKING:
    from .recording.keeper import Keeper
    from .resuming import Resumption


class Books:
    """Keeps a run's folder: what is counted is on disk.

    stage: where it is played. record: makes `run.json`. bars: look at every row. out: folder of runs.
    keeper: takes what is recorded, None if nothing is.
    """

    def __init__(self, stage: Stage, record: RunRecord, bars: Bars, out: Path, keeper: Keeper | None) -> None:
        self.record, self.keeper = record, keeper
        #: Of all sittings, as they ended.
        self.rows: list[EpisodeResult] = []
        self._stage, self._bars, self._out = stage, bars, out
        self._opened: RunStore | None = None
        self._advised = 0

    @property
    def folder(self) -> Path | None:
        """The run's folder, None before it is made."""
        return None if self._opened is None else self._opened.path

    def go_on(self, resumption: Resumption) -> None:
        """Open the run that is gone on with, if there is one, and take over what it knows.

        Raises HarnessError where it cannot be gone on with.
        """
        self.record.open()
        reopened = resumption.reopen(self.record.make("running"))
        if reopened is None:
            return
        self._opened, stored = reopened
        try:
            self._bars.refuse_itself(stored.folder)
        except BaseException:
            self._opened.close()
            raise
        self.record.go_on(stored)
        # Also those beyond an earlier end: another bar may want them.
        self.rows = stored.every_row
        self._look_at(self.rows)
        if any(row.policy_calls for row in self.rows):
            self._stage.trust()
        keep_advisories(self._stage.engine.advisories, stored.record.get("advisories", ()))
        if self.keeper is not None:
            self.keeper.open(self._opened, self.rows)

    def begin(self) -> None:
        """Say in a run that is gone on with that it is no longer what its summary says."""
        if self._opened is not None:
            self._opened.remove("summary.json")
            self.write_record("running")

    def store(self) -> RunStore:
        """Return the run's folder; the first time it is asked for, it is made.

        Episodes whose reset failed may have come before; they are written then.
        """
        if self._opened is None:
            self.record.open()
            route, policy = self._stage.route, self._stage.policy
            self._opened = store = RunStore(self._out, env=route.env.id, policy=policy.label)
            try:
                self.write_record("running")
            except HarnessError as error:
                self._opened = None
                store.discard()
                mend = "see that there is room on the disk, and that the folder may be written to"
                raise HarnessError(error.cause, where=str(self._out), mend=mend) from error
            if self.keeper is not None:
                self.keeper.open(self._opened)
            if self.rows:
                self._opened.append(*self.rows)
        return self._opened

    def write_record(self, status: str) -> None:
        """Write `run.json`."""
        self._advised = len(self._stage.engine.advisories)
        self.store().write("run.json", self.record.make(status))

    def take(self, results: list[EpisodeResult], tally: Tally) -> None:
        """Write rows, and then count them; tally: of the run, for the time that it takes."""
        if self._opened is not None:
            began = time.perf_counter()
            self._opened.append(*results)
            if len(self._stage.engine.advisories) != self._advised:  # a killed run keeps what was advised
                self.write_record("running")
            tally.recording_seconds += time.perf_counter() - began
        self.rows.extend(results)
        self.record.played += len(results)
        self._look_at(results)
        if self.keeper is not None:
            self.keeper.count(self._bars.counted)

    def read_again(self) -> None:
        """Take the rows from disk: the end may have come between writing one and counting it."""
        if self._opened is not None:
            from .run_reader import read_run  # noqa: PLC0415 - few runs are interrupted

            stored = read_run(self._opened.path)
            self.record.played += len(stored.every_row) - len(self.rows)
            self.rows = stored.every_row
            self._look_at(self.rows)

    def _look_at(self, rows: Sequence[EpisodeResult]) -> None:
        self._bars.look_at(rows)
        self.record.stopped_at = self._bars.stopped_at

    def close(self) -> None:
        """Let go of the folder; idempotent."""
        if self._opened is not None:
            self._opened.close()
