"""The seam where a policy's output becomes actions of the environment; checked here, once.

Structure, shape and dtype are errors (`ActionError`). Whole numbers outside their space are errors too.
A float outside its Box is clipped and counted; one that is not finite fails its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from .batches import Batch, leaves, stack_rows
from .bounds import Bounds
from .errors import NO_FAILURES, ActionError, Failure, shortened
from .outputs import to_array
from .spaces import INTEGER_KINDS, SpaceView

#: Leading axes of a value: a number is demanded, None takes any length.
Lead = tuple[int | None, ...]


class CheckedActions(msgspec.Struct, frozen=True):
    """Actions (M, ...) or (M, H, ...) that the environment will accept, but for the rows that failed.

    clipped: (M,) or (M, H) bool, which actions had a number clipped into its Box; None if none had.
    failures: row -> what is wrong with its values. Phase `action` for NaN and infinities, `policy` for whole
        numbers outside their space.
    """

    actions: Batch
    clipped: npt.NDArray[np.bool_] | None
    failures: Mapping[int, Failure]


class ActionSeam:
    """Turns what a policy returns into actions of one space.

    view: the action space: arrays, or dicts and tuples of them.

    Raises TypeError for text and opaque spaces.
    """

    def __init__(self, view: SpaceView) -> None:
        if not view.is_array and view.kind not in ("dict", "tuple"):
            raise TypeError(f"actions of {view} are not supported")
        self.view = view
        self._bounds = Bounds(view, finite=True) if view.is_array else None
        #: Whether every action of an array space is inside it; shape and dtype must have been checked.
        self.accepts: Callable[[npt.NDArray[Any]], bool] = (
            self._bounds.all_inside if self._bounds is not None else lambda actions: False
        )
        #: Types of arrays that `accepts` can judge as they are.
        self.quick_dtypes: frozenset[np.dtype[Any]] = (
            frozenset() if view.dtype is None else frozenset([view.dtype])
        )
        self._children = {name: ActionSeam(child) for name, child in view.children}

    def convert(self, raw: Any, lead: Lead, where: str) -> Batch:
        """Return `raw` as a tree of arrays (*lead, ...) in the space's dtypes.

        lead: the axes expected in front of one action, such as (8,) for eight lanes or (None,) for a chunk.
        where: the corner, for messages.

        Raises ActionError for a wrong structure, shape or dtype.
        """
        if self.view.is_array:
            return self._leaf(raw, lead, where)
        if self.view.kind == "dict":
            return self._mapping(raw, lead, where)
        return self._sequence(raw, lead, where)

    def _leaf(self, raw: Any, lead: Lead, where: str) -> npt.NDArray[Any]:
        try:
            array = to_array(raw)
        except Exception as error:  # an array of the user's may raise anything
            reason = "is ragged" if isinstance(error, ValueError) else "is not an array of numbers"
            raise ActionError(
                f"what the policy returned {reason}: expected {self._wanted(lead)}, got {_briefly(raw)}",
                where=where,
                mend="return only the action" if _is_with_state(raw) else "return one array of equal rows",
            ) from error
        if lead and lead[-1] is None and array.shape[: len(lead)] == (*(lead[:-1]), 0):
            raise empty_chunk(where)
        if not _fits(array.shape, lead, self.view.shape):
            raise ActionError(
                f"wrong shape: expected {self._wanted(lead)}, got {array.dtype}{_shape(array.shape)}",
                where=where,
                mend=_shape_mend(array.shape, lead, self.view.shape),
            )
        return array if array.dtype == self.view.dtype else self._cast(array, where)

    def _cast(self, array: npt.NDArray[Any], where: str) -> npt.NDArray[Any]:
        wanted = self.view.dtype
        assert wanted is not None
        takes_floats = wanted.kind == "f"
        numbers = "numbers" if takes_floats else "whole numbers"
        if array.dtype.kind not in ("iubf" if takes_floats else "iub"):
            raise ActionError(
                f"wrong type: {self.view} takes {numbers}, got {array.dtype}",
                where=where,
                mend="return an index, such as `int(logits.argmax())`"
                if self.view.kind in INTEGER_KINDS
                else f"return {wanted}",
            )
        if wanted.itemsize >= array.itemsize and takes_floats:
            return array.astype(wanted)
        # A float64 beyond float32 becomes infinite here and fails its row below, by value.
        with np.errstate(over="ignore"):
            cast = array.astype(wanted)
        # What does not fit is no action; it stays as it is, and its row fails by value.
        return array if wanted.kind in "iub" and not np.array_equal(cast, array) else cast

    def _mapping(self, raw: Any, lead: Lead, where: str) -> Batch:
        if lead and _is_sequence(raw) and all(isinstance(part, (Mapping, list, tuple)) for part in raw):
            return self._stacked(raw, lead, where)
        if not isinstance(raw, Mapping):
            raise ActionError(
                f"wrong type: expected a dict with {_names(self._children)}, got {_briefly(raw)}", where=where
            )
        if set(raw) != set(self._children):
            raise ActionError(
                f"wrong keys: expected {_names(self._children)}, got {_names(raw)}",
                where=where,
                mend=f"return a dict like the action space {self.view}",
            )
        return self._agreed(
            {name: seam.convert(raw[name], lead, f"{where}: {name}") for name, seam in self._children.items()},
            lead,
            where,
        )

    def _sequence(self, raw: Any, lead: Lead, where: str) -> Batch:
        if lead and isinstance(raw, list):
            return self._stacked(raw, lead, where)
        if not isinstance(raw, (tuple, list)) or len(raw) != len(self._children):
            raise ActionError(
                f"wrong type: expected a tuple of {len(self._children)} parts, got {_briefly(raw)}",
                where=where,
            )
        parts = zip(raw, self._children.items(), strict=True)
        converted = tuple(seam.convert(part, lead, f"{where}: {name}") for part, (name, seam) in parts)
        return self._agreed(converted, lead, where)

    def _stacked(self, raw: Any, lead: Lead, where: str) -> Batch:
        self._count(len(raw), lead, where)
        if not raw:
            raise empty_chunk(where)
        return stack_rows([self.convert(part, lead[1:], where) for part in raw])

    def _agreed(self, batch: Batch, lead: Lead, where: str) -> Batch:
        counts = {leaf.shape[: len(lead)] for leaf in leaves(batch)}
        if len(counts) > 1:
            raise ActionError(
                f"leaves disagree on lanes or horizon: leading axes {sorted(counts)}",
                where=where,
                mend="give every leaf the same leading axes",
            )
        return batch

    def _count(self, given: int, lead: Lead, where: str) -> None:
        if lead[0] is not None and given != lead[0]:
            raise ActionError(f"expected {lead[0]} actions, one a lane, got {given}", where=where)

    def check(self, actions: Batch) -> CheckedActions:
        """Check the values of actions (M, ...) or (M, H, ...); floats are clipped into a new array if need be."""
        bounds = self._bounds
        if bounds is None:
            return self._check_tree(actions)
        if bounds.all_inside(actions):
            # What is not executed may be why the whole was left in a type of its own.
            fits = actions.dtype == self.view.dtype
            return CheckedActions(actions if fits else actions.astype(self.view.dtype), None, NO_FAILURES)
        return self._check_leaf(actions, bounds)

    def _check_leaf(self, actions: npt.NDArray[Any], bounds: Bounds) -> CheckedActions:
        outside = bounds.outside(actions)
        if actions.dtype.kind != "f":
            failures = self._out_of_range(actions, outside, bounds)
            return CheckedActions(actions.astype(self.view.dtype), None, failures)
        finite_rows = np.isfinite(actions).reshape(len(actions), -1).all(axis=1)
        failures = {
            int(row): Failure(phase="action", message=f"the action is not finite: {actions[row].tolist()}")
            for row in np.flatnonzero(~finite_rows)
        }
        clipped = outside if outside.any() else None
        # Only what is outside: of a negative zero `clip` makes a positive one, whatever row is to blame.
        inside = (actions >= bounds.low) & (actions <= bounds.high)
        kept = np.where(inside, actions, np.clip(actions, bounds.low, bounds.high))
        return CheckedActions(kept, clipped, failures)

    def _out_of_range(
        self, actions: npt.NDArray[Any], outside: npt.NDArray[np.bool_], bounds: Bounds
    ) -> dict[int, Failure]:
        failures: dict[int, Failure] = {}
        for place in np.argwhere(outside).tolist():
            message = f"action {actions[tuple(place)].tolist()} is outside {self.view}"
            mend = f"actions run from {bounds.low.tolist()} to {bounds.high.tolist()}"
            failure = Failure(phase="policy", message=message, detail="action of the policy", mend=mend)
            failures.setdefault(place[0], failure)
        return failures

    def _check_tree(self, actions: Batch) -> CheckedActions:
        parts = {name: seam.check(actions[name]) for name, seam in self._children.items()}
        checked = {name: part.actions for name, part in parts.items()}
        masks = [part.clipped for part in parts.values() if part.clipped is not None]
        failures: dict[int, Failure] = {}
        for name, part in parts.items():
            for row, failure in part.failures.items():
                failures.setdefault(row, msgspec.structs.replace(failure, message=f"`{name}`: {failure.message}"))
        tree: Batch = checked if self.view.kind == "dict" else tuple(checked.values())
        return CheckedActions(tree, np.logical_or.reduce(masks) if masks else None, failures)

    def _wanted(self, lead: Lead) -> str:
        axes: tuple[Any, ...] = (*("H" if axis is None else axis for axis in lead), *self.view.shape)
        return f"{self.view.dtype}({', '.join(map(str, axes))}{',' if len(axes) == 1 else ''})"


def _is_with_state(raw: Any) -> bool:
    """Tell whether an answer looks like (action, state), as some libraries' `predict` returns it."""
    return isinstance(raw, tuple) and len(raw) == 2 and (raw[1] is None or isinstance(raw[1], (tuple, dict)))


