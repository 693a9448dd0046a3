"""The loop: planned episodes over free lanes, one result an episode.

Axes: N lanes, R running lanes (rows of the roster), M asking rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count as count_from
from typing import Any

from rlmesh_adapters.batches import BatchLayout, row_of, take_rows
from rlmesh_adapters.chunks import ChunkReplay
from rlmesh_adapters.context import EpisodeContext
from rlmesh_adapters.contract import RouteContract, RoutePlan
from rlmesh_adapters.engine import AdapterEngine
from rlmesh_adapters.errors import NO_FAILURES, Failure
from rlmesh_adapters.predictions import Prediction
from rlmesh_adapters.roster import Roster
from rlmesh_envs.steps import LaneResets, LaneSteps

from .asking import Asking
from .caps import Caps, Limits
from .episodes import Episode, EpisodeResult
from .lane_protocols import Lanes, SkippingLanes
from .lineup import Lineup, Queue
from .outcomes import InfoReader
from .plays import Company, Ending, Play, finish
from .schedules import Schedule
from .seats import Seats
from .tallies import Shares, Tally
from .traces import Column, TraceBook
from .unread import UnreadSteps

# Vector steps for which a lane of an environment that resets itself may keep us waiting.
_PATIENCE_STEPS = 100_000


class Rollout:
    """Plays every planned episode once and counts each.

    lanes: where they are played. is_seeded: whether single episodes start from their own seed; if not, each lane
    gets a fixed share of the plan beforehand, so that short episodes are not over-counted.
    engine, route: the configured policy. contract, plan: how it was configured.
    episodes: the plan. queue: in its place, what all lanes take their episodes from.
    reader: what is read from infos. limits: see Limits.
    is_aligned: whether episodes start where a chunk ends, see Schedule; of lanes that step by themselves.
    skipping: the lanes, if those that only replay shall be stepped without rendering; None renders every step.
    clock: returns seconds. on_answer: called once, when the policy's first call went well.
    on_tick: called at most four times a second while episodes run.
    on_trace: called with index, rewards and actions of each episode that ends (see TraceBook), to copy them.
    on_begin, on_end: called with the lane and context of an episode that stands at its first observation, and with
        its result before the lane is reset again; an episode that is begun anew after a fault has no end.
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
        is_aligned: bool = False,
        skipping: SkippingLanes | None = None,
        queue: Queue | None = None,
        on_answer: Callable[[], None] = lambda: None,
        on_tick: Callable[[Tally], None] = lambda tally: None,
        on_trace: Callable[[int, Sequence[Column]], None] | None = None,
        on_begin: Callable[[int, EpisodeContext], None] | None = None,
        on_end: Callable[[EpisodeResult], None] | None = None,
    ) -> None:
        self.tally = Tally()
        self.should_stop = False
        #: What loses precision when observations are stored, or empty.
        self.casts = ""
        self._lanes = lanes
        self._reader, self._clock = reader, clock
        self._on_tick, self._on_trace = on_tick, on_trace
        self._on_begin, self._on_end = on_begin, on_end
        self._trace = TraceBook(lanes.num_envs, contract.action)
        self._shares = Shares()
        self._lineup = Lineup(
            episodes, lanes.num_envs, is_seeded=is_seeded, clock=clock, queue=queue, advisories=engine.advisories
        )
        self._seats = Seats(BatchLayout(contract.observation))
        self._plays = self._seats.plays
        self._caps = Caps(limits, self._plays)
        self._waiting: dict[int, Play] = {}
        # Lanes whose reset failed, until the next round.
        self._free: list[int] = []
        replay = ChunkReplay(lanes.num_envs, plan.horizon)
        self._schedule = Schedule(replay, plan.horizon if is_aligned else 1)
        self._step_lanes = lanes.step_lanes
        self._end_episodes = engine.route(route).end_episodes
        if skipping is not None:
            self._step_lanes = UnreadSteps(skipping, replay, self.tally).step_lanes
        self._asking = Asking(
            engine.route(route).predict,
            replay,
            plan=plan,
            plays=self._plays,
            shares=self._shares,
            tally=self.tally,
            on_answer=on_answer,
            observe=engine.route(route).observe if plan.wants_every_step else None,
        )
        self._tick_at = 0.0

    @property
    def in_flight(self) -> int:
        """Episodes that were started and have no result."""
        return len(self._plays) + len(self._waiting)

    def company(self) -> Company:
        """Return what each lane plays."""
        now = self._shares.steps
        lanes: list[tuple[int, int, int | None]] = [
            (lane, play.context.index, now - play.begun_step) for lane, play in self._plays.items()
        ]
        lanes += [(lane, play.context.index, None) for lane, play in self._waiting.items()]
        return Company(lanes=sorted(lanes))

    def run(self) -> Iterator[list[EpisodeResult]]:
        """Yield the results of episodes as soon as they end, until all have ended or `should_stop` is set.

        Raises what makes the whole run meaningless: PolicyCallError and ActionError of the first call, and
        EnvironmentBuildError where a vector environment turns out to reset in another way than it says.
        """
        results = self._start(range(self._lanes.num_envs))
        while True:
            if results:
                yield results
            if self.should_stop or not (self._plays or self._waiting or self._free):
                return
            if self._free:
                free, self._free = self._free, []
                results = self._start(free)
                continue
            results = self._advance()
            if self._waiting:
                results += self._give_up()

    def _advance(self) -> list[EpisodeResult]:
        """Play on until an episode ends or another may start; return the results.

        Between two such moments the company of lanes stays the same, so sums are kept in local names and
        added up once.
        """
        roster, clock = self._seats.roster, self._clock
        count, lanes, episodes = roster.count, roster.lanes, roster.episodes
        step_lanes, stretch = self._step_lanes, self._trace.open(roster)
        asking, predict = self._asking, self._asking.predict
        is_direct = asking.is_direct(roster)
        observations = self._seats.observations
        most = min(min(self._caps.due_step, self._schedule.boundary) - self._shares.steps, self._trace.room)
        if not asking.has_answered:
            most = 1
        wake_at = min(self._caps.due_clock, self._tick_at)
        predicting = stepping = asking.seconds = thinking = 0.0
        failed: Mapping[int, Failure] = NO_FAILURES
        now = clock()
        for taken in count_from(1):
            if is_direct:
                # Nothing is replayed: the only action of each call is executed at once.
                if asking.wants_step:
                    asking.set_steps(roster, taken - 1)
                prediction = predict(observations, episodes)
                actions, clipped, failed = prediction.actions, prediction.clipped, prediction.failures
                thinking += prediction.seconds
            else:
                actions, clipped, failed = asking.next_actions(roster, observations, taken - 1)
            asked = clock()
            predicting += asked - now
            if failed:
                break
            steps = step_lanes(actions, lanes)
            now = clock()
            stepping += now - asked
            if count:
                stretch.add(actions, steps.rewards)
            self._seats.observations = observations = steps.observations
            if clipped is not None:
                self._count_clipped(roster, clipped)
            if steps.infos is not None:
                self._read(roster, steps)
            if steps.ended or taken >= most or steps.failures or steps.started or self.should_stop:
                break
            if now >= wake_at:
                break
        finished = taken - bool(failed)
        if is_direct:
            self._shares.calls += taken
            asking.count_calls(taken, count)
        thinking += asking.seconds
        self.tally.add(count, finished, stepping, predicting, thinking)
        self._shares.add(finished, max(count, 1), stepping, predicting, thinking)
        self._tick(now)
        if failed:
            return self._close_failed(roster, prediction if is_direct else None, failed)
        return self._settle(roster, steps, now=now)

    def _close_failed(
        self, roster: Roster, prediction: Prediction | None, failed: Mapping[int, Failure]
    ) -> list[EpisodeResult]:
        """Close episodes whose policy failed; the others keep the actions they were given.

        prediction: of a direct call, which is not queued yet.
        """
        if prediction is not None:
            self._asking.queue(roster, None, prediction)
        # The policy may keep the batch it was given, so no first observation is written into it.
        self._seats.observations = take_rows(self._seats.observations, range(roster.count))
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
        infos = steps.infos or ()
        if self._reader.ignores(infos):
            return
        for row, info in enumerate(infos):
            if info and row not in steps.failures:
                self._reader.read(info, self._plays[roster.lanes[row]].outcome)

    def _settle(self, roster: Roster, steps: LaneSteps, *, now: float) -> list[EpisodeResult]:
        """Close what ended with this step, and start what comes next."""
        endings = [Ending(row, terminated, truncated) for row, terminated, truncated in steps.ended]
        if steps.failures:
            endings += [Ending(row, failure=failure) for row, failure in steps.failures.items()]
        if self._shares.steps >= self._caps.due_step or now >= self._caps.due_clock:
            endings += self._caps.reached(roster, {ending.row for ending in endings}, self._shares.steps, now)
        if steps.observations is None:
            self._seats.observations = self._seats.empty(roster.count)
        results = self._close(roster, endings, drop_last=True) if endings else []
        if steps.started is not None:
            failed, freed = self._join_or_fail(steps.started, self._waiting)
            results += failed + self._start(freed)
        if self._shares.steps >= self._schedule.boundary:
            results += self._start(())
        return results

    def _close(self, roster: Roster, endings: list[Ending], *, drop_last: bool) -> list[EpisodeResult]:
        """Make the results of the given rows, free their lanes and start the next episodes.

        drop_last: the last recorded step of failed rows did not finish.
        """
        results, contexts, freed = [], [], []
        now = self._clock()
        self._trace.expect(len(endings))
        for ending in sorted(endings, key=_row) if len(endings) > 1 else endings:
            lane = roster.lanes[ending.row]
            play = self._plays.pop(lane)
            planned = self._asking.account(play, ending.failure)
            self._asking.forget(lane)
            traced = self._trace.end(lane, drop_last=drop_last and ending.failure is not None)
            contexts.append(play.context)
            freed.append(lane)
            if ending.failure is not None and self._lineup.try_again(play, ending.failure):
                continue
            if self._on_trace is not None:
                self._on_trace(play.context.index, self._trace.columns)
            results.append(self._finish(play, traced, ending, now, planned=planned))
        self._end_episodes(contexts)
        return results + self._start(freed)

    def _start(self, lanes: Sequence[int]) -> list[EpisodeResult]:
        """Start the next planned episode on each free lane that need not rest.

        One whose reset fails is free for the next round.
        """
        results: list[EpisodeResult] = []
        free = self._schedule.admit(lanes, self._plays, self._shares.steps)
        plays = self._lineup.next(free)
        if not plays and not (self._plays or self._waiting or self._free):
            plays = self._lineup.next_alone(free)
        if plays:
            began = self._clock()
            resets = self._lanes.reset_lanes(list(plays), [play.seed for play in plays.values()])
            spent = self._clock() - began
            self.tally.reset_seconds += spent
            for play in plays.values():
                play.reset_seconds = spent / len(plays)
            if resets.casts:
                self.casts = resets.casts
            results, freed = self._join_or_fail(resets, plays)
            self._free += freed
            for lane, play in plays.items():
                play.begun_step = self._shares.steps
                self._waiting[lane] = play
        self._seats.settle()
        self._caps.settle()
        return results

    def _give_up(self) -> list[EpisodeResult]:
        """Fail the episodes of lanes that a foreign vector environment does not bring to a new beginning."""
        patience = self._caps.limits.steps or _PATIENCE_STEPS
        stuck = [lane for lane, play in self._waiting.items() if self._shares.steps - play.begun_step > patience]
        results = []
        for lane in stuck:
            message = f"the vector environment began no new episode on lane {lane} within {patience:,} steps"
            ending = Ending(-1, failure=Failure(phase="reset", message=message))
            for play in (self._waiting.pop(lane), *self._lineup.rest(lane)):
                self._trace.begin(lane)
                play.begin(self._shares, self._clock())
                traced = self._trace.end(lane)
                results.append(self._finish(play, traced, ending, self._clock()))
        return results

    def _join_or_fail(self, resets: LaneResets, plays: dict[int, Play]) -> tuple[list[EpisodeResult], list[int]]:
        """Move plays that reached their first observation among the running ones.

        Return the results of those that failed, and the lanes of all that did not.
        """
        results, freed = [], []
        now = self._clock()
        for row, lane in enumerate(resets.lanes):
            play = plays.pop(lane)
            self._trace.begin(lane)
            play.begin(self._shares, now)
            failure = resets.failures.get(row) if resets.failures else None
            if failure is None:
                play.first = row_of(resets.observations, row)
                play.read_start(resets.infos[row], self._reader)
                self._seats.join(lane, play)
                if self._on_begin is not None:
                    self._on_begin(lane, play.context)
                continue
            freed.append(lane)
            traced = self._trace.end(lane)
            if not self._lineup.try_again(play, failure):
                results.append(self._finish(play, traced, Ending(row, failure=failure), now))
        return results, freed

    def _finish(
        self,
        play: Play,
        traced: tuple[int, float, str],
        ending: Ending,
        now: float,
        *,
        planned: tuple[int | None, int] = (0, 0),
    ) -> EpisodeResult:
        result = finish(play, traced, ending, self._reader, self._shares, now, planned=planned)
        if self._on_end is not None:
            began = self._clock()
            self._on_end(result)
            self.tally.recording_seconds += self._clock() - began
        return result


def _row(ending: Ending) -> int:
    return ending.row
