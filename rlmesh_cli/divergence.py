"""Divergence: one episode played with the routes and policies of two runs, and the first thing that differs.

Nothing of the stored rows is compared, for they hold hashes only: both episodes are played again, one after the
other, each with an environment and a policy of its own.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .differing import Difference, Take, circumstance_words, difference_words, first_difference
from .encores import Encore, refuse_other_bytes
from .guests import apart
from .run_reader import StoredRun

NAMES = ("BASE", "NEW")


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """Where the episodes of two runs part.

    seed: of both. indices: places in the plans of both. first: None if they never differ.
    is_converted_alike: whether the same is done to observations and actions between environment and policy.
    lengths, returns: of both replays. reproduced: whether each replay is what its run has in its row; where one is
    not, `first` is true of the replays but need not be of the runs. notes: what to say beside it, such as a policy
    file that was changed since.
    """

    seed: int
    indices: tuple[int, int]
    first: Difference | None
    is_converted_alike: bool
    lengths: tuple[int, int]
    returns: tuple[float, float]
    reproduced: tuple[bool, bool]
    notes: list[str] = []


def first_divergence(
    base: StoredRun, new: StoredRun, indices: tuple[int, int], *, trusts_entrypoints: bool = False
) -> Divergence:
    """Play one episode with the routes and policies of both runs, and return where they part.

    indices: places of the episode in the plans of both; its seed must be the same.

    Raises HarnessError where an episode has no row or no seed, one policy file would have to be two, or policy or
    environment of a run cannot be had any more.
    """
    refuse_other_bytes(base, new)
    rows = [
        next((row for row in stored.rows if row.index == index), None)
        for stored, index in zip((base, new), indices, strict=True)
    ]
    one, other = rows
    if one is None or other is None or one.seed != other.seed:
        found = [None if row is None else row.seed for row in rows]
        raise HarnessError(
            f"episode {indices[0]} of {base.name} has seed {found[0]} and episode {indices[1]} of {new.name} has "
            f"seed {found[1]}: these are no pair",
            where="--first-divergence",
            mend="name episodes of one seed that both runs have played",
        )
    takes: list[Take] = []
    notes: list[str] = []
    for name, stored, row in zip(NAMES, (base, new), (one, other), strict=True):
        # What one policy imports from its folder must not be what the other one gets from its own.
        with apart():
            encore = Encore(stored, row, trusts_entrypoints=trusts_entrypoints)
            take, changes = encore.play()
            takes.append(take)
            if not _is_reproduced(row, take):
                notes += [f"{name}: {line}" for line in changes]
    return Divergence(
        seed=encore.episode.seed,
        indices=indices,
        first=first_difference(*takes),
        is_converted_alike=takes[0].conversion == takes[1].conversion,
        lengths=(takes[0].row.length, takes[1].row.length),
        returns=(takes[0].row.return_, takes[1].row.return_),
        reproduced=(_is_reproduced(one, takes[0]), _is_reproduced(other, takes[1])),
        notes=notes,
    )


def _is_reproduced(row: Any, take: Take) -> bool:
    faults = [None if known.error is None else known.error.as_played for known in (row, take.row)]
    hashes = [(known.start_hash, known.trace_hash, known.length, known.end) for known in (row, take.row)]
    return hashes[0] == hashes[1] and faults[0] == faults[1]


def divergence_words(divergence: Divergence) -> str:
    """Return a divergence as one sentence."""
    first = divergence.first
    if first is None:
        text = f"seed {divergence.seed}: no difference in {divergence.lengths[0]:,} steps"
    else:
        circumstance = circumstance_words(first, is_converted_alike=divergence.is_converted_alike)
        text = (
            f"seed {divergence.seed}: first differs at step {first.step}: "
            f"{difference_words(first, NAMES)}, {circumstance}"
        )
    for name, is_reproduced in zip(NAMES, divergence.reproduced, strict=True):
        if not is_reproduced:
            text += f"; this replay of {name} is not what its run played (`rlmesh replay` looks into that)"
    return text


def divergence_record(divergence: Divergence) -> dict[str, Any]:
    """Return a divergence as it is written into JSON, with its sentence."""
    return {**msgspec.to_builtins(divergence), "sentence": divergence_words(divergence)}
