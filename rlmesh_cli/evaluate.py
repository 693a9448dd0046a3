"""The wiring of one evaluation: policy, lanes, engine, loop and store."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rlmesh_adapters.advisories import Advisory, AdvisoryBook
from rlmesh_adapters.contract import RouteContract, RoutePlan
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import HarnessError
from rlmesh_envs.make import Lanes, make_lanes
from rlmesh_envs.request import EnvInfo, EnvRequest, WrapperRequest
from rlmesh_envs.spaces import view_of

from .episodes import EpisodeResult, plan_episodes
from .gates import GateVerdict, info_metrics, judge, parse_gate
from .judging import note_results
from .loading import PolicySource, load_policy, prepare_worker
from .outcomes import InfoReader
from .provenance import GitState, file_record, host, versions, weight_files
from .rollout import Limits, Rollout, Tally
from .route import Route
from .stats import Summary, summarise
from .store import RUN_SCHEMA, RunStore

#: Steps after which we end an episode of an environment that has no limit of its own.
GUARD_STEPS = 100_000
_ROUTE = "eval"


class Watcher(Protocol):
    """Whoever looks on while episodes are played."""

    def begin(self, planned: int) -> None:
        """Called once, before the first step."""
        ...

    def tick(self, tally: Tally, done: int) -> None:
        """Called now and then with what was done so far."""
        ...

    def end(self) -> None:
        """Called once, after the last step."""
        ...


class Stopper(Protocol):
    """Whoever may ask for an early end."""

    def watch(self, stop: Callable[[], None]) -> None:
        """From now on, call `stop` when an end is wanted."""
        ...


class Evaluation(msgspec.Struct, kw_only=True):
    """A run that was played, whole or in part.

    folder: where it was written. status: `finished` or `interrupted`. in_flight: episodes broken off.
    seconds: wall-clock seconds of the loop. seeded: whether single episodes started from their own seed.
    instances: `shared`, or `lane` if each lane had a policy object of its own.
    """

    folder: Path
    status: str
    rows: list[EpisodeResult]
    summary: Summary
    verdicts: list[GateVerdict]
    advisories: tuple[Advisory, ...]
    tally: Tally
    seconds: float
    in_flight: int
    seeded: bool
    instances: str = "shared"


def evaluate(route: Route, *, out: Path, watcher: Watcher, stopper: Stopper, source: dict[str, Any]) -> Evaluation:
    """Play a route's episodes and write the run.

    out: folder that holds runs. source: `argv` and `route_file`, for the record.

    Raises HarnessError for whatever shows before the first policy call went well; no folder is made then.
    """
    gates = tuple(parse_gate(text) for text in route.gates)
    metrics = tuple(dict.fromkeys(route.metrics + info_metrics(gates)))
    policy = load_policy(route.policy.source, route.policy.params)
    lanes, env = make_lanes(env_request(route))
    book = AdvisoryBook()
    engine = AdapterEngine(clock=time.perf_counter, advisories=book)
    try:
        return _Run(route, policy, lanes, env, engine, metrics).play(
            gates=gates, out=out, watcher=watcher, stopper=stopper, source=source
        )
    finally:
        engine.close()
        lanes.close()


def env_request(route: Route) -> EnvRequest:
    """Return what a route asks of the environment's side."""
    env = route.env
    is_own = env.autoreset is None and env.vectorization != "native"
    wrappers = (
        WrapperRequest(name=wrapper)
        if isinstance(wrapper, str)
        else WrapperRequest(name=wrapper.name, kwargs=wrapper.kwargs)
        for wrapper in env.wrappers
    )
    return EnvRequest(
        id=env.id,
        kwargs=env.kwargs,
        imports=env.imports,
        wrappers=tuple(wrappers),
        # A lane without an episode would only cost its environment; others step in lockstep and need them all.
        num_envs=min(route.num_envs, route.episodes) if is_own else route.num_envs,
        vectorization=env.vectorization,
        autoreset=env.autoreset,
        start_method=env.start_method,
        max_episode_steps=env.max_episode_steps,
        prepare=partial(prepare_worker, route.policy.source),
    )


