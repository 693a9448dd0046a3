"""Ranges of an action: the map from the model's to the environment's, or from its statistics."""

from __future__ import annotations

from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.plans import Affine, Ends

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


def _is_unit(ends: Ends) -> bool:
    return ends == (-1.0, 1.0)
