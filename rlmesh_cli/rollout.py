"""The loop: planned episodes over free lanes, one result an episode.

Axes: N lanes, R running lanes (rows of the roster), M asking rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count as count_from
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from rlmesh_adapters.batches import Batch, BatchLayout, put_rows, row_of, take_rows
from rlmesh_adapters.chunks import ChunkReplay, with_chunk_axis
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.contract import RouteContract, RoutePlan
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import Failure
from rlmesh_adapters.predictions import NO_FAILURES, Prediction
from rlmesh_adapters.roster import Roster
from rlmesh_envs.steps import LaneResets, LaneSteps

from .episodes import Episode, EpisodeResult
from .fingerprints import TraceBook
from .outcomes import InfoReader
from .plays import Ending, Play, Shares, finish


class Lanes(Protocol):
    """What the loop needs of lanes; see rlmesh_envs.lanes for one that keeps it."""

    num_envs: int

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset some lanes; those that are not in the answer start with a later step."""
        ...

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step some lanes with (R, ...) actions."""
        ...


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When an episode is ended by us.

    steps: most steps. seconds: most wall-clock seconds. None is no limit.
    """

    steps: int | None = None
    seconds: float | None = None


class Tally(msgspec.Struct):
    """Counts and seconds of a whole run.

    steps: lane-steps. vector_steps: steps of all running lanes together. calls: policy calls; rows: their rows.
    """

    steps: int = 0
    vector_steps: int = 0
    calls: int = 0
    rows: int = 0
    step_seconds: float = 0.0
    reset_seconds: float = 0.0
    predict_seconds: float = 0.0
    policy_seconds: float = 0.0

    def add_calls(self, calls: int, rows: int) -> None:
        """Add policy calls and the rows they were asked for."""
        self.calls += calls
        self.rows += rows

    def add(self, lanes: int, taken: int, predicting: float, stepping: float, thinking: float) -> None:
        """Add `taken` vector steps of `lanes` lanes and their seconds."""
        self.policy_seconds += thinking
        self.steps += lanes * taken
        self.vector_steps += taken
        self.predict_seconds += predicting
        self.step_seconds += stepping


