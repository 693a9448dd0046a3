"""Opened: a run that was read and added up, as every page of runs starts from it."""

from __future__ import annotations

import msgspec

from rlmesh_cli.evaluation import Evaluation
from rlmesh_cli.run_lists import policy_name, policy_with_params
from rlmesh_cli.run_reader import StoredRun
from rlmesh_cli.stored_evaluation import evaluation_of, notes_on

from .clips import Footage, footage_of


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was read and added up, with what else its folder holds."""

    run: StoredRun
    evaluation: Evaluation
    notes: tuple[str, ...]
    footage: Footage

    @property
    def env(self) -> str:
        """The environment's id."""
        return str(self.run.record["route"]["env"]["id"])

    @property
    def policy(self) -> str:
        """What the record calls the policy."""
        return policy_name(self.run.record)

    @property
    def called(self) -> str:
        """The policy with the arguments that it was made with."""
        return policy_with_params(self.run.record)


def opened(run: StoredRun) -> Opened:
    """Add up a run that was read.

    Raises NoEpisodeError for a run without rows.
    """
    evaluation = evaluation_of(run)
    return Opened(
        run=run,
        evaluation=evaluation,
        notes=tuple(notes_on(run, evaluation.summary)),
        footage=footage_of(run),
    )
