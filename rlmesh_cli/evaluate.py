"""The wiring of one evaluation: policy, lanes, engine, loop and store."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from rlmesh_adapters.advisories import AdvisoryBook
from rlmesh_adapters.baselines import BASELINES
from rlmesh_adapters.contract import RouteContract, RoutePlan
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_envs.make import Lanes, make_lanes
from rlmesh_envs.request import EnvInfo

from .contracting import contract_of, env_request, guard_of
from .episodes import Episode, EpisodeResult, plan_episodes
from .evaluation import Evaluation, RunInterruptedError, summary_record
from .gates import Gate, info_metrics, judge, parse_gate
from .judging import note_results
from .loading import PolicySource, load_policy
from .outcomes import InfoReader
from .provenance import GitState
from .rollout import Limits, Rollout
from .run_record import RunRecord
from .schema import Route
from .stats import summarise
from .store import RunStore
from .tallies import Tally
from .verifying import Reels, chosen_episodes, verify

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


def evaluate(
    route: Route,
    *,
    out: Path,
    watcher: Watcher,
    stopper: Stopper,
    source: dict[str, Any],
    trusts_entrypoints: bool = False,
    verified: int | None = None,
    is_probed: bool = True,
    is_forced: bool = False,
) -> Evaluation:
    """Play a route's episodes and write the run.

    out: folder that holds runs. source: `argv`, `route_file` and its hash, for the record.
    trusts_entrypoints: whether functions that documents only name are imported and run.
    verified: how many episodes are played again on one lane, and compared.
    is_probed: whether a policy that lanes are to share is tested first; is_forced: and run whatever is found.

    Raises HarnessError for whatever shows before the first policy call went well, when no folder is made yet,
    and RunInterruptedError where the end was not waited for.
    """
    gates = tuple(parse_gate(text) for text in route.gates)
    policy = load_policy(route.policy.source, route.policy.params)
    lanes, env = make_lanes(env_request(route))
    with contextlib.ExitStack() as stack:
        stack.callback(lanes.close)
        git = GitState(policy.file.parent if policy.file is not None else Path.cwd())
        stack.callback(git.close)
        engine = AdapterEngine(clock=time.perf_counter, advisories=AdvisoryBook())
        stack.callback(engine.close)
        contract = contract_of(route, lanes, env, policy, source=source, trusts_entrypoints=trusts_entrypoints)
        guard = guard_of(route, env)
        decision = None
        if is_probed and contract.num_lanes > 1 and route.policy.source not in BASELINES:
            from .deciding import decide  # noqa: PLC0415 - one lane needs no probe

            decision = decide(policy, contract, route, engine.advisories, is_forced=is_forced)
            contract = msgspec.structs.replace(contract, sharing=decision.sharing, is_cleared=decision.is_cleared)
        record = RunRecord(
            route,
            source=source,
            policy=policy,
            env=env,
            lanes=lanes,
            contract=contract,
            guard=guard,
            git=git,
            probe=None if decision is None else decision.record,
        )
        run = _Run(
            route,
            record,
            policy=policy,
            lanes=lanes,
            env=env,
            engine=engine,
            contract=contract,
            guard=guard,
            gates=gates,
            out=out,
            verified=chosen_episodes(plan_episodes(route.episode_seeds), verified or 0),
        )
        evaluation = run.play(watcher, stopper)
        if verified is not None and evaluation.status == "finished":
            run.verify(evaluation)
        return evaluation


@contextlib.contextmanager
def _settled_heap() -> Iterator[None]:
    """Keep the garbage collector from going through all that was loaded, again and again, while the loop runs."""
    if gc.get_freeze_count():  # somebody else's
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class _Run:
    """One evaluation in progress; see RunRecord for `contract` and `guard`.

    verified: episodes that are played again.
    """

    def __init__(
        self,
        route: Route,
        record: RunRecord,
        *,
        policy: PolicySource,
        lanes: Lanes,
        env: EnvInfo,
        engine: AdapterEngine,
        contract: RouteContract,
        guard: int | None,
        gates: tuple[Gate, ...],
        out: Path,
        verified: Sequence[Episode],
    ) -> None:
        self._verified, self._reels = verified, Reels(verified, contract.action)
        self._route, self._record, self._policy = route, record, policy
        self._lanes, self._env, self._engine = lanes, env, engine
        self._contract, self._guard, self._gates, self._out = contract, guard, gates, out
        self._metrics = tuple(dict.fromkeys(route.metrics + info_metrics(gates)))
        self._first: Any = None
        self._plan = engine.configure(_ROUTE, self._build, self._contract)
        self._rows: list[EpisodeResult] = []
        self._opened: RunStore | None = None
        self._chunk_length: int | None = None
        self._actuators: list[Any] = []

    def _build(self) -> Any:
        built = self._policy.build(self._contract.action)
        if self._first is None:
            self._first = built
        return built

    def play(self, watcher: Watcher, stopper: Stopper) -> Evaluation:
        """Play every episode; whatever happens, the record does not stay at `running`."""
        rollout = self._rollout(watcher)

        def stop() -> None:
            rollout.should_stop = True

        stopper.watch(stop)
        try:
            return self._finish(rollout, *self._play_all(rollout, watcher))
        except BaseException as error:
            if self._opened is None:
                raise
            is_stopped = isinstance(error, KeyboardInterrupt)
            with contextlib.suppress(OSError):  # of a disk that is full, the first error says more
                self._write_record("interrupted" if is_stopped else "failed")
            if is_stopped:
                raise RunInterruptedError(self._opened.path) from error
            raise
        finally:
            if self._opened is not None:
                self._opened.close()

    def verify(self, evaluation: Evaluation) -> None:
        """Play some episodes again on one lane with a fresh policy, and note what came of it."""
        route = msgspec.structs.replace(self._route, num_envs=1)
        reels = Reels(self._verified, self._contract.action)
        lanes, _ = make_lanes(env_request(route))
        engine = AdapterEngine(advisories=AdvisoryBook())
        with contextlib.closing(lanes), contextlib.closing(engine):
            # One lane plays one episode after another; what an instance keeps must not reach the next.
            sharing = "episode" if self._plan.sharing == "episode" else "auto"
            contract = msgspec.structs.replace(self._contract, num_lanes=1, sharing=sharing)
            plan = engine.configure(_ROUTE, lambda: self._policy.build(contract.action), contract)
            rollout = self._rollout_of(lanes, engine, contract, plan, self._verified, on_trace=reels.keep)
            again = [row for rows in rollout.run() for row in rows]
        evaluation.verification = verify(evaluation.rows, again, self._reels, reels)
        self._store().write("summary.json", summary_record(evaluation))

    def _rollout_of(
        self,
        lanes: Lanes,
        engine: AdapterEngine,
        contract: RouteContract,
        plan: RoutePlan,
        episodes: Sequence[Episode],
        **watching: Any,
    ) -> Rollout:
        route = self._route
        return Rollout(
            lanes,
            engine,
            _ROUTE,
            contract=contract,
            plan=plan,
            episodes=episodes,
            reader=InfoReader(route.success_rule, self._metrics),
            limits=Limits(steps=self._guard, seconds=route.env.max_episode_seconds),
            clock=time.perf_counter,
            is_seeded=self._env.is_seeded,
            **watching,
        )

    def _rollout(self, watcher: Watcher) -> Rollout:
        route = self._route

        def open_store() -> None:
            self._store()

        return self._rollout_of(
            self._lanes,
            self._engine,
            self._contract,
            self._plan,
            plan_episodes(route.episode_seeds),
            on_answer=open_store,
            on_trace=self._reels.keep if self._verified else None,
            on_tick=lambda tally: watcher.tick(tally, len(self._rows)),
        )

    def _store(self) -> RunStore:
        """Return the run's folder; the first time it is asked for, it is made.

        Episodes whose reset failed may have come before; they are written then.
        """
        if self._opened is None:
            self._record.open(self._plan, self._first)
            self._opened = RunStore(self._out, env=self._route.env.id, policy=self._policy.label)
            self._write_record("running")
            if self._rows:
                self._opened.append(*self._rows)
        return self._opened

    def _write_record(self, status: str) -> None:
        record = self._record.make(status, self._engine.advisories, self._chunk_length, self._actuators)
        self._store().write("run.json", record)

    def _play_all(self, rollout: Rollout, watcher: Watcher) -> tuple[str, float]:
        """Play what is planned, write each row, close the policy; return the status and the loop's seconds."""
        status = "finished"
        watcher.begin(self._route.episodes)
        began = time.perf_counter()
        try:
            with _settled_heap():
                for results in rollout.run():
                    if self._opened is not None:
                        self._opened.append(*results)
                    self._rows.extend(results)
        except KeyboardInterrupt:
            status = "interrupted"
        finally:
            watcher.end()
        seconds = time.perf_counter() - began
        self._chunk_length = self._engine.chunk_length(_ROUTE)
        self._actuators = self._engine.action_uses(_ROUTE)
        # Before the last record is made, so that it can say what `close` of the policy raised.
        try:
            self._engine.release(_ROUTE)
        except KeyboardInterrupt:  # somebody does not wait for `close` of the policy
            status = "interrupted"
        if rollout.should_stop and len(self._rows) < self._route.episodes:
            status = "interrupted"
        return status, seconds

    def _finish(self, rollout: Rollout, status: str, seconds: float) -> Evaluation:
        route, env, engine = self._route, self._env, self._engine
        rows = sorted(self._rows, key=lambda row: row.index)
        rule = route.success_rule.describe()
        summary = summarise(rows, planned=route.episodes, rule=rule, metrics=self._metrics)
        note_results(engine.advisories, summary, env, self._contract, guard=self._guard, casts=rollout.casts)
        store = self._store()
        evaluation = Evaluation(
            folder=store.path,
            status=status,
            rows=rows,
            summary=summary,
            verdicts=[judge(gate, summary) for gate in self._gates],
            advisories=tuple(engine.advisories),
            tally=rollout.tally,
            seconds=seconds,
            in_flight=rollout.in_flight,
            seeded=env.is_seeded,
            instances=self._plan.sharing,
            probe=self._record.probe,
        )
        self._write_record(status)
        store.write("summary.json", summary_record(evaluation))
        return evaluation