class Rollout:
    """Plays every planned episode once and counts each.

    lanes: where they are played. is_seeded: whether single episodes start from their own seed; if not, each lane
    gets a fixed share of the plan beforehand, so that short episodes are not over-counted.
    engine, route: the configured policy. contract, plan: how it was configured.
    episodes: the plan. reader: what is read from infos. limits: see Limits.
    clock: returns seconds. on_answer: called once, when the policy's first call went well.
    on_tick: called at most four times a second while episodes run.
    """

    def __init__(
        self,
        lanes: Lanes,
        engine: AdapterEngine,
        route: str,
        *,
        contract: RouteContract,
        plan: RoutePlan,
        episodes: Sequence[Episode],
        reader: InfoReader,
        limits: Limits,
        clock: Callable[[], float],
        is_seeded: bool = True,
        on_answer: Callable[[], None] = lambda: None,
        on_tick: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        self.tally = Tally()
        self.should_stop = False
        #: What loses precision when observations are stored, or empty.
        self.casts = ""
        self._lanes, self._engine, self._route = lanes, engine, route
        self._reader, self._limits, self._clock = reader, limits, clock
        self._is_seeded = is_seeded
        self._on_answer, self._on_tick = on_answer, on_tick
        self._predict = engine.route(route).predict
        self._wants_step = plan.wants_context
        self._plan = plan
        self._thinking = 0.0
        self._layout = BatchLayout(contract.observation)
        self._trace = TraceBook(lanes.num_envs, contract.action)
        self._replay = ChunkReplay(lanes.num_envs, plan.horizon)
        self._shares = Shares()
        self._queues = _queues(episodes, lanes.num_envs, is_seeded=is_seeded)
        self._plays: dict[int, Play] = {}
        self._waiting: dict[int, Play] = {}
        self._roster = Roster((), ())
        self._observations: Batch = self._layout.allocate(0)
        self._has_answered = False
        self._step_limit_at: float = float("inf")
        self._deadline = float("inf")
        self._tick_at = 0.0

    @property
    def in_flight(self) -> int:
        """Episodes that were started and have no result."""
        return len(self._plays) + len(self._waiting)

    def run(self) -> Iterator[list[EpisodeResult]]:
        """Yield the results of episodes as soon as they end, until all have ended or `should_stop` is set.

        Raises what makes the whole run meaningless: PolicyCallError and ActionError of the first call.
        """
        results = self._start(range(self._lanes.num_envs))
        while True:
            if results:
                yield results
            if self.should_stop or not (self._plays or self._waiting):
                return
            results = self._advance()

    def _advance(self) -> list[EpisodeResult]:
        """Play on until an episode ends or another may start; return the results.

        Between two such moments the company of lanes stays the same, so sums are kept in local names and
        added up once.
        """
        roster, clock, predict = self._roster, self._clock, self._predict
        count, lanes, episodes = roster.count, roster.lanes, roster.episodes
        step_lanes, stretch = self._lanes.step_lanes, self._trace.open(roster)
        is_direct = self._is_direct(roster)
        observations = self._observations
        most = min(self._step_limit_at - self._shares.steps, self._trace.room)
        wake_at = min(self._deadline, self._tick_at)
        predicting = stepping = self._thinking = thinking = 0.0
        failed: Mapping[int, Failure] = NO_FAILURES
        now = clock()
        for taken in count_from(1):
            if is_direct:
                # Nothing is replayed: the only action of each call is executed at once.
                if self._wants_step:
                    self._set_steps(roster, taken - 1)
                prediction = predict(observations, episodes)
                actions, clipped, failed = prediction.actions, prediction.clipped, prediction.failures
                thinking += prediction.seconds
            else:
                actions, clipped, failed = self._next_actions(roster, taken - 1)
            asked = clock()
            predicting += asked - now
            if failed:
                break
            steps = step_lanes(actions, lanes)
            now = clock()
            stepping += now - asked
            if count:
                stretch.add(actions, steps.rewards)
            observations = steps.observations
            if clipped is not None:
                self._count_clipped(roster, clipped)
            if steps.infos is not None:
                self._read(roster, steps)
            if steps.ended or taken >= most or steps.failures or steps.started or self.should_stop:
                break
            if now >= wake_at:
                break
        self._observations = observations
        finished = taken - bool(failed)
        if is_direct:
            self._shares.calls += taken
            self.tally.add_calls(taken, taken * count)
        thinking += self._thinking
        self.tally.add(count, finished, predicting, stepping, thinking)
        self._shares.add(finished, max(count, 1), stepping, predicting, thinking)
        self._tick(now)
        if failed:
            return self._close_failed(roster, prediction if is_direct else None, failed)
        return self._settle(roster, steps, now=now)

    def _is_direct(self, roster: Roster) -> bool:
        """Tell whether every lane is asked at every step and nothing is queued for any."""
        return (
            not self._plan.is_chunked
            and self._has_answered
            and roster.count > 0
            and self._replay.asking(roster) is None
        )

    def _next_actions(
        self, roster: Roster, since: int
    ) -> tuple[Batch, npt.NDArray[np.bool_] | None, Mapping[int, Failure]]:
        """Return every running lane's next action (R, ...), which were clipped, and rows without an action.

        since: vector steps since the shares were added up.
        """
        if not roster.count:
            return None, None, NO_FAILURES
        asking = self._replay.asking(roster)
        if asking is None or asking:
            prediction = self._ask(roster, asking, since)
            failures = self._load(roster, asking, prediction)
            if failures:
                return None, None, failures
        actions, clipped = self._replay.pop(roster)
        return actions, clipped, NO_FAILURES

    def _ask(self, roster: Roster, asking: Sequence[int] | None, since: int) -> Prediction:
        """Ask the policy for the rows whose queue is empty; None is all of them."""
        if asking is None:
            batch, episodes = self._observations, roster.episodes
            self._shares.calls += 1
        else:
            batch = take_rows(self._observations, asking)
            episodes = tuple(roster.episodes[row] for row in asking)
            for row in asking:
                self._plays[roster.lanes[row]].calls += 1
        if self._wants_step:
            self._set_steps(roster, since)
        prediction = self._predict(batch, episodes)
        self._thinking += prediction.seconds
        self.tally.add_calls(1, len(episodes))
        if not self._has_answered:
            self._has_answered = True
            self._on_answer()
        return prediction

    def _set_steps(self, roster: Roster, since: int) -> None:
        """Tell each episode's context the step that its policy is asked for."""
        now = self._shares.steps + since
        for lane, context in zip(roster.lanes, roster.episodes, strict=True):
            context.step = now - self._plays[lane].begun_step

    def _load(self, roster: Roster, asking: Sequence[int] | None, prediction: Prediction) -> Mapping[int, Failure]:
        """Queue what a call gave; return the failures by row of the roster."""
        rows = range(roster.count) if asking is None else asking
        actions, clipped, failures = prediction.actions, prediction.clipped, prediction.failures
        if not self._plan.is_chunked and actions is not None:
            actions = with_chunk_axis(actions)
            clipped = None if clipped is None else clipped[:, None]
        if not failures:
            self._replay.load(roster, asking, actions, prediction.lengths, clipped)
            return NO_FAILURES
        good = [place for place in range(len(rows)) if place not in failures]
        if good:
            lengths = prediction.lengths
            self._replay.load(
                roster,
                [rows[place] for place in good],
                take_rows(actions, good),
                None if lengths is None else [lengths[place] for place in good],
                None if clipped is None else clipped[good],
            )
        return {rows[place]: failure for place, failure in failures.items()}

    def _close_failed(
        self, roster: Roster, prediction: Prediction | None, failed: Mapping[int, Failure]
    ) -> list[EpisodeResult]:
        """Close episodes whose policy failed; the others keep the actions they were given.

        prediction: of a direct call, which is not queued yet.
        """
        if prediction is not None:
            self._load(roster, None, prediction)
        # The policy may keep the batch it was given, so no first observation is written into it.
        self._observations = take_rows(self._observations, range(roster.count))
        endings = [Ending(row, failure=failure) for row, failure in failed.items()]
        return self._close(roster, endings, drop_last=False)

    def _tick(self, now: float) -> None:
        if now >= self._tick_at:
            self._tick_at = now + 0.25
            self._on_tick(self.tally)

    def _count_clipped(self, roster: Roster, clipped: Any) -> None:
        for row in clipped.nonzero()[0].tolist():
            self._plays[roster.lanes[row]].clipped += 1

    def _read(self, roster: Roster, steps: LaneSteps) -> None:
        for row, info in enumerate(steps.infos or ()):
            if info and row not in steps.failures:
                self._reader.read(info, self._plays[roster.lanes[row]].outcome)

    def _settle(self, roster: Roster, steps: LaneSteps, *, now: float) -> list[EpisodeResult]:
        """Close what ended with this step, and start what comes next."""
        endings = [Ending(row, terminated, truncated) for row, terminated, truncated in steps.ended]
        if steps.failures:
            endings += [Ending(row, failure=failure) for row, failure in steps.failures.items()]
        if self._shares.steps >= self._step_limit_at or now >= self._deadline:
            endings += self._capped(roster, {ending.row for ending in endings}, now)
        if steps.observations is None:
            self._observations = self._layout.allocate(len(roster))
        results = self._close(roster, endings, drop_last=True) if endings else []
        if steps.started is not None:
            failed = self._join_or_fail(steps.started, self._waiting)
            results += failed + self._start([result.lane for result in failed])
        return results

    def _capped(self, roster: Roster, ended: set[int], now: float) -> list[Ending]:
        capped = []
        for row, lane in enumerate(roster.lanes):
            play = self._plays[lane]
            if row in ended:
                continue
            if self._limits.steps and self._shares.steps - play.begun_step >= self._limits.steps:
                capped.append(Ending(row, cap="step_cap"))
            elif self._limits.seconds and now - play.begun_clock >= self._limits.seconds:
                capped.append(Ending(row, cap="time_cap"))
        return capped

    def _close(self, roster: Roster, endings: list[Ending], *, drop_last: bool) -> list[EpisodeResult]:
        """Make the results of the given rows, free their lanes and start the next episodes.

        drop_last: the last recorded step of failed rows did not finish.
        """
        results, contexts, freed = [], [], []
        now = self._clock()
        for ending in sorted(endings, key=_row) if len(endings) > 1 else endings:
            lane = roster.lanes[ending.row]
            play = self._plays.pop(lane)
            self._replay.clear(lane)
            traced = self._trace.end(lane, drop_last=drop_last and ending.failure is not None)
            results.append(finish(play, traced, ending, self._reader, self._shares, now))
            contexts.append(play.context)
            freed.append(lane)
        self._engine.end_episodes(self._route, contexts)
        return results + self._start(freed)

    def _start(self, lanes: Sequence[int]) -> list[EpisodeResult]:
        """Start the next planned episode on each free lane; a failed reset is a result and frees it again."""
        results: list[EpisodeResult] = []
        free: Sequence[int] = lanes
        while free:
            plays = {lane: self._next_play(lane) for lane in free if self._queues[lane]}
            if not plays:
                break
            began = self._clock()
            resets = self._lanes.reset_lanes(list(plays), [play.context.seed for play in plays.values()])
            spent = self._clock() - began
            self.tally.reset_seconds += spent
            for play in plays.values():
                play.reset_seconds = spent / len(plays)
            if resets.casts:
                self.casts = resets.casts
            failed = self._join_or_fail(resets, plays)
            self._waiting.update(plays)
            results += failed
            free = [result.lane for result in failed]
        self._seat()
        return results

    def _next_play(self, lane: int) -> Play:
        episode = self._queues[lane].popleft()
        seed = episode.seed if self._is_seeded else None
        context = EpisodeContext(episode.id, episode.index, seed, rng_seed=episode.seed)
        return Play(context, lane, self._clock())

    def _join_or_fail(self, resets: LaneResets, plays: dict[int, Play]) -> list[EpisodeResult]:
        """Move plays that reached their first observation among the running ones; return those that failed."""
        results = []
        for row, lane in enumerate(resets.lanes):
            play = plays.pop(lane)
            self._trace.begin(lane)
            play.begin(self._shares)
            failure = resets.failures.get(row) if resets.failures else None
            if failure is None:
                play.first = row_of(resets.observations, row)
                play.read_start(resets.infos[row], self._reader)
                self._plays[lane] = play
                continue
            ending = Ending(row, failure=failure)
            traced = self._trace.end(lane)
            results.append(finish(play, traced, ending, self._reader, self._shares, self._clock()))
        return results

    def _seat(self) -> None:
        """Make the roster of the running lanes and its batch of observations."""
        plays, before = self._plays, self._roster.lanes
        lanes = before if plays.keys() == set(before) else tuple(sorted(plays))
        fresh = [row for row, lane in enumerate(lanes) if plays[lane].first is not None]
        if lanes is not before:
            self._reseat(lanes)
        for row in fresh:
            play = plays[lanes[row]]
            self._layout.write(self._observations, row, play.first)
            play.first = None
        contexts = [plays[lane].context for lane in lanes]
        self._roster = self._roster.playing(contexts) if lanes is before else Roster(lanes, contexts)
        self._set_limits()

    def _reseat(self, lanes: tuple[int, ...]) -> None:
        """Move the observations of lanes that go on to their new rows."""
        old = {lane: row for row, lane in enumerate(self._roster.lanes)}
        kept = [row for row, lane in enumerate(lanes) if self._plays[lane].first is None]
        seated = self._layout.allocate(len(lanes))
        if kept:
            put_rows(seated, kept, take_rows(self._observations, [old[lanes[row]] for row in kept]))
        self._observations = seated

    def _set_limits(self) -> None:
        plays = self._plays.values()
        if self._limits.steps is not None:
            begun = min((play.begun_step for play in plays), default=0)
            self._step_limit_at = begun + self._limits.steps
        if self._limits.seconds is not None:
            self._deadline = min((play.begun_clock for play in plays), default=0.0) + self._limits.seconds


def _row(ending: Ending) -> int:
    return ending.row


def _queues(episodes: Sequence[Episode], num_lanes: int, *, is_seeded: bool) -> list[deque[Episode]]:
    """Return each lane's queue: one that all share, or fixed shares of the plan."""
    if is_seeded:
        shared = deque(episodes)
        return [shared] * num_lanes
    return [deque(episodes[lane::num_lanes]) for lane in range(num_lanes)]
