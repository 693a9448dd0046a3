"""Actions: what a model puts out, cut and converted into what drives the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from rlmesh_adapters.documents.actions import Action, Actuator, is_given
from rlmesh_adapters.documents.encodings import CustomEncoding
from rlmesh_adapters.documents.spec import State
from rlmesh_adapters.plans import ActionPlan, Piece, Segment
from rlmesh_adapters.roles import fixed_width, nearest_role, quoted
from rlmesh_adapters.rotations import WIDTHS
from rlmesh_adapters.spaces import SpaceView

from .action_ranges import action_affine, constant_note
from .errors import ResolveError
from .features import Drive, Features, Note
from .join import check_fill
from .ranges import is_usable
from .states import plan_piece

_WHERE = "model_spec.output"
_MOST_OUTPUTS = 1_000_000


def plan_action(output: Action, features: Features, view: SpaceView) -> tuple[ActionPlan, list[Note]]:
    """Return how the model's flat output becomes an action.

    view: the action space.

    Raises ResolveError for roles, widths, encodings and ranges that do not go together.
    """
    if output.clip is not None:
        raise ResolveError(
            "Unsupported",
            "the model's output has a clip, which belongs to the environment's action",
            where=f"{_WHERE}.clip",
            mend="move it to the env tags",
        )
    placed, at = {}, 0
    for part in output.components:
        if part.role is not None:
            placed[part.role] = (at, part)
        at += part.dim
    if at > _MOST_OUTPUTS:
        raise ResolveError(
            "Unsupported",
            f"the model puts out {at:,} numbers",
            where=_WHERE,
            mend=f"use at most {_MOST_OUTPUTS:,}",
        )
    notes: list[Note] = []
    segments, offset = [], 0
    for drive in features.drives:
        segments.append(_segment(drive, placed, features, notes))
        if segments[-1].fill is not None and drive.actuator.role is not None and not drive.count:
            check_fill(drive.actuator, view, offset)
        offset += drive.actuator.dim
    used = {segment.role for segment in segments if segment.fill is None}
    for role, (_, part) in placed.items():
        if role not in used:
            notes.append(
                Note(
                    "action-role-unused",
                    "caution",
                    f'action role "{role}": the env has no such component; the model\'s {part.dim} number(s) '
                    "for it go nowhere",
                )
            )
    assert view.dtype is not None
    plan = ActionPlan(segments=tuple(segments), in_dim=at, shape=view.shape, dtype=view.dtype, clip=features.clip)
    return plan, notes


def _segment(
    drive: Drive, placed: Mapping[str, tuple[int, Actuator]], features: Features, notes: list[Note]
) -> Segment:
    env = drive.actuator
    if env.role is None:
        return Segment(role="", width=env.dim, fill=env.fill, low=drive.low, count=drive.count)
    if env.role not in placed:
        if env.optional:
            notes.append(
                Note(
                    "actuator-filled",
                    "caution",
                    f'action role "{env.role}": the model does not drive it; {env.fill:g} is sent at every step',
                )
            )
            return Segment(role=env.role, width=env.dim, fill=env.fill, low=drive.low, count=drive.count)
        raise _missing(env.role, list(placed))
    start, model = placed[env.role]
    name = f'action role "{env.role}"'
    _check_law(name, env.role, model)
    if model.optional:
        raise _unsupported(
            f"{name}: optional is for the environment's side", "drop it, or move it to the env tags"
        )
    if model.clip:
        raise _unsupported(f"{name}: clip is for the environment's side", "move it to the env tags")
    if model.normalize is not None and model.normalize.file is not None:
        raise _unsupported(f"{name}: the statistics file {model.normalize.file} was not read", "")
    if drive.count:
        return _discrete(drive, model, start, name)
    if model.select is not None:
        raise _unsupported(f"{name}: select: {model.select} is for discrete actions", "drop `select`")
    return _numbers(drive, model, start, name, features, notes)


def _missing(role: str, roles: list[str]) -> ResolveError:
    near = nearest_role(role, roles)
    return ResolveError(
        "MissingRole",
        f'env action needs role "{role}" but the model only outputs {quoted(roles)}',
        where=_WHERE,
        mend=f'did you mean "{near}"?' if near else "add it to the model's output",
    )


def _unsupported(cause: str, mend: str) -> ResolveError:
    return ResolveError("Unsupported", cause, where=_WHERE, mend=mend)


def _check_law(name: str, role: str, model: Actuator) -> None:
    law = fixed_width(role)
    if law is not None and model.dim != law:
        raise ResolveError(
            "DimMismatch", f"{name}: model outputs {model.dim} dims, but it is {law}-D by convention", where=_WHERE
        )


def _discrete(drive: Drive, model: Actuator, start: int, name: str) -> Segment:
    """Return the segment of a discrete action, as the model says it is to be read."""
    values = f"{drive.count} values"
    if model.select is None:
        raise _unsupported(
            f"{name} is discrete ({values}), and the model does not say how it is read",
            "add `select: argmax` (scores), `index` (the value itself) or `threshold` (one number, two values)",
        )
    wrong = [
        field
        for field in ("encoding", "range", "binary", "normalize", "mode", "reference")
        if is_given(getattr(model, field))
    ]
    if wrong:
        raise _unsupported(f"{name} is discrete and cannot have `{'`, `'.join(wrong)}`", "drop them")
    dim = drive.actuator.dim
    wanted = drive.count if model.select == "argmax" else dim
    if model.select == "argmax" and dim != 1:
        raise _unsupported(f"{name} covers {dim} numbers; argmax gives one", "give each a component of its own")
    if model.dim != wanted:
        raise ResolveError(
            "DimMismatch",
            f"{name}: model outputs {model.dim} dims but select: {model.select} needs {wanted} ({values})",
            where=_WHERE,
        )
    if model.select == "threshold" and (drive.count != 2 or model.threshold is None):
        raise _unsupported(
            f"{name}: select: threshold needs two values and a `threshold`, the env has {values}",
            "add `threshold`, such as 0.5" if drive.count == 2 else "use argmax or index",
        )
    if model.select != "threshold" and model.threshold is not None:
        raise _unsupported(f"{name}: threshold without select: threshold", "drop it")
    return Segment(
        role=drive.actuator.role or "",
        width=dim,
        start=start,
        stop=start + model.dim,
        model_scale=model.scale,
        model_invert=model.invert,
        model_threshold=model.threshold,
        select=model.select,
        low=drive.low,
        count=drive.count,
    )


def _numbers(
    drive: Drive, model: Actuator, start: int, name: str, features: Features, notes: list[Note]
) -> Segment:
    env = drive.actuator
    encode: Callable[[Any], Any] | None = None
    source = model.encoding
    if isinstance(source, CustomEncoding):
        encode = _encoder(source, model, name)
        source = source.base
    target = env.encoding.base if isinstance(env.encoding, CustomEncoding) else env.encoding
    _check_widths(source, target, model, env, name)
    is_binary = env.binary or model.binary
    if not is_binary and (env.threshold is not None or model.threshold is not None):
        raise _unsupported(f"{name}: threshold without binary", "set `binary: true`, or drop `threshold`")
    if env.clip and drive.range is None:
        raise _unsupported(f"{name}: clip needs a range", "declare `range` in the env tags")
    sign, reference = _reference(model, env, name, features)
    is_converted = encode is not None or source != target
    model_range, env_range = model.range, drive.range
    if is_converted or model_range == env_range:
        model_range = env_range = None
    segment = Segment(
        role=env.role or "",
        width=env.dim,
        start=start,
        stop=start + model.dim,
        src_encoding=source or "",
        dst_encoding=target or "",
        keeps_sign=model.keep_sign,
        encode=encode,
        src_range=model_range,
        dst_range=env_range,
        statistics=model.normalize.kind if model.normalize is not None else "",
        affine=action_affine(model, drive, name, notes, is_converted=is_converted),
        model_scale=model.scale,
        model_invert=model.invert,
        model_threshold=model.threshold,
        scale=env.scale,
        invert=env.invert,
        threshold=env.threshold,
        is_binary=is_binary,
        clip=drive.range if env.clip else None,
    )
    if segment.affine is not None and not is_usable(segment.affine):
        raise _unsupported(
            f"{name}: its range or statistics come to numbers that cannot be reckoned with",
            "look for ends that are as good as infinite",
        )
    if reference is None:
        if model.range is not None and not is_converted:
            note = constant_note(segment, drive, name)
            notes += [] if note is None else [note]
        return segment
    if segment.affine is not None and model.normalize is None:
        raise _unsupported(f"{name}: a range is mapped and a reference is used", "state both ranges in one unit")
    return msgspec.structs.replace(segment, reference=reference, sign=sign)


def _encoder(encoding: CustomEncoding, model: Actuator, name: str) -> Callable[[Any], Any]:
    if model.dim != WIDTHS[encoding.base]:
        raise ResolveError(
            "DimMismatch",
            f"{name}: model outputs {model.dim} dims but encoding {encoding.base} has {WIDTHS[encoding.base]}",
            where=_WHERE,
        )
    if not callable(encoding.to_base):
        raise ResolveError(
            "UntrustedEntrypoint",
            f'{name}: custom encoding "{encoding.name}" has no function `to_base` here',
            where=_WHERE,
            mend="give the function itself, in the policy's own spec",
        )
    return encoding.to_base


def _check_widths(source: str | None, target: str | None, model: Actuator, env: Actuator, name: str) -> None:
    if source is not None and target is not None and source != target:
        for side, encoding, part in (("model outputs", source, model), ("env expects", target, env)):
            if part.dim != WIDTHS[encoding]:
                raise ResolveError(
                    "DimMismatch",
                    f"{name}: {side} {part.dim} dims but {encoding} has {WIDTHS[encoding]}",
                    where=_WHERE,
                )
        return
    if (source is None) != (target is None):
        raise ResolveError(
            "EncodingMismatch",
            f"{name}: both sides must declare a rotation encoding, or neither",
            where=_WHERE,
            mend="declare `encoding` on the side where it is missing",
        )
    if model.dim != env.dim:
        raise ResolveError(
            "DimMismatch",
            f"{name}: model outputs {model.dim} dims but the env expects {env.dim}",
            where=_WHERE,
            mend="make the two widths equal",
        )
    if source is not None and model.dim != WIDTHS[source]:
        raise ResolveError(
            "DimMismatch",
            f"{name}: model outputs {model.dim} dims but {source} has {WIDTHS[source]}",
            where=_WHERE,
        )


def _reference(model: Actuator, env: Actuator, name: str, features: Features) -> tuple[int, Piece | None]:
    """Return (sign, piece of the observation) where absolute numbers become steps, or steps absolute ones."""
    if model.mode is None and env.mode is None:
        if model.reference is not None:
            raise _unsupported(f"{name}: a reference without `mode` on both sides", "declare `mode` on both")
        return 0, None
    if model.mode == env.mode or model.mode is None or env.mode is None:
        if model.mode != env.mode and "absolute" in (model.mode, env.mode):
            raise _unsupported(
                f"{name}: one side says {model.mode or env.mode}, the other does not say",
                "declare `mode` on both sides",
            )
        return 0, None
    if model.reference is None:
        raise _unsupported(
            f"{name}: the model puts out {model.mode} values, the env expects {env.mode} ones",
            "declare `reference`, the role of the state by which they differ",
        )
    if model.encoding is not None or env.encoding is not None:
        raise _unsupported(f"{name}: rotations are no sums; a reference needs plain numbers", "drop the encoding")
    found = next((state for state in features.states if state.role == model.reference), None)
    if found is not None and found.declares:
        raise _unsupported(
            f'{name}: its reference "{model.reference}" is a rotation, and rotations are no sums',
            "name a state of plain numbers",
        )
    notes: list[Note] = []
    piece = plan_piece(State(model.reference), name, f"{_WHERE}.reference", features, notes)
    if piece.width != env.dim:
        raise ResolveError(
            "DimMismatch",
            f'{name}: its reference "{model.reference}" has {piece.width} dims, it has {env.dim}',
            where=_WHERE,
        )
    return (-1 if model.mode == "absolute" else 1), piece
