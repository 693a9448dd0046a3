"""Running sums of a run: what was done, and where the time went."""

from __future__ import annotations

import msgspec


class Tally(msgspec.Struct):
    """Counts and seconds of a whole run.

    steps: lane-steps. vector_steps: steps of all running lanes together. calls: of the policy's corner;
        rows: those that it was asked for.
    frames_skipped: lane-steps whose pixels were left out, because nobody would have read them.
    adapter_seconds: around the policy's own time: conversion, checks, replay. recording_seconds: writing rows, and
        finishing what is recorded of episodes.
    """

    steps: int = 0
    vector_steps: int = 0
    calls: int = 0
    rows: int = 0
    frames_skipped: int = 0
    step_seconds: float = 0.0
    reset_seconds: float = 0.0
    policy_seconds: float = 0.0
    adapter_seconds: float = 0.0
    recording_seconds: float = 0.0

    def add_calls(self, calls: int, rows: int) -> None:
        """Add policy calls and the rows they were asked for."""
        self.calls += calls
        self.rows += rows

    def merge(self, other: Tally) -> None:
        """Add what was done elsewhere; seconds of several workers are added up, although they pass together."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def since(self, earlier: Tally) -> Tally:
        """Return what was done after an earlier state of this tally."""
        return Tally(*(getattr(self, name) - getattr(earlier, name) for name in self.__struct_fields__))

    def add(self, lanes: int, taken: int, stepping: float, predicting: float, thinking: float) -> None:
        """Add `taken` vector steps of `lanes` lanes and their seconds; of predicting, thinking is the policy's."""
        self.policy_seconds += thinking
        self.adapter_seconds += predicting - thinking
        self.steps += lanes * taken
        self.vector_steps += taken
        self.step_seconds += stepping


class Shares:
    """Running sums over the whole run; an episode's part is the difference between its end and its start.

    steps: vector steps. calls: policy calls in which every running lane was asked.
    planned: actions in the chunks of those calls.
    env, policy, predict: seconds a lane, each vector step's time divided by the lanes it served.
    """

    __slots__ = ("calls", "env", "planned", "policy", "predict", "steps")

    def __init__(self) -> None:
        self.steps = 0
        self.calls = 0
        self.planned = 0
        self.env = 0.0
        self.policy = 0.0
        self.predict = 0.0

    def add(self, steps: int, lanes: int, env: float, predict: float, policy: float) -> None:
        """Add some vector steps and the seconds that `lanes` lanes spent in them together."""
        self.steps += steps
        self.env += env / lanes
        self.predict += predict / lanes
        self.policy += policy / lanes