def _fits(shape: tuple[int, ...], lead: Lead, tail: tuple[int, ...]) -> bool:
    if len(shape) != len(lead) + len(tail) or shape[len(lead) :] != tail:
        return False
    return all(wanted is None or wanted == given for wanted, given in zip(lead, shape, strict=False))


def _shape_mend(shape: tuple[int, ...], lead: Lead, tail: tuple[int, ...]) -> str:
    if lead and lead[0] is not None and (not shape or shape[0] != lead[0]):
        return f"return one action a lane: the first axis must be {lead[0]}, the number of lanes that ask"
    if shape and shape[-1] == 1 and _fits(shape[:-1], lead, tail):
        return "drop the last axis, as with `actions[..., 0]`"
    return "return the shape of the action space, with the axes of the corner in front"


def empty_chunk(where: str) -> ActionError:
    """Return the error of a chunk without actions."""
    return ActionError("the chunk is empty", where=where, mend="return at least one action")


def _is_sequence(raw: Any) -> bool:
    return isinstance(raw, Sequence) and not isinstance(raw, (str, bytes))


def _shape(shape: tuple[int, ...]) -> str:
    return str(tuple(shape))


def _names(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) or "nothing"


def _briefly(raw: Any) -> str:
    if isinstance(raw, np.ndarray):
        return f"{raw.dtype}{_shape(raw.shape)}"
    try:
        text = repr(raw)
    except Exception:  # a user's __repr__ may raise anything
        text = ""
    return f"{type(raw).__name__} {shortened(text, 60)}"
