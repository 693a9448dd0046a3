"""RunRecord: what `run.json` says, while a run goes on and when it is over."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from rlmesh_envs.make import Lanes

from .episodes import plan_episodes
from .evaluation import advisory_records
from .provenance import GitState, file_record, files_beside, files_of, host, versions, weight_files
from .reading import data_files
from .schema import Route
from .stage import Stage
from .store import RUN_SCHEMA

if TYPE_CHECKING:
    from .run_reader import StoredRun


class Player(Protocol):
    """Whoever played: the stage, or a crew of workers."""

    @property
    def chunk_length(self) -> int | None:
        """Length of the policy's first chunk, None if there was none."""
        ...

    @property
    def actuators(self) -> list[Any]:
        """How far each component of a converted action was driven."""
        ...


class RunRecord:
    """Makes `run.json` of one run.

    stage: what the episodes are played on. source: `argv`, `route_file` and its hash.
    git: state of the checkout, read when the sitting is over; None leaves it out.
    """

    def __init__(self, stage: Stage, *, source: dict[str, Any], git: GitState | None) -> None:
        self._stage, self.source, self._git = stage, source, git
        self._started = _now()
        self._modules: tuple[str, ...] = ()
        self._policy_facts: dict[str, Any] | None = None
        self._env_files: list[dict[str, Any]] = []
        self._beside: list[dict[str, Any]] = []
        self._chunk_length: int | None = None
        self._actuators: Sequence[Any] = ()
        #: `run.json` as it was, where a run is gone on with.
        self.earlier: dict[str, Any] | None = None
        #: Episodes that count, where the run stopped before its plan was played.
        self.stopped_at: int | None = None
        #: Episodes that this sitting played.
        self.played = 0
        #: Why the run failed, if it did.
        self.failure: str | None = None
        #: Every episode of the plan.
        self.planned = plan_episodes(stage.route.episode_seeds)

    def open(self) -> None:
        """Take down what policy and environment are, once: their files are hashed as they are now."""
        if self._policy_facts is not None:
            return
        stage, plan = self._stage, self._stage.plan
        file = stage.policy.file
        self._modules = (type(stage.first).__module__, _env_module(stage.lanes))
        self._env_files = list(files_of(stage.env.files))
        known = {*stage.env.files, str(file)}
        beside = files_beside(self._modules, file)
        self._beside = list(files_of(path for path in beside if path not in known))
        self._policy_facts = {
            "label": stage.policy.label,
            "file": file_record(file) if file is not None else None,
            "weights": weight_files(stage.route.policy.params, stage.first, data_files(stage.read)),
            "corner": plan.corner,
            "corners": list(plan.corners),
            "horizon": plan.horizon,
        }

    def go_on(self, stored: StoredRun) -> None:
        """Go on with a run; a sitting that was killed could not write how many episodes it had played."""
        *before, last = earlier_sessions(stored.record)
        if last.get("finished_at") is None or last.get("played") is None:
            played = len(stored.every_row) - sum(session.get("played") or 0 for session in before)
            # Where rows of earlier sittings are lost, nobody knows.
            last = {**last, "played": played if played >= 0 else None}
        self.earlier = {**stored.record, "sessions": [*before, last]}
        # What was imported at the first call only is not loaded yet.
        loaded = {file["path"] for file in self._beside}
        earlier = stored.record.get("modules") or ()
        self._beside += [file for file in earlier if file["path"] not in loaded]
        self._chunk_length = stored.record.get("policy", {}).get("chunk_length")
        self._actuators = stored.record.get("actuators") or ()

    @property
    def probe(self) -> dict[str, Any] | None:
        """What was found before the run, in this sitting or the one before."""
        return self._stage.probe or (self.earlier or {}).get("probe")

    @property
    def sittings(self) -> int:
        """In how many sittings the run was played, this one among them."""
        return len(earlier_sessions(self.earlier)) + 1

    def take_down(self, player: Player) -> None:
        """Note what only those know who played, before the policy is released."""
        if player.chunk_length is not None:
            self._chunk_length = player.chunk_length
        self._actuators = added_up(self._actuators, msgspec.to_builtins(player.actuators))

    def make(self, status: str) -> dict[str, Any]:
        """Return the record as it stands now.

        status: `running`, `finished`, `interrupted`, `stopped` (by `max_errors`) or `failed`.
        """
        stage, route = self._stage, self._stage.route
        is_over = status != "running"
        ended = _now() if is_over else None
        earlier = self.earlier
        begun = self.source if earlier is None else {name: earlier.get(name) for name in self.source}
        return {
            "schema": RUN_SCHEMA,
            "status": status,
            **({} if self.failure is None else {"failure": self.failure}),
            "started_at": self._started if earlier is None else earlier["started_at"],
            "finished_at": ended,
            **begun,
            "sessions": [*earlier_sessions(earlier), self._session(ended)],
            "route": _route_record(route),
            "seeds": list(route.episode_seeds),
            "stopping_rule": route.until,
            "stopped_at": self.stopped_at,
            "seeded": stage.env.is_seeded,
            "env": self._env_facts(),
            "policy": {
                **(self._policy_facts or {}),
                "instances": stage.plan.sharing,
                "chunk_length": self._chunk_length,
            },
            "modules": self._beside,
            "probe": self.probe,
            "adapter": stage.plan.description.splitlines() or None,
            "conversion": stage.plan.conversion or None,
            "actuators": list(self._actuators),
            "success_rule": route.success_rule.describe(),
            "metrics": list(stage.metrics),
            "limits": {
                "steps": stage.env.max_episode_steps or stage.guard,
                "seconds": route.env.max_episode_seconds,
            },
            "advisories": advisory_records(stage.engine.advisories),
            "versions": versions(self._modules),
            "host": host(),
            "git": self._git.read() if is_over and self._git is not None else None,
        }

    def _session(self, ended: str | None) -> dict[str, Any]:
        return {
            "started_at": self._started,
            "finished_at": ended,
            "argv": self.source.get("argv"),
            "played": self.played,
            "lanes": self._stage.num_lanes,
            "workers": self._stage.workers,
        }

    def _env_facts(self) -> dict[str, Any]:
        env, contract = self._stage.env, self._stage.contract
        return {
            "id": env.id,
            "layers": list(env.layers),
            "files": self._env_files,
            "lanes": self._stage.num_lanes,
            "workers": env.workers,
            "autoreset": env.autoreset,
            "max_episode_steps": env.max_episode_steps,
            "observation_space": contract.observation.label,
            "action_space": contract.action.label,
        }


def added_up(before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Return how far actuators were driven in two sittings together: counts are added, the rest is the same."""
    if len(before) != len(now):
        return now or before
    return [
        {
            name: value + one.get(name, 0) if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in other.items()
        }
        for one, other in zip(before, now, strict=True)
    ]


def earlier_sessions(record: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the sittings that a record tells of; runs of before there were several are one."""
    if record is None:
        return []
    known = record.get("sessions")
    return list(known) if known else [{name: record.get(name) for name in ("started_at", "finished_at", "argv")}]


def _route_record(route: Route) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(route)
    if route.seeds is not None:
        del record["seed"]  # nothing counts from it, and a route that has both is refused
    return record


def _env_module(lanes: Lanes) -> str:
    envs = getattr(lanes, "envs", None)
    return type(envs[0].unwrapped).__module__ if envs else ""


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
