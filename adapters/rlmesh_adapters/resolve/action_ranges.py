"""Ranges of an action: the map from the model's to the environment's, and what corrections leave of it."""

from __future__ import annotations

import numpy as np

from rlmesh_adapters.corrections import corrected, corrections
from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.plans import Affine, Ends, Segment

from .errors import ResolveError
from .features import Drive, Note
from .ranges import affine, is_zero_width, map_range, show_ends, widths_fit

_WHERE = "model_spec.output"


def action_affine(
    model: Actuator, drive: Drive, name: str, notes: list[Note], *, is_converted: bool
) -> Affine | None:
    """Return what the model's statistics, or the two ranges, come to; None where numbers stay as they are.

    is_converted: whether the numbers that the model's range is of become others, those of another encoding.

    Raises ResolveError for widths that differ, and for a range that has no width or nothing to be mapped into.
    """
    if model.normalize is not None:
        centre, spread = model.normalize.ends()
        if len(centre) != model.dim:
            raise ResolveError(
                "DimMismatch", f"{name}: statistics of {len(centre)} numbers for {model.dim} dims", where=_WHERE
            )
        return affine(spread, centre)
    if not widths_fit(model.range, model.dim):
        raise ResolveError("DimMismatch", f"{name}: range has other dims than {model.dim}", where=_WHERE)
    if model.range is None:
        if drive.range is not None and not _is_unit(drive.range):
            notes.append(
                Note(
                    "action-range-unused",
                    "info",
                    f"{name}: env range {show_ends(drive.range)} is known but the model declares none; "
                    "its numbers are sent as they are",
                )
            )
        return None
    if model.range == drive.range:
        return None
    if is_converted:
        notes.append(
            Note(
                "action-range-unused",
                "info",
                f"{name}: range {show_ends(model.range)} is declared by the model but the rotation is converted; "
                "it is a no-op",
                is_dropped=True,
            )
        )
        return None
    if drive.range is None:
        raise ResolveError(
            "Unsupported",
            f"{name}: the model declares range {show_ends(model.range)}, but the env gives no finite range to map "
            "it into",
            where=_WHERE,
            mend="declare `range` in the env tags, or drop the model's",
        )
    if is_zero_width(model.range):
        raise ResolveError(
            "Unsupported",
            f"{name}: the model's range {show_ends(model.range)} has no width",
            where=_WHERE,
            mend="correct it",
        )
    return map_range(model.range, drive.range)


def constant_note(segment: Segment, drive: Drive, name: str) -> Note | None:
    """Return what is to be said where a range is mapped, and what comes after leaves one value of it; else None.

    segment: of a model that declares a range, so that its numbers are the environment's `drive.range` by now.
    """
    steps = corrections(segment)
    if drive.range is None or not (steps or segment.is_binary):
        return None
    low, high = np.broadcast_arrays(*(np.atleast_1d(np.asarray(end, float)) for end in drive.range))
    # Every step keeps the order of numbers or turns it round, so the ends say what lies between them.
    ends = np.stack([corrected(end, steps, is_binary=segment.is_binary) for end in (low, high)])
    taken = np.clip(ends, low, high)
    places = np.flatnonzero((taken[0] == taken[1]) & (low < high)).tolist()
    if not places:
        return None
    place = places[0]
    causes = [f"the {step.whose}'s {step.field}" for step in steps]
    causes += ["the snap to -1 or +1"] if segment.is_binary else []
    least, most = np.sort(ends[:, place] + 0.0).tolist()
    left = (
        f"always {least:g}"
        if least == most
        else f"{least:g} to {most:g}, of which the environment's range holds one number at most"
    )
    return Note(
        "action-constant",
        "caution",
        f"{name}{f', number {place}' if low.size > 1 else ''}: the model's range becomes "
        f"({low[place]:g}, {high[place]:g}) first, the environment's; by {_listed(causes)} that is {left}",
    )


def _listed(causes: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(causes[:-1]), causes[-1])))


def _is_unit(ends: Ends) -> bool:
    return ends == (-1.0, 1.0)
