"""Explain: plans as readable lines, one a transform, in the order in which they run; nothing is left out."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from .corrections import corrections
from .paths import NodePath, show_path
from .plans import (
    ActionPlan,
    Affine,
    CustomPlan,
    Ends,
    ImagePlan,
    ObservationPlan,
    Piece,
    Segment,
    StatePlan,
    TextPlan,
)

_FITS = {"stretch": "stretched", "crop": "edges cut off", "pad": "black borders added"}


class Explanation(msgspec.Struct, frozen=True):
    """How one value comes about.

    target: where it goes. shape: what it is in the end. steps: from its source to there.
    """

    target: str
    shape: str
    steps: tuple[str, ...]


def explain_input(plan: ObservationPlan) -> Explanation:
    """Return how one input of the model is made."""
    target = show_path(plan.placement)
    if isinstance(plan, ImagePlan):
        return Explanation(target, _image_shape(plan), tuple(_image_steps(plan)))
    if isinstance(plan, StatePlan):
        return Explanation(target, _state_shape(plan), tuple(_state_steps(plan)))
    if isinstance(plan, TextPlan):
        return Explanation(target, _text_shape(plan), tuple(_text_steps(plan)))
    assert isinstance(plan, CustomPlan)
    return Explanation(target, "custom", (f"{plan.reference}(observation), lane by lane",))


def explain_action(plan: ActionPlan) -> list[Explanation]:
    """Return how each component of the environment's action is made, and what happens to the whole."""
    lines = [_segment(segment) for segment in plan.segments]
    steps = [f"clipped to {_ends(plan.clip)}"] if plan.clip is not None else []
    steps.append(f"clipped into the space, as {plan.dtype}" if plan.dtype.kind == "f" else f"as {plan.dtype}")
    shape = _array(str(plan.dtype), plan.shape)
    return [*lines, Explanation("the whole action", shape, tuple(steps))]


def _image_shape(plan: ImagePlan) -> str:
    if plan.zero_fill is not None:
        height, width, channels = plan.zero_fill
    else:
        (height, width), channels = plan.size or plan.src_shape[:2], plan.src_shape[2]
    image = (height, width, channels) if plan.dst_layout == "hwc" else (channels, height, width)
    stack = (plan.stack,) if plan.stack > 1 else ()
    return _array(plan.dtype, (*stack, *(1,) * plan.lead_dims, *image))


def _array(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]" if shape else dtype


def _from(path: NodePath) -> str:
    """Return where a value comes from; an observation that is no dict is itself the source."""
    return show_path(path) if path else "observation"


def _image_steps(plan: ImagePlan) -> Iterator[str]:
    if plan.source is None:
        yield f"no camera has role {plan.role}: every pixel is {plan.fill}"
    else:
        height, width, channels = plan.src_shape
        other = f" in place of {plan.role}" if plan.bound_role != plan.role else ""
        yield f"{_from(plan.source)}, {plan.bound_role}{other}: {height}x{width}, {channels} channels"
        if plan.src_range is not None and plan.src_range != (0.0, 255.0):
            yield f"{_ends(plan.src_range)} to (0, 255)" + ("" if plan.is_float else ", rounded to 8 bits")
        yield from _geometry(plan)
    if plan.normalize is not None:
        yield f"(0, 255) to {_ends(plan.normalize)}"
    if plan.mean:
        yield f"minus {list(plan.mean)}, divided by {list(plan.std)}"
    if plan.dst_layout == "chw":
        yield "hwc to chw"
    if plan.lead_dims:
        yield "an axis of size 1 in front" if plan.lead_dims == 1 else f"{plan.lead_dims} axes of size 1 in front"
    if plan.stack > 1:
        yield f"the last {plan.stack} frames, the oldest first"


def _geometry(plan: ImagePlan) -> Iterator[str]:
    if plan.src_layout == "chw":
        yield "chw to hwc"
    if plan.flip_rows and plan.flip_columns:
        yield "turned by 180 degrees"
    elif plan.flip_rows or plan.flip_columns:
        yield "flipped top to bottom" if plan.flip_rows else "flipped left to right"
    if plan.swap_channels:
        yield "channels in the opposite order (rgb and bgr)"
    if plan.size is not None and plan.size != plan.src_shape[:2]:
        yield f"resized to {plan.size[0]}x{plan.size[1]} by {plan.resample}, {_FITS[plan.fit or 'stretch']}"