class _Run:
    """One evaluation in progress."""

    def __init__(
        self,
        route: Route,
        policy: PolicySource,
        lanes: Lanes,
        env: EnvInfo,
        engine: AdapterEngine,
        metrics: tuple[str, ...],
    ) -> None:
        self._route, self._policy, self._lanes, self._env, self._engine = route, policy, lanes, env, engine
        self._metrics = metrics
        self._contract = RouteContract(
            observation=view_of(lanes.single_observation_space),
            action=view_of(lanes.single_action_space),
            num_lanes=lanes.num_envs,
            horizon=route.horizon,
            sharing=route.instances,
        )
        self._first: Any = None
        self._plan = engine.configure(_ROUTE, self._build, self._contract)
        self._store: RunStore | None = None
        self._git = GitState(policy.file.parent if policy.file is not None else Path.cwd())
        self._started = _now()

    def _build(self) -> Any:
        built = self._policy.build(self._contract.action)
        if self._first is None:
            self._first = built
        return built

    def play(
        self, *, gates: Any, out: Path, watcher: Watcher, stopper: Stopper, source: dict[str, Any]
    ) -> Evaluation:
        route, env = self._route, self._env
        rule = route.success_rule
        rows: list[EpisodeResult] = []

        def open_store() -> None:
            self._store = RunStore(out, env=route.env.id, policy=self._policy.label)
            self._store.write("run.json", self._record("running", source))

        rollout = Rollout(
            self._lanes,
            self._engine,
            _ROUTE,
            contract=self._contract,
            plan=self._plan,
            episodes=plan_episodes(route.episode_seeds),
            reader=InfoReader(rule, self._metrics),
            limits=self._limits(),
            clock=time.perf_counter,
            is_seeded=env.is_seeded,
            on_answer=open_store,
            on_tick=lambda tally: watcher.tick(tally, len(rows)),
        )

        def stop() -> None:
            rollout.should_stop = True

        stopper.watch(stop)
        watcher.begin(route.episodes)
        began = time.perf_counter()
        status = "finished"
        try:
            for results in rollout.run():
                if self._store is None:
                    open_store()
                assert self._store is not None
                self._store.append(*results)
                rows.extend(results)
        except KeyboardInterrupt:
            status = "interrupted"
        except HarnessError:
            if self._store is not None:
                self._store.write("run.json", self._record("failed", source))
                self._store.close()
            raise
        finally:
            watcher.end()
        seconds = time.perf_counter() - began
        if rollout.should_stop and len(rows) < route.episodes:
            status = "interrupted"
        rows.sort(key=lambda row: row.index)
        summary = summarise(rows, planned=route.episodes, rule=rule.describe(), metrics=self._metrics)
        note_results(
            self._engine.advisories, summary, env, self._contract, guard=self._guard(), casts=rollout.casts
        )
        if self._store is None:
            open_store()
        assert self._store is not None
        evaluation = Evaluation(
            folder=self._store.path,
            status=status,
            rows=rows,
            summary=summary,
            verdicts=[judge(gate, summary) for gate in gates],
            advisories=tuple(self._engine.advisories),
            tally=rollout.tally,
            seconds=seconds,
            in_flight=rollout.in_flight,
            seeded=env.is_seeded,
            instances=self._plan.sharing,
        )
        self._store.write("run.json", self._record(status, source))
        self._store.write("summary.json", summary_record(evaluation))
        self._store.close()
        return evaluation

    def _guard(self) -> int | None:
        """Return the steps after which we end an episode, None if the environment has a limit."""
        if self._env.max_episode_steps is not None:
            return None
        return self._route.env.max_episode_steps or GUARD_STEPS

    def _limits(self) -> Limits:
        return Limits(steps=self._guard(), seconds=self._route.env.max_episode_seconds)

    def _record(self, status: str, source: dict[str, Any]) -> dict[str, Any]:
        route, policy, plan = self._route, self._policy, self._plan
        is_over = status != "running"
        if is_over:
            self._git_state = self._git.read()
        return {
            "schema": RUN_SCHEMA,
            "status": status,
            "started_at": self._started,
            "finished_at": _now() if is_over else None,
            **source,
            "route": msgspec.to_builtins(route),
            "seeds": list(route.episode_seeds),
            "seeded": self._env.is_seeded,
            "env": _env_record(self._env, self._lanes, self._contract),
            "policy": _policy_record(policy, plan, self._first, route)
            | {"chunk_length": self._engine.chunk_length(_ROUTE)},
            "success_rule": route.success_rule.describe(),
            "limits": {
                "steps": self._env.max_episode_steps or self._guard(),
                "seconds": route.env.max_episode_seconds,
            },
            "advisories": [_advisory_record(advisory) for advisory in self._engine.advisories],
            "plan_text": None,
            "probe": None,
            "versions": versions((self._first.__class__.__module__, _env_module(self._lanes))),
            "host": host(),
            "git": self._git_state if is_over else None,
        }


def _env_record(env: EnvInfo, lanes: Lanes, contract: RouteContract) -> dict[str, Any]:
    return {
        "id": env.id,
        "layers": list(env.layers),
        "lanes": lanes.num_envs,
        "autoreset": env.autoreset,
        "max_episode_steps": env.max_episode_steps,
        "observation_space": contract.observation.label,
        "action_space": contract.action.label,
    }


def _policy_record(policy: PolicySource, plan: RoutePlan, first: Any, route: Route) -> dict[str, Any]:
    return {
        "label": policy.label,
        "file": file_record(policy.file) if policy.file is not None else None,
        "weights": weight_files(route.policy.params, first),
        "corner": plan.corner,
        "corners": list(plan.corners),
        "horizon": plan.horizon,
        "instances": plan.sharing,
    }


def _env_module(lanes: Lanes) -> str:
    envs = getattr(lanes, "envs", None)
    return type(envs[0].unwrapped).__module__ if envs else ""


def _advisory_record(advisory: Advisory) -> dict[str, Any]:
    return {
        "code": advisory.code,
        "severity": advisory.severity,
        "message": advisory.message,
        "count": advisory.count,
    }


def summary_record(evaluation: Evaluation) -> dict[str, Any]:
    """Return what `summary.json` and `--json` say of a run."""
    summary, tally = evaluation.summary, evaluation.tally
    returns = summary.returns
    return {
        "schema": "rlmesh.summary.v1",
        "run": str(evaluation.folder),
        "status": evaluation.status,
        "seeded": evaluation.seeded,
        "instances": evaluation.instances,
        "success_rate": summary.success.rate,
        "mean_return": returns.mean if returns is not None else None,
        **msgspec.to_builtins(summary),
        "in_flight": evaluation.in_flight,
        "gates": msgspec.to_builtins(evaluation.verdicts),
        "advisories": [_advisory_record(advisory) for advisory in evaluation.advisories],
        "time": {
            "total": evaluation.seconds,
            "env_step": tally.step_seconds,
            "env_reset": tally.reset_seconds,
            "policy": tally.policy_seconds,
            "harness": max(
                0.0, evaluation.seconds - tally.step_seconds - tally.reset_seconds - tally.policy_seconds
            ),
        },
        "steps": tally.steps,
        "vector_steps": tally.vector_steps,
        "calls": tally.calls,
        "call_rows": tally.rows,
        "steps_per_second": tally.steps / evaluation.seconds if evaluation.seconds > 0 else None,
    }


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
