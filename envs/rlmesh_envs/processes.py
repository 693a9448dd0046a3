"""WorkerLanes: the promise of LaneSet, kept by environments in worker processes.

Axes: N lanes, R stepped lanes, W workers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from rlmesh_adapters.batches import Batch, BatchLayout, leaves, put_rows, take_rows
from rlmesh_adapters.errors import Failure, describe_error

from .bells import DONE, ENDED, NUMBERS, NUMBERS_ENDED, RESET, STEP
from .blocks import Rows, SharedBlock, as_rows, block_size, fits_exactly, open_memory, put_arrays
from .crew import Crew, usable_cores
from .info_forms import FormedInfos, InfoForm
from .request import EnvRequest
from .service import ResetRequest, StepRequest
from .spaces import check_alike, view_of
from .steps import Info, LaneResets, LaneSteps
from .worker import Serve

#: What a worker's answer to a step may say without a message.
_WITHOUT_INFOS, _WITH_NUMBERS, _WITH_ENDS = (DONE, ENDED), (NUMBERS, NUMBERS_ENDED), (ENDED, NUMBERS_ENDED)
#: Seeds below that fit into the shared block.
_LARGEST_SEED = 2**63


class Part(msgspec.Struct):
    """One worker's part of a call.

    rows: of the call. numbers: the same lanes inside the worker. index: the rows as numpy likes them.
    is_known: whether the worker has been told that these are its company.
    """

    worker: int
    rows: list[int]
    numbers: tuple[int, ...]
    index: Rows
    is_known: bool = False


class WorkerLanes:
    """N lanes, divided over worker processes in blocks.

    Has `reset_lanes` and `step_lanes` of LaneSet, with the same results. A worker that dies fails its
    own lanes only and is started again for their next episodes. What steps take and give goes through shared
    memory, where the system has any.

    request: what to build; reaches the workers as plain data.
    serve: builds a worker's lanes from it.

    Raises EnvironmentBuildError if a worker cannot build its environments, with the worker's own words.
    """

    def __init__(self, request: EnvRequest, serve: Serve) -> None:
        self.num_envs = request.num_envs
        count = min(request.num_envs, request.workers or usable_cores())
        self._bounds = bounds = [request.num_envs * worker // count for worker in range(count + 1)]
        self._place = {
            lane: (worker, lane - bounds[worker])
            for worker in range(count)
            for lane in range(bounds[worker], bounds[worker + 1])
        }
        # Lanes whose episode was lost with their worker, until they are reset.
        self._lost: dict[int, Failure] = {}
        self._company: Sequence[int] | None = None
        self._parts: list[Part] = []
        # Worker -> what its infos in the shared block look like; equal forms are one object.
        self._forms: dict[int, InfoForm] = {}
        self._has_one_form = False
        self._crew = Crew(request, serve, [bounds[worker + 1] - bounds[worker] for worker in range(count)])
        greetings = self._crew.greetings
        notes = dict(greetings[0].info.notes)
        try:
            check_alike(dict(zip(bounds, greetings, strict=False)))
            self.single_observation_space = greetings[0].observation_space
            self.single_action_space = greetings[0].action_space
            self.layout = BatchLayout(view_of(self.single_observation_space))
            self._block = self._share(notes)
        except BaseException:
            self.close()
            raise
        if request.workers is not None and request.workers > count:
            notes["env-workers-capped"] = (
                f"{request.workers} environment workers were asked for, {count} are used: one a lane"
            )
        self.info = msgspec.structs.replace(greetings[0].info, workers=count, notes=notes)

    def _share(self, notes: dict[str, str]) -> SharedBlock | None:
        """Return memory that all workers share; None, with a note why, where steps have to go through pipes."""
        if os.name != "posix":
            return None
        action = BatchLayout(view_of(self.single_action_space))
        size = block_size(self.layout, action, self.num_envs)
        try:
            descriptor, memory = open_memory(size)
        except OSError as error:
            notes["no-shared-memory"] = (
                f"there are no {size:,} bytes of shared memory ({describe_error(error)}): what environments give"
                " goes through pipes, which takes longer and changes no result"
            )
            return None
        self._crew.share(descriptor)
        return SharedBlock(self.layout, action, self.num_envs, memory)

    def reset_lanes(self, lanes: Sequence[int], seeds: Sequence[int | None]) -> LaneResets:
        """Reset the given lanes, each with its own seed; see LaneSet."""
        observations = self.layout.allocate(len(lanes))
        infos: list[Info] = [{} for _ in lanes]
        failures: dict[int, Failure] = {}
        casts = ""
        for lane in lanes:
            self._lost.pop(lane, None)
        parts = self._divide(range(len(lanes)), lanes)
        asked = [part for part in parts if self._ask_reset(part, lanes, seeds, failures)]
        for part in asked:
            answer = self._hear(part.worker, "reset")
            if isinstance(answer, Failure):
                failures.update(dict.fromkeys(part.rows, answer))
                continue
            if answer == DONE:
                assert self._block is not None
                first = take_rows(self._block.observations, [lanes[row] for row in part.rows])
                put_rows(observations, part.rows, first)
                continue
            casts = casts or answer.casts
            put_rows(observations, part.rows, answer.observations)
            for position, row in enumerate(part.rows):
                infos[row] = answer.infos[position]
            failures.update({part.rows[row]: failure for row, failure in answer.failures.items()})
        return LaneResets(lanes, observations, infos, failures, casts)

    def _ask_reset(
        self, part: Part, lanes: Sequence[int], seeds: Sequence[int | None], failures: dict[int, Failure]
    ) -> bool:
        """Ask a worker for a reset; False, with its rows among the failures, if it cannot be started again."""
        failure = self._crew.wake(part.worker)
        if failure is not None:
            failures.update(dict.fromkeys(part.rows, failure))
            self._lose(part.worker, failure)
            return False
        chosen = [seeds[row] for row in part.rows]
        if self._want(part, [lanes[row] for row in part.rows], chosen):
            self._crew[part.worker].ring(RESET)
        else:
            self._crew[part.worker].ask(ResetRequest(numbers=part.numbers, seeds=chosen))
        return True

    def _want(self, part: Part, lanes: Sequence[int], seeds: Sequence[int | None]) -> bool:
        """Note in the shared block which lanes of a worker are to be reset; False if that cannot be said there."""
        block = self._block
        if block is None or block.has_lists or lanes != sorted(lanes):
            return False
        if not all(seed.__class__ is int and 0 <= seed < _LARGEST_SEED for seed in seeds):
            return False
        # A worker that has died may have left something undone.
        block.wanted[self._bounds[part.worker] : self._bounds[part.worker + 1]] = False
        block.wanted[lanes] = True
        block.seeds[lanes] = seeds
        return True

    def step_lanes(self, actions: Batch, lanes: Sequence[int], unread: Sequence[bool] | None = None) -> LaneSteps:
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
        parts = self._parts
        for part in parts:
            self._ask_step(part, sent, count, unread)
        answers = [self._hear(part.worker, "step") for part in parts]
        if block is None:
            steps = LaneSteps(self.layout.allocate(count), [0.0] * count, [], None, failures)
        else:
            # Only now that every worker has answered; the caller may keep what it gets.
            steps = LaneSteps(block.take_observations(count), block.rewards[:count].tolist(), [], None, failures)
            if parts and not failures and self._has_one_form and answers.count(NUMBERS) == len(parts):
                # All infos at once, in the order of their rows.
                steps.infos = FormedInfos(self._forms[parts[0].worker], block.numbers[:count].copy())
                return steps
            for part, answer in zip(parts, answers, strict=True):
                if answer in _WITH_ENDS:
                    steps.ended += block.read_ends(part.rows, part.index)
        for part, answer in zip(parts, answers, strict=True):
            if answer not in _WITHOUT_INFOS:
                self._merge(steps, failures, part, answer)
        steps.ended.sort()
        return steps

    def _ask_step(self, part: Part, actions: Batch | None, count: int, unread: Sequence[bool] | None) -> None:
        known = self._crew[part.worker]
        skipped = None if unread is None else [unread[row] for row in part.rows]
        if actions is None and part.is_known and skipped is None:
            known.ring(STEP)
            return
        if actions is not None and len(part.rows) < count:
            actions = take_rows(actions, part.rows)
        part.is_known = True
        known.ask(StepRequest(numbers=part.numbers, rows=part.rows, actions=actions, unread=skipped))

    def _merge(self, steps: LaneSteps, failures: dict[int, Failure], part: Part, answer: Any) -> None:
        """Put what one worker has answered beside its arrays into the step of all."""
        if isinstance(answer, Failure):
            failures.update(dict.fromkeys(part.rows, answer))
        elif answer in _WITH_NUMBERS:
            _merge_infos(steps, part.rows, self._read_numbers(part))
        elif isinstance(answer, InfoForm):
            same = [form for form in self._forms.values() if form == answer]
            self._forms[part.worker] = same[0] if same else answer
            self._has_one_form = len({id(form) for form in self._forms.values()}) == 1
            _merge_infos(steps, part.rows, self._read_numbers(part))
        else:
            rows = part.rows
            _merge_values(steps, rows, answer)
            _merge_infos(steps, rows, answer.infos)
            steps.ended.extend((rows[row], terminated, truncated) for row, terminated, truncated in answer.ended)
            failures.update({rows[row]: failure for row, failure in answer.failures.items()})

    def _read_numbers(self, part: Part) -> list[Info]:
        """Return infos that lie in the shared block."""
        assert self._block is not None
        return self._forms[part.worker].read(self._block.numbers[part.index])

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
        self._company = lanes if isinstance(lanes, tuple) and not self._lost else None

    def _divide(self, rows: Sequence[int], lanes: Sequence[int]) -> list[Part]:
        """Return the workers' parts of some rows of `lanes`."""
        parts: dict[int, tuple[list[int], list[int]]] = {}
        for row in rows:
            worker, number = self._place[lanes[row]]
            chosen, numbers = parts.setdefault(worker, ([], []))
            chosen.append(row)
            numbers.append(number)
        return [
            Part(worker, chosen, tuple(numbers), as_rows(chosen)) for worker, (chosen, numbers) in parts.items()
        ]

    def _hear(self, worker: int, phase: str) -> Any:
        """Return a worker's answer, or a failure of all its lanes if it is dead or cannot start."""
        answer = self._crew.hear(worker, phase)
        if isinstance(answer, Failure):
            self._lose(worker, answer)
        return answer

    def _lose(self, worker: int, failure: Failure) -> None:
        """Give up the episodes of all lanes of a worker that is no more."""
        self._parts = [part for part in self._parts if part.worker != worker]
        self._company = None
        self._lost.update({lane: failure for lane, place in self._place.items() if place[0] == worker})

    def close(self) -> None:
        """Stop every worker; one that does not answer in five seconds is killed. Idempotent."""
        self._crew.close()


def _merge_infos(steps: LaneSteps, rows: Sequence[int], infos: Sequence[Info] | None) -> None:
    if infos is None:
        return
    merged = list(steps.infos) if steps.infos is not None else [{} for _ in steps.rewards]
    for row, info in zip(rows, infos, strict=True):
        merged[row] = info
    steps.infos = merged


def _merge_values(steps: LaneSteps, rows: Sequence[int], answer: LaneSteps) -> None:
    """Put observations and rewards that came through the pipe in their rows."""
    if answer.rewards:
        put_rows(steps.observations, rows, answer.observations)
        assert isinstance(steps.rewards, list)
        for row, reward in zip(rows, answer.rewards, strict=True):
            steps.rewards[row] = reward
    elif answer.observations is not None:
        for leaf, given in zip(leaves(steps.observations), leaves(answer.observations), strict=True):
            if given is not None:
                for row, value in zip(rows, given, strict=True):
                    leaf[row] = value