def _state_shape(plan: StatePlan) -> str:
    if plan.container == "list":
        return f"list of {plan.width} numbers"
    stack = (plan.stack,) if plan.stack > 1 else ()
    return _array(plan.dtype, (*stack, *(plan.reshape or (plan.width,))))


def _state_steps(plan: StatePlan) -> Iterator[str]:
    for piece in plan.pieces:
        yield _piece(piece)
    used = sum(piece.width for piece in plan.pieces)
    if plan.width > used:
        yield f"{plan.width - used} zeros, up to {plan.width}"
    if plan.stack > 1:
        yield f"the last {plan.stack} frames, the oldest first"


def _piece(piece: Piece) -> str:
    if piece.source is None:
        return f"{piece.role}: {piece.width} zeros, the environment has none"
    text = f"{piece.role} from {_from(piece.source)}"
    if piece.is_field:
        text += f"[{piece.offset}:{piece.offset + piece.src_dim}]"
    steps = _turned(piece)
    if piece.decode is not None:
        steps.append("decoded by a function of the policy's")
    if piece.index is not None:
        steps.append(f"only number {piece.index}")
    elif piece.dim is not None:
        steps.append(f"the first {piece.dim}")
    steps += _scaling(piece.src_range, piece.dst_range, piece.statistics, piece.affine)
    return ", ".join([text, *steps])


def _turned(part: Piece | Segment) -> list[str]:
    if part.src_encoding == part.dst_encoding:
        return []
    return [f"{part.src_encoding} to {part.dst_encoding}{', sign kept' if part.keeps_sign else ''}"]


def _scaling(source: Ends | None, target: Ends | None, statistics: str, affine: Affine | None) -> list[str]:
    if affine is None:
        return []
    if statistics:
        return [f"by statistics ({statistics}): * {_number(affine.scale)} + {_number(affine.offset)}"]
    assert source is not None
    assert target is not None
    return [f"{_ends(source)} to {_ends(target)}"]


def _text_shape(plan: TextPlan) -> str:
    return "text" if plan.container == "str" else "list of one text"


def _text_steps(plan: TextPlan) -> Iterator[str]:
    yield f'always "{plan.fill}"' if plan.source is None else f"{_from(plan.source)}, {plan.role}"


def _segment(segment: Segment) -> Explanation:
    width = f"{segment.width} number" + ("s" if segment.width > 1 else "")
    if segment.fill is not None:
        why = "the model does not drive it" if segment.role else "nobody drives it"
        return Explanation(segment.role or "(no role)", width, (f"always {segment.fill:g}: {why}",))
    steps = [f"model[{segment.start}:{segment.stop}]"]
    if segment.select:
        steps += _corrections(segment)
        steps.append(_selection(segment))
        values = f"{width} of {segment.count} values" + (" each" if segment.width > 1 else "")
        return Explanation(segment.role, values, tuple(steps))
    scaling = _scaling(segment.src_range, segment.dst_range, segment.statistics, segment.affine)
    # Statistics are of what the model puts out; ranges are of what the environment takes.
    steps += scaling if segment.statistics else []
    if segment.encode is not None:
        steps.append("encoded by a function of the policy's")
    steps += _turned(segment)
    steps += [] if segment.statistics else scaling
    if segment.reference is not None:
        verb = "plus" if segment.sign > 0 else "minus"
        steps.append(f"{verb} the observed {segment.reference.role}")
    steps += _corrections(segment)
    if segment.is_binary:
        steps.append("snapped to -1 or +1")
    if segment.clip is not None:
        steps.append(f"clipped to {_ends(segment.clip)}")
    return Explanation(segment.role, width, tuple(steps))


def _selection(segment: Segment) -> str:
    last = segment.low + segment.count - 1
    if segment.select == "argmax":
        return f"the place of the largest of {segment.count}, from {segment.low} on"
    if segment.select == "index":
        return f"the value itself, {segment.low} to {last}"
    return f"{last} from {segment.model_threshold:g} on, else {segment.low}"


def _corrections(segment: Segment) -> Iterator[str]:
    for step in corrections(segment):
        does = {"scale": f"* {step.value:g}", "invert": "negated", "threshold": f"- {step.value:g}"}[step.field]
        yield f"{does} (the {step.whose}'s {step.field})"


def _ends(ends: Ends) -> str:
    return f"({_number(ends[0])}, {_number(ends[1])})"


def _number(value: float | tuple[float, ...]) -> str:
    return f"[{', '.join(f'{part:g}' for part in value)}]" if isinstance(value, tuple) else f"{value:g}"
