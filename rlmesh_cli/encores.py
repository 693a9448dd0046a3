"""Encores: one episode of a stored run played again, on one lane here, and written down step by step."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .caps import Limits
from .contracting import alone
from .differing import Take
from .episodes import Episode, EpisodeResult
from .loading import PolicySource, load_policy
from .provenance import file_record, host
from .recordings import RecordingLanes, Watch
from .resuming import differences, recorded_route
from .route import read_route
from .run_reader import RECORD, StoredRun
from .run_record import RunRecord
from .schema import Flags, Route
from .stage import Stage, staged

_ID = re.compile(r"ep-0*([0-9]{1,18})")
_DIGITS = 12
#: Fields of a fingerprint that playing on one lane may itself change.
_ARRANGED = ("env layers", "env.autoreset")


class EncoreError(HarnessError):
    """A run has no such episode to be played again."""


class Encore:
    """One episode of a run, and all that it takes to play it again.

    stored: the run. row: of the episode, as the run played it. route: as in the run, but for the lanes.
    policy: found where it was then.

    Raises HarnessError where the run's episodes have no seeds, or route or policy cannot be had any more.
    """

    def __init__(self, stored: StoredRun, row: EpisodeResult, *, trusts_entrypoints: bool = False) -> None:
        if not stored.is_seeded or row.seed is None:
            raise EncoreError(
                f"the episodes of {stored.name} have no seeds of their own: its environment resets itself "
                f"({stored.record['env'].get('autoreset')}), so that none of them can be played again",
                where=str(stored.folder),
                mend="run it without --autoreset and not with --vectorization native",
            )
        infinite = stored.record.get("infinite") or ()
        nonfinite = stored.record.get("nonfinite") or ()
        unknown = [path for path in nonfinite if path.startswith("route.") and path not in infinite]
        if unknown:
            raise EncoreError(
                f"the record of {stored.name} does not say what {', '.join(unknown)} was: it was not finite",
                where=str(stored.folder / RECORD),
                mend="run the evaluation again with a finite number",
            )
        self.stored, self.row = stored, row
        self.episode = Episode(row.index, row.seed)
        route, _ = read_route(None, Flags(), recorded_route(stored))
        self.route: Route = alone(route)
        self.policy: PolicySource = load_policy(
            route.policy.source, route.policy.params, stored.record.get("route_file")
        )
        self._source = {name: stored.record.get(name) for name in ("argv", "route_file")}
        self._trusts_entrypoints = trusts_entrypoints

    @property
    def change_of_policy(self) -> str | None:
        """What to say first where the policy's file is not what it was, None if it is."""
        known, file = _policy_file(self.stored), self.policy.file
        if known is None or file is None:
            return None
        now = file_record(file)["sha256"]
        return None if now == known["sha256"] else f"policy: was {_short(known['sha256'])}, is {_short(now)}"

    def play(
        self,
        *,
        is_renewed: bool = False,
        render_mode: str | None = None,
        watch: Callable[[Stage], Watch | None] = lambda stage: None,
    ) -> tuple[Take, list[str]]:
        """Play the episode on an environment and with a policy that have played nothing before.

        is_renewed: run the policy's file anew, so that nothing is left of an earlier play. render_mode: of the
        environment. watch: makes what looks at the environment, from the stage.

        Return the take, and what differs in the fingerprint from the run.
        Raises HarnessError where policy, environment or engine cannot be made.
        """
        policy = self.policy
        if is_renewed and policy.renew is not None:
            policy = msgspec.structs.replace(policy, build=policy.renew())
        with staged(
            self.route,
            source=self._source,
            policy=policy,
            trusts_entrypoints=self._trusts_entrypoints,
            # What one instance keeps does not matter to one episode, unless the run had a new one for each.
            sharing="episode" if self._instances == "episode" else "auto",
            has_answered=True,
            render_mode=render_mode,
        ) as stage:
            record = RunRecord(stage, source=self._source, git=None)
            record.open()
            lanes = RecordingLanes(stage.lanes, watch(stage))
            rollout = stage.rollout([self.episode], lanes=lanes, limits=self._limits(stage))
            rows = [row for rows in rollout.run() for row in rows]
            changes = self._changes(record.make("running"))
            conversion = stage.plan.conversion
        return Take(row=self._as_ended(rows[0]), moments=lanes.moments, conversion=conversion), changes

    @property
    def _instances(self) -> str:
        return str((self.stored.record.get("policy") or {}).get("instances", "auto"))

    def _limits(self, stage: Stage) -> Limits:
        """Return when the episode is ended by us: not by the clock, which goes as it likes."""
        return Limits(steps=self.row.length if self.row.end == "time_cap" else stage.guard)

    def _as_ended(self, row: EpisodeResult) -> EpisodeResult:
        # As many steps as the clock let pass in the run: the same end.
        is_capped = self.row.end == "time_cap" and row.end == "step_cap"
        return msgspec.structs.replace(row, end="time_cap") if is_capped else row

    def _changes(self, record: dict[str, Any]) -> list[str]:
        stored = self.stored.record
        env = stored["route"]["env"]
        is_foreign = env.get("autoreset") is not None or env.get("vectorization") == "native"
        lines = differences(stored, record, apart_from=("policy", *(_ARRANGED if is_foreign else ())))
        changed = self.change_of_policy
        before, now = stored.get("host") or {}, host()
        lines += [
            f"{name} of the machine: was {before[name]}, is {now[name]}"
            for name in ("name", "system", "machine")
            if name in before and before[name] != now[name]
        ]
        return ([changed] if changed else []) + lines


