"""States: the parts of a model's flat state, matched with the numbers that an environment has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rlmesh_adapters.documents.encodings import CustomEncoding, first_known
from rlmesh_adapters.documents.spec import Concat, State
from rlmesh_adapters.paths import NodePath, show_path
from rlmesh_adapters.plans import Affine, Ends, Piece, StatePlan
from rlmesh_adapters.roles import fixed_width, nearest_role, quoted
from rlmesh_adapters.rotations import WIDTHS

from .dtypes import check_dtype
from .errors import ResolveError
from .features import Features, Note, StateFeature
from .ranges import affine, is_usable, is_zero_width, map_range, show_ends, widths_fit

_MOST_AXES = 16
_MOST_VALUES = 2**24


def plan_state(leaf: Concat, placement: NodePath, features: Features) -> tuple[StatePlan, list[Note]]:
    """Return the plan of one state input.

    Raises ResolveError for roles, encodings, widths and ranges that do not go together.
    """
    name = f'model input "{show_path(placement)}"'
    where = f"model_spec.input.{show_path(placement)}" if placement else "model_spec.input"
    notes: list[Note] = []
    pieces = []
    for number, part in enumerate(leaf.components):
        place = f"{where}.components[{number}]"
        custom = isinstance(part.encoding, CustomEncoding)
        if custom and len(leaf.components) > 1:
            raise ResolveError("Unsupported", f"{name}: a custom encoding must be the only component", where=place)
        pieces.append(plan_piece(part, name, place, features, notes))
    check_dtype(leaf.dtype, name, where)
    width = sum(piece.width for piece in pieces)
    if leaf.pad_to is not None and width > leaf.pad_to:
        raise ResolveError(
            "DimMismatch",
            f"{name} has {width} numbers, more than pad_to {leaf.pad_to}",
            where=where,
            mend="raise pad_to, or drop a component",
        )
    width = leaf.pad_to if leaf.pad_to is not None else width
    if width * leaf.stack > _MOST_VALUES:
        raise ResolveError(
            "Unsupported",
            f"{name} has {width:,} numbers, {leaf.stack} of them at a time",
            where=where,
            mend=f"ask for at most {_MOST_VALUES:,}",
        )
    plan = StatePlan(
        placement=placement,
        pieces=tuple(pieces),
        width=width,
        pad_to=leaf.pad_to,
        dtype=leaf.dtype,
        reshape=None if leaf.reshape is None else _shape(leaf.reshape, width, name, where),
        container=leaf.container,
        stack=leaf.stack,
    )
    if leaf.container == "list" and leaf.stack > 1:
        raise ResolveError("Unsupported", f"{name}: a list of numbers cannot be stacked", where=where)
    return plan, notes


def _shape(wanted: tuple[int, ...], width: int, name: str, where: str) -> tuple[int, ...]:
    if len(wanted) > _MOST_AXES:
        raise ResolveError(
            "Unsupported", f"{name}: a shape of {len(wanted)} axes", where=where, mend=f"give at most {_MOST_AXES}"
        )
    known = math.prod(axis for axis in wanted if axis != -1)
    fits = (known != 0 and width % known == 0) if -1 in wanted else known == width
    if not fits:
        raise ResolveError(
            "DimMismatch",
            f"{name}: {width} numbers cannot be given the shape {list(wanted)}",
            where=where,
            mend="make the product of the axes fit",
        )
    return tuple(width // known if axis == -1 else axis for axis in wanted)


def plan_piece(part: State, name: str, where: str, features: Features, notes: list[Note]) -> Piece:
    """Return the plan of one component of a state."""
    found = next((state for state in features.states if state.role == part.role), None)
    if found is None:
        if not part.optional:
            raise _missing(name, where, part.role, features)
        return _zeros(part, name, where)
    if part.normalize is not None and part.normalize.file is not None:
        raise ResolveError(
            "Unsupported", f"{name}: the statistics file {part.normalize.file} was not read", where=where
        )
    return _piece(part, found, name, where, notes)


def _missing(name: str, where: str, role: str, features: Features) -> ResolveError:
    roles = [state.role for state in features.states]
    near = nearest_role(role, roles)
    return ResolveError(
        "MissingRole",
        f'{name} needs state role "{role}" but the env only has {quoted(roles)}',
        where=where,
        mend=f'did you mean "{near}"?' if near else "tag it, or set `optional: true`",
    )


def _zeros(part: State, name: str, where: str) -> Piece:
    if isinstance(part.encoding, CustomEncoding):
        raise ResolveError("Unsupported", f"{name}: a custom encoding cannot be optional", where=where)
    known = first_known(part.encoding or ())
    width = 1 if part.index is not None else part.dim
    if width is None and known:
        width = WIDTHS[known]
    if width is None:
        raise ResolveError(
            "MissingWidth",
            f'{name}: optional role "{part.role}" is absent, and its zero fill needs a width',
            where=where,
            mend="declare `dim`, `index` or `encoding`",
        )
    return Piece(role=part.role, source=None, width=width)


def _piece(part: State, found: StateFeature, name: str, where: str, notes: list[Note]) -> Piece:
    decode: Callable[[Any], Any] | None = None
    if isinstance(part.encoding, CustomEncoding):
        decode = _decoder(part, name, where)
        source, target = found.encoding, part.encoding.base
        if not source:
            raise _one_sided(part.role, name, where)
    else:
        source, target = _encodings(part, found, name, where)
    if source != target and found.width != WIDTHS[source]:
        raise ResolveError(
            "DimMismatch",
            f'{name}: role "{part.role}" has {found.width} dims, but {source} has {WIDTHS[source]}',
            where=where,
        )
    full = WIDTHS[target] if source != target else found.width
    _check_slice(part, full, name, where)
    law = fixed_width(part.role)
    width = 1 if part.index is not None else part.dim if part.dim is not None else full
    if law is not None and found.width != law:
        raise ResolveError("DimMismatch", f'{name}: role "{part.role}" is {law}-D by convention', where=where)
    # The environment's range is of its own numbers, not of those that they are converted to.
    source_range = found.range if source == target and decode is None else None
    return Piece(
        role=part.role,
        source=found.source,
        width=width,
        src_width=found.src_width,
        offset=found.offset,
        src_dim=found.width,
        is_field=found.is_field,
        src_encoding=source,
        dst_encoding=target,
        keeps_sign=part.keep_sign,
        decode=decode,
        dim=part.dim,
        index=part.index,
        src_range=source_range,
        dst_range=part.range,
        statistics=part.normalize.kind if part.normalize is not None else "",
        affine=_checked(_affine(part, found, source_range, full, width, name, where, notes), name, where),
    )


def _checked(affine: Affine | None, name: str, where: str) -> Affine | None:
    if affine is not None and not is_usable(affine):
        raise ResolveError(
            "Unsupported",
            f"{name}: its range or statistics come to numbers that cannot be reckoned with",
            where=where,
            mend="look for a spread of next to nothing, or ends that are as good as infinite",
        )
    return affine


def _decoder(part: State, name: str, where: str) -> Callable[[Any], Any]:
    assert isinstance(part.encoding, CustomEncoding)
    if part.optional or part.dim is not None or part.index is not None:
        raise ResolveError("Unsupported", f"{name}: a custom encoding has no optional, dim or index", where=where)
    if not callable(part.encoding.from_base):
        raise ResolveError(
            "UntrustedEntrypoint",
            f'{name}: custom encoding "{part.encoding.name}" has no function `from_base` here',
            where=where,
            mend="give the function itself, in the policy's own spec",
        )
    return part.encoding.from_base


def _encodings(part: State, found: StateFeature, name: str, where: str) -> tuple[str, str]:
    """Return (source, target) names of a rotation; both empty where none is declared."""
    wanted = part.encoding
    assert wanted is None or isinstance(wanted, tuple)
    if wanted is None and not found.declares:
        return "", ""
    if wanted is None or not found.declares:
        raise _one_sided(part.role, name, where)
    if not found.encoding:
        raise ResolveError(
            "EncodingMismatch",
            f'{name}: the env declares an unrecognized encoding for role "{part.role}"',
            where=where,
            mend=f"use one of {quoted(WIDTHS)}",
        )
    if found.encoding in wanted:
        return found.encoding, found.encoding
    target = first_known(wanted)
    if not target:
        raise ResolveError(
            "EncodingMismatch",
            f'{name}: no encoding of {quoted(wanted)} is known for role "{part.role}"',
            where=where,
            mend=f"use one of {quoted(WIDTHS)}",
        )
    return found.encoding, target


def _one_sided(role: str, name: str, where: str) -> ResolveError:
    return ResolveError(
        "EncodingMismatch",
        f'{name}: both sides must declare a rotation encoding for role "{role}", or neither',
        where=where,
        mend="declare `encoding` on the side where it is missing",
    )


def _check_slice(part: State, full: int, name: str, where: str) -> None:
    if part.index is not None and part.index >= full:
        raise ResolveError(
            "SliceOutOfRange", f'{name}: index {part.index} of role "{part.role}", which has {full}', where=where
        )
    if part.dim is not None and part.dim > full:
        raise ResolveError(
            "SliceOutOfRange",
            f'{name}: the first {part.dim} numbers of role "{part.role}", which has {full}',
            where=where,
        )
    if part.dim == 0:
        raise ResolveError("SliceOutOfRange", f'{name}: dim 0 of role "{part.role}"', where=where)


def _affine(
    part: State,
    found: StateFeature,
    source_range: Ends | None,
    full: int,
    width: int,
    name: str,
    where: str,
    notes: list[Note],
) -> Affine | None:
    if part.normalize is not None:
        centre, spread = part.normalize.ends()
        if len(centre) not in (width, full):
            raise ResolveError(
                "DimMismatch",
                f'{name}: statistics of {len(centre)} numbers for role "{part.role}", which has {width}',
                where=where,
            )
        kept = slice(None) if len(centre) == width else _kept(part)
        pairs = list(zip(centre, spread, strict=True))[kept]
        return affine(
            [1 / spread if spread else 0.0 for _, spread in pairs],
            [-centre / spread if spread else 0.0 for centre, spread in pairs],
        )
    if part.range is None:
        return None
    if not widths_fit(part.range, width):
        raise ResolveError("DimMismatch", f"{name}: range has other dims than the {width} it is for", where=where)
    if source_range is None:
        notes.append(
            Note(
                "state-range-unused",
                "info",
                f'state "{part.role}": range {show_ends(part.range)} is declared by the model but '
                + ("the env gives none" if found.range is None else "the rotation is converted")
                + "; it is a no-op",
                is_dropped=True,
            )
        )
        return None
    assert found.range is not None
    low, high = found.range
    if isinstance(low, tuple) and isinstance(high, tuple) and width != len(low):
        low, high = low[_kept(part)], high[_kept(part)]
    if (low, high) == part.range:
        return None
    if is_zero_width((low, high)):
        raise ResolveError(
            "Unsupported",
            f'{name}: the env\'s range {show_ends((low, high))} of role "{part.role}" has no width',
            where=where,
        )
    return map_range((low, high), part.range)


def _kept(part: State) -> slice:
    return slice(part.index, part.index + 1) if part.index is not None else slice(part.dim)
