"""WorkerLanes: the promise of LaneSet, kept by environments in worker processes.

Axes: N lanes, R stepped lanes, W workers.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import Any

import msgspec

from rlmesh_adapters.batches import Batch, BatchLayout, leaves, put_rows, take_rows
from rlmesh_adapters.errors import EnvironmentBuildError, Failure, describe_error

from .bells import DONE, NUMBERS, STEP
from .blocks import Rows, SharedBlock, as_rows, block_size, fits_exactly, map_memory, open_memory, put_arrays
from .info_forms import InfoForm
from .request import EnvRequest
from .service import ResetRequest, StepRequest
from .spaces import check_alike, view_of
from .steps import Info, LaneResets, LaneSteps
from .worker import Greeting, Serve
from .worker_process import CLOSE_SECONDS, WorkerProcess

# Seconds that a worker looks for its next step before it sleeps.
_SPIN = float(os.environ.get("SPIN", "100")) * 1e-6


class WorkerLanes:
    """N lanes, divided over worker processes in blocks.

    Has `reset_lanes` and `step_lanes` of LaneSet, with the same results. A worker that dies fails its
    own lanes only and is started again for their next episodes. What steps take and give goes through shared memory,
    where the system has any.

    request: what to build; reaches the workers as plain data.
    serve: builds a worker's lanes from it.

    Raises EnvironmentBuildError if a worker cannot build its environments, with the worker's own words.
    """

    def __init__(self, request: EnvRequest, serve: Serve) -> None:
        self._request = request
        self._serve = serve
        check_start_method(request.start_method)
        self._context: Any = multiprocessing.get_context(request.start_method)
        self.num_envs = request.num_envs
        count = min(request.num_envs, request.workers or usable_cores())
        bounds = [request.num_envs * worker // count for worker in range(count + 1)]
        self._place = {
            lane: (worker, lane - bounds[worker])
            for worker in range(count)
            for lane in range(bounds[worker], bounds[worker + 1])
        }
        self._sizes = [bounds[worker + 1] - bounds[worker] for worker in range(count)]
        self._workers: list[WorkerProcess | None] = [None] * count
        # Lanes whose episode was lost with their worker, until they are reset.
        self._lost: dict[int, Failure] = {}
        self._block: SharedBlock | None = None
        self._memory: list[int] = []
        self._company: Sequence[int] | None = None
        self._parts: list[_Part] = []
        # Before multiprocessing's own exit handler, which would wait for workers that wait for us.
        self._finalizer = Finalize(self, _close_all, args=(self._workers, self._memory), exitpriority=10)
        try:
            for worker in range(count):
                self._start(worker)
            greetings = [self._greet(worker) for worker in range(count)]
            check_alike(dict(zip(bounds, greetings, strict=False)))
            self.single_observation_space = greetings[0].observation_space
            self.single_action_space = greetings[0].action_space
            self.layout = BatchLayout(view_of(self.single_observation_space))
            notes = dict(greetings[0].info.notes)
            if request.workers is not None and request.workers > count:
                notes["env-workers-capped"] = (
                    f"{request.workers} environment workers were asked for, but there are {count} lanes: one a lane"
                )
            self._share(notes)
        except BaseException:
            self.close()
            raise
        self.info = msgspec.structs.replace(greetings[0].info, workers=count, notes=notes)

    def _share(self, notes: dict[str, str]) -> None:
        """Set up the shared block and give it to every worker; without one, steps go through pipes."""
        if os.name != "posix":
            return
        action = BatchLayout(view_of(self.single_action_space))
        size = block_size(self.layout, action, self.num_envs)
        try:
            self._memory.append(open_memory(size))
            memory = map_memory(self._memory[0], size)
        except OSError as error:
            notes["no-shared-memory"] = (
                f"there is no shared memory of {size:,} bytes for {self.num_envs} lanes ({describe_error(error)}): "
                "observations go through pipes, which takes longer and changes no result"
            )
            return
        self._block = SharedBlock(self.layout, action, self.num_envs, memory)
        for worker in range(len(self._workers)):
            self._attach(worker)

    def _attach(self, worker: int) -> None:
        known = self._workers[worker]
        if self._memory and known is not None:
            known.attach(self._memory[0], self.num_envs)

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset the given lanes, each with its own seed; see LaneSet."""
        observations = self.layout.allocate(len(lanes))
        infos: list[Info] = [{} for _ in lanes]
        failures: dict[int, Failure] = {}
        casts = ""
        parts = self._divide(range(len(lanes)), lanes)
        for lane in lanes:
            self._lost.pop(lane, None)
        for part in parts:
            known = self._awake(part.worker, failures, part)
            if known is not None:
                known.ask(ResetRequest(numbers=part.numbers, seeds=[seeds[row] for row in part.rows]))
        for part in parts:
            if part.rows[0] in failures:
                continue
            answer = self._hear(part.worker, "reset")
            if isinstance(answer, Failure):
                failures.update(dict.fromkeys(part.rows, answer))
                continue
            casts = casts or answer.casts
            put_rows(observations, part.rows, answer.observations)
            for position, row in enumerate(part.rows):
                infos[row] = answer.infos[position]
            failures.update({part.rows[row]: failure for row, failure in answer.failures.items()})
        for row, lane in enumerate(lanes):
            if row not in failures:
                self._lost.pop(lane, None)
        return LaneResets(lanes, observations, infos, failures, casts)

    def step_lanes(self, actions: Batch, lanes: Sequence[int]) -> LaneSteps:
        """Step the given lanes and no other; see LaneSet."""
        if lanes is not self._company or self._lost:
            self._regroup(lanes)
        failures: dict[int, Failure] = {}
        if self._lost:
            failures.update({row: self._lost[lane] for row, lane in enumerate(lanes) if lane in self._lost})
        block, count = self._block, len(lanes)
        sent: Batch | None = actions
        if block is not None and fits_exactly(actions, block.actions, count):
            put_arrays(block.actions, slice(count), actions)
            sent = None
        for part in self._parts:
            self._ask_step(part, sent, count)
        answers = [(part, self._hear(part.worker, "step")) for part in self._parts]
        if block is None:
            steps = LaneSteps(self.layout.allocate(count), [0.0] * count, [], None, failures)
        else:
            # Only now that every worker has answered; the caller may keep what it gets.
            steps = LaneSteps(block.take_observations(count), block.rewards[:count].tolist(), [], None, failures)
        for part, answer in answers:
            if answer != DONE:
                self._merge(steps, failures, part, answer)
        if len(steps.ended) > 1:
            steps.ended.sort()
        return steps

    def _ask_step(self, part: _Part, actions: Batch | None, count: int) -> None:
        known = self._workers[part.worker]
        assert known is not None
        if actions is None and part.is_known:
            known.ring(STEP)
            return
        if actions is not None and len(part.rows) < count:
            actions = take_rows(actions, part.rows)
        part.is_known = True
        known.ask(StepRequest(numbers=part.numbers, rows=part.rows, actions=actions))

    def _merge(self, steps: LaneSteps, failures: dict[int, Failure], part: _Part, answer: Any) -> None:
        """Put what one worker has answered beside its arrays into the step of all."""
        if isinstance(answer, Failure):
            failures.update(dict.fromkeys(part.rows, answer))
            return
        infos: Sequence[Info] | None
        if answer == NUMBERS:
            infos = self._read_numbers(part)
        elif isinstance(answer, tuple):
            answer, form = answer
            infos = self._read_numbers(part, form)
        else:
            infos = answer.infos
        if isinstance(answer, LaneSteps):
            self._merge_step(steps, part.rows, answer)
            failures.update({part.rows[row]: failure for row, failure in answer.failures.items()})
        if infos is not None:
            merged = list(steps.infos) if steps.infos is not None else [{} for _ in steps.rewards]
            for position, row in enumerate(part.rows):
                merged[row] = infos[position]
            steps.infos = merged

    def _read_numbers(self, part: _Part, form: InfoForm | None = None) -> list[Info]:
        """Return infos that lie in the shared block; form: where it is another one than before."""
        known = self._workers[part.worker]
        assert self._block is not None
        assert known is not None
        known.form = form or known.form
        assert known.form is not None
        return known.form.read(self._block.numbers[part.index, : len(known.form.keys)])

    def _merge_step(self, steps: LaneSteps, rows: Sequence[int], answer: LaneSteps) -> None:
        steps.ended.extend((rows[row], terminated, truncated) for row, terminated, truncated in answer.ended)
        if self._block is None:
            put_rows(steps.observations, rows, answer.observations)
            assert isinstance(steps.rewards, list)
            for row, reward in zip(rows, answer.rewards, strict=True):
                steps.rewards[row] = reward
        elif answer.observations is not None:
            for leaf, given in zip(leaves(steps.observations), leaves(answer.observations), strict=True):
                if given is not None:
                    for row, value in zip(rows, given, strict=True):
                        leaf[row] = value

    def _regroup(self, lanes: Sequence[int]) -> None:
        """Make some lanes the company that steps together."""
        rows = [row for row, lane in enumerate(lanes) if lane not in self._lost]
        before = {part.worker: part for part in self._parts}
        self._parts = self._divide(rows, lanes)
        for number, part in enumerate(self._parts):
            same = before.get(part.worker)
            if same is not None and (same.rows, same.numbers) == (part.rows, part.numbers):
                self._parts[number] = same
        # A list may change behind our back, so it is grouped anew at every step.
        self._company = lanes if isinstance(lanes, tuple) and len(rows) == len(lanes) else None

    def _divide(self, rows: Sequence[int], lanes: Sequence[int]) -> list[_Part]:
        """Return the workers' parts of some rows of `lanes`."""
        parts: dict[int, tuple[list[int], list[int]]] = {}
        for row in rows:
            worker, number = self._place[lanes[row]]
            chosen, numbers = parts.setdefault(worker, ([], []))
            chosen.append(row)
            numbers.append(number)
        return [
            _Part(worker, chosen, tuple(numbers), as_rows(chosen)) for worker, (chosen, numbers) in parts.items()
        ]

    def _start(self, worker: int) -> None:
        is_fork = self._context.get_start_method() == "fork"
        self._workers[worker] = WorkerProcess(
            self._context,
            # Pickled by us, so that a worker that cannot read it can say so in its own words.
            self._request if is_fork else self._pickled(),
            self._serve,
            lanes=self._sizes[worker],
            name=f"lanes-{worker}",
            inherited=[known.connection for known in self._workers if known is not None],
            spin=_SPIN,
        )

    def _pickled(self) -> bytes:
        try:
            return bytes(ForkingPickler.dumps(self._request))
        except Exception as error:
            raise EnvironmentBuildError(
                f"the environment cannot be sent to a worker process: {describe_error(error)}",
                where=f"vectorization: async, start method {self._context.get_start_method()}",
                mend="use --start-method fork or --vectorization sync",
            ) from error

    def _greet(self, worker: int) -> Greeting:
        known = self._workers[worker]
        assert known is not None
        answer = known.greet()
        if isinstance(answer, Failure):
            raise EnvironmentBuildError(answer.message, where=answer.detail or "worker process", mend=answer.mend)
        return answer

    def _awake(self, worker: int, failures: dict[int, Failure], part: _Part) -> WorkerProcess | None:
        """Return a worker, started again if it has died; None, with its rows among the failures, if it cannot be."""
        if self._workers[worker] is None:
            try:
                self._start(worker)
            except EnvironmentBuildError as error:
                failure = Failure(phase="reset", message=error.cause, detail=error.where, mend=error.mend)
                failures.update(dict.fromkeys(part.rows, failure))
                self._lose(worker, failure)
                return None
            self._attach(worker)
        return self._workers[worker]

    def _hear(self, worker: int, phase: str) -> Any:
        """Return a worker's answer, or a failure of all its lanes if it is dead."""
        known = self._workers[worker]
        assert known is not None
        answer = known.greet() if known.is_new else None
        if not isinstance(answer, Failure):
            answer = known.answer(phase, self._request.step_timeout)
        return self._lose(worker, answer) if isinstance(answer, Failure) else answer

    def _lose(self, worker: int, failure: Failure) -> Failure:
        """Bury a worker; the episodes of all its lanes are lost."""
        known, self._workers[worker] = self._workers[worker], None
        if known is not None:
            known.bury(time.monotonic() + CLOSE_SECONDS)
        self._parts = [part for part in self._parts if part.worker != worker]
        self._company = None
        self._lost.update({lane: failure for lane, place in self._place.items() if place[0] == worker})
        return failure

    def close(self) -> None:
        """Stop every worker; one that does not answer in five seconds is killed. Idempotent."""
        self._finalizer()


class _Part(msgspec.Struct):
    """One worker's part of a call.

    rows: of the call. numbers: the same lanes inside the worker. index: the rows as numpy likes them.
    is_known: whether the worker has been told.
    """

    worker: int
    rows: list[int]
    numbers: tuple[int, ...]
    index: Rows
    is_known: bool = False


def _close_all(workers: list[WorkerProcess | None], memory: list[int]) -> None:
    for known in workers:
        if known is not None:
            known.dismiss()
    until = time.monotonic() + CLOSE_SECONDS
    for number, known in enumerate(workers):
        workers[number] = None
        if known is not None:
            known.bury(until)
    while memory:
        os.close(memory.pop())


def usable_cores() -> int:
    """Return the cores that this process may use."""
    count = os.cpu_count() or 1
    return min(count, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else count


def check_start_method(name: str | None) -> None:
    """Raise EnvironmentBuildError, naming those there are, for a way to start processes that is not known here."""
    known = multiprocessing.get_all_start_methods()
    if name is not None and name not in known:
        raise EnvironmentBuildError(
            f"start method `{name}` does not exist here",
            where="env.start_method",
            mend=f"use one of {', '.join(known)}",
        )
