"""Service: a worker answers its parent, with the arrays of steps in shared memory where there is some.

Axes: N lanes of all workers, R rows of a step of all of them, L lanes of this worker.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from rlmesh_adapters.batches import Batch, BatchLayout, map_leaves, take_rows

from .bells import DONE, ENDED, NUMBERS, NUMBERS_ENDED, RESET, STEP, Bell
from .blocks import MOST_NUMBERS, Rows, SharedBlock, as_rows, block_size, map_memory, put_arrays
from .info_forms import InfoForm, form_of
from .lane_set import LaneSet
from .sealing import Answer, pickled, pickled_answer, seal
from .spaces import view_of
from .steps import Info, LaneSteps


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A step that a bell alone cannot ask for; the bells that follow mean the same company.

    numbers: lanes inside the worker. rows: their rows in the shared block.
    actions: (L, ...), None if they lie in the shared block. unread: (L,) whose observation nobody will read.
    """

    numbers: tuple[int, ...]
    rows: Sequence[int]
    actions: Batch | None
    unread: Sequence[bool] | None = None


class ResetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A reset of some lanes inside the worker, each with its own seed."""

    numbers: Sequence[int]
    seeds: Sequence[int | None]


class Attach(msgspec.Struct, frozen=True, kw_only=True):
    """The descriptor of the memory that a block of `lanes` lies in comes next.

    first: lane of all workers that is the first of this one's.
    """

    lanes: int
    first: int


class Again(msgspec.Struct, frozen=True):
    """The last answer cannot be read here; send it sealed."""


class Close(msgspec.Struct, frozen=True):
    """The worker may end."""


class Service:
    """Answers with the lanes of one worker, until it is told to close or its parent is gone."""

    def __init__(self, bell: Bell, lanes: LaneSet) -> None:
        self._bell, self._lanes = bell, lanes
        self._block: SharedBlock | None = None
        self._first = 0
        self._numbers: tuple[int, ...] = ()
        self._rows: Rows = slice(0)
        # Batches of the company's rows in the shared block, where these follow one another.
        self._actions: Batch | None = None
        self._room: Batch | None = None
        self._form: InfoForm | None = None
        self._answer: Answer | None = None

    def run(self) -> None:
        """Answer until told to close; raises EOFError or OSError when the parent is gone."""
        while True:
            sound = self._bell.listen()
            if sound == STEP:
                self._step(None)
                continue
            if sound == RESET:
                self._reset_wanted()
                continue
            message = self._bell.receive()
            if isinstance(message, StepRequest):
                self._group(message)
                self._step(message.actions, message.unread)
            elif isinstance(message, ResetRequest):
                self._answer = self._lanes.reset_lanes(message.numbers, message.seeds)
                self._bell.send_pickled(pickled_answer(self._answer))
            elif isinstance(message, Attach):
                self._attach(message)
            elif isinstance(message, Again):
                assert self._answer is not None
                self._bell.send_pickled(pickled(seal(self._answer)))
            else:
                return

    def _attach(self, message: Attach) -> None:
        descriptor, lanes = self._bell.take(), message.lanes
        self._first = message.first
        layouts = self._lanes.layout, BatchLayout(view_of(self._lanes.single_action_space))
        try:
            self._block = SharedBlock(*layouts, lanes, map_memory(descriptor, block_size(*layouts, lanes)))
        finally:
            os.close(descriptor)
        self._lanes.write_into(self._allocate)

    def _reset_wanted(self) -> None:
        """Reset the lanes that the shared block says; what they see first goes there, if that is all there is."""
        block = self._block
        assert block is not None
        first = self._first
        numbers = np.flatnonzero(block.wanted[first : first + self._lanes.num_envs]).tolist()
        rows = [first + number for number in numbers]
        resets = self._lanes.reset_lanes(numbers, block.seeds[rows].tolist())
        self._answer = resets
        # Only of plain dicts it is known what they do when they are asked whether they are empty.
        has_infos = any(info.__class__ is not dict or info for info in resets.infos)
        if resets.failures or resets.casts or has_infos:
            self._bell.send_pickled(pickled_answer(resets))
        else:
            put_arrays(block.observations, as_rows(rows), resets.observations)
            self._bell.ring(DONE)

    def _group(self, request: StepRequest) -> None:
        """Make some lanes the company that the bell means."""
        if request.numbers != self._numbers:
            self._numbers = request.numbers
        if self._block is None:
            return
        self._rows = rows = as_rows(request.rows)
        self._actions = self._room = None
        if isinstance(rows, slice):
            self._actions = map_leaves(lambda leaf: leaf[rows], self._block.actions)
            self._room = map_leaves(lambda leaf: leaf[rows], self._block.observations)

    def _allocate(self, rows: int) -> Batch:
        """Return where the lanes write what they see: into shared memory, if it can be had in one piece."""
        if self._room is None:
            return self._lanes.layout.allocate(rows)
        return self._room

    def _step(self, actions: Batch | None, unread: Sequence[bool] | None = None) -> None:
        block = self._block
        if actions is None:
            assert block is not None
            actions = take_rows(block.actions, self._rows) if self._actions is None else self._actions  # type: ignore[arg-type]
        steps = self._lanes.step_lanes(actions, self._numbers, unread)
        self._answer = steps
        if block is None:
            self._bell.send_pickled(pickled_answer(steps))
        else:
            self._put(block, steps)

    def _put(self, block: SharedBlock, steps: LaneSteps) -> None:
        """Put a step's arrays into the shared block, and send what is left, if anything is."""
        if steps.observations is not self._room:
            put_arrays(block.observations, self._rows, steps.observations)
        block.rewards[self._rows] = steps.rewards
        if steps.failures or block.has_lists:
            self._send_rest(block, steps)
            return
        if steps.ended:
            block.put_ends(self._rows, len(self._numbers), steps.ended)
        if steps.infos is None:
            self._bell.ring(ENDED if steps.ended else DONE)
            return
        form = self._put_infos(block, steps.infos)
        if form is not None and form is self._form:
            self._bell.ring(NUMBERS_ENDED if steps.ended else NUMBERS)
        elif form is None or steps.ended:
            self._send_rest(block, steps)
        else:
            self._form = form
            self._bell.send(form)

    def _send_rest(self, block: SharedBlock, steps: LaneSteps) -> None:
        """Send what the shared block does not hold of a step."""
        lists = _lists(steps.observations) if block.has_lists else None
        self._answer = msgspec.structs.replace(steps, observations=lists, rewards=())
        self._bell.send_pickled(pickled_answer(self._answer))

    def _put_infos(self, block: SharedBlock, infos: Sequence[Info]) -> InfoForm | None:
        """Put infos of plain numbers into the shared block; return their form, None if they are none."""
        form = self._form
        if form is None or not all(map(form.fits, infos)):
            form = form_of(infos, MOST_NUMBERS)
        if form is not None:
            block.numbers[self._rows, : len(form.keys)] = [list(info.values()) for info in infos]
        return form


def _lists(batch: Any) -> Batch:
    """Return a batch without its arrays."""
    return map_leaves(lambda leaf: leaf if isinstance(leaf, list) else None, batch)