def find_row(stored: StoredRun, wanted: str) -> EpisodeResult:
    """Return the row of an episode.

    wanted: its index, such as `7`, or its id, such as `ep-000008`.

    Raises EncoreError that names which episodes there are.
    """
    match = _ID.fullmatch(wanted.strip())
    if match is None and not re.fullmatch(r"[0-9]{1,18}", wanted.strip()):
        raise EncoreError(
            f"`{wanted}` is no episode", where="EPISODE", mend="give an index, such as 7, or an id, ep-000008"
        )
    index = int(wanted) if match is None else int(match[1]) - 1
    for row in stored.rows:
        if row.index == index:
            return row
    there = f"played were {_listed(row.index for row in stored.rows)}" if stored.rows else "none was played"
    if any(row.index == index for row in stored.beyond):
        raise EncoreError(
            f"episode {index} (ep-{index + 1:06d}) of {stored.name} does not count: "
            f"`{stored.record['stopping_rule']}` ended the run before it; {there}",
            where="EPISODE",
            mend="name one that counts",
        )
    if 0 <= index < stored.planned:
        raise EncoreError(
            f"episode {index} (ep-{index + 1:06d}) of {stored.name} was not played; {there}",
            where="EPISODE",
            mend="name one that was, or go on with the run: "
            f"rlmesh eval --resume {shlex.quote(str(stored.folder))}",
        )
    raise EncoreError(
        f"{stored.name} has no episode {wanted}: its plan is 0 to {stored.planned - 1}; {there}",
        where="EPISODE",
        mend="name one that was played, by index from 0 or by id from ep-000001",
    )


def refuse_other_bytes(base: StoredRun, new: StoredRun) -> None:
    """Raise HarnessError if policy or weights of two runs are one file, which cannot hold both of them now."""
    before = {file["path"]: file["sha256"] for file in _files(base)}
    for file in _files(new):
        path, digest = file["path"], file["sha256"]
        if before.get(path, digest) != digest:
            raise HarnessError(
                f"both runs name {path}, which was {_short(before[path])} in {base.name} and {_short(digest)} in "
                f"{new.name}: one file cannot be both",
                where="policy",
                mend="keep each policy, and each file of weights, under a name of its own" + _commits(base, new),
            )


def _files(stored: StoredRun) -> list[dict[str, Any]]:
    """Return the records of the files that a run's policy was made of."""
    file = _policy_file(stored)
    return [*([file] if file is not None else []), *((stored.record.get("policy") or {}).get("weights") or ())]


def _commits(*runs: StoredRun) -> str:
    commits = [((stored.record.get("git") or {}).get("commit") or "")[:_DIGITS] for stored in runs]
    known = [f"{stored.name} at commit {commit}" for stored, commit in zip(runs, commits, strict=True) if commit]
    return f" (git may have them: {', '.join(known)})" if known else ""


def _policy_file(stored: StoredRun) -> dict[str, Any] | None:
    file: dict[str, Any] | None = (stored.record.get("policy") or {}).get("file")
    return file


def _short(digest: str) -> str:
    return f"{digest[:_DIGITS]}.."


def _listed(indices: Iterable[int]) -> str:
    """Return whole numbers in order as ranges, such as `0 to 7, 9`."""
    ranges: list[list[int]] = []
    for index in sorted(indices):
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in ranges)
