"""Describe: plans as text, in the grammar of the v1 reference, which other tools read."""

from __future__ import annotations

from collections.abc import Iterator

from .paths import show_path
from .plans import ActionPlan, CustomPlan, Ends, ImagePlan, ObservationPlan, Piece, Segment, StatePlan, TextPlan
from .resolve.resolving import Resolved


def describe(resolved: Resolved) -> str:
    """Return a route's plans as text, without a line end at its end."""
    lines = ["observation:"]
    lines += [f'  "{show_path(plan.placement)}" <- {_source(plan)}' for plan in resolved.plans]
    lines += ["action:", *(f"  {line}" for line in _action(resolved.action))]
    dropped = [note.message for note in resolved.notes if note.is_dropped]
    if dropped:
        lines += ["dropped:", *(f"  {message}" for message in dropped)]
    return "\n".join(lines)


def _source(plan: ObservationPlan) -> str:
    if isinstance(plan, ImagePlan):
        return _image(plan)
    if isinstance(plan, StatePlan):
        pieces = ", ".join(_piece(piece) for piece in plan.pieces)
        return f"concat({pieces})" + (f", pad to {plan.pad_to}" if plan.pad_to is not None else "")
    if isinstance(plan, TextPlan):
        return f'text fill "{plan.fill}"' if plan.source is None else f'text "{show_path(plan.source)}"'
    assert isinstance(plan, CustomPlan)
    return "custom transform"


def _image(plan: ImagePlan) -> str:
    if plan.zero_fill is not None or plan.source is None:
        height, width, channels = plan.zero_fill or (0, 0, 0)
        return f"zeros({height}x{width}x{channels})"
    steps = [*_image_steps(plan)]
    return f'image "{show_path(plan.source)}" ({", ".join(steps)})'


def _image_steps(plan: ImagePlan) -> Iterator[str]:
    if plan.src_layout == "chw":
        yield "chw->hwc"
    if plan.flip_rows and plan.flip_columns:
        yield "flip 180"
    elif plan.flip_rows:
        yield "flip vertical"
    elif plan.flip_columns:
        yield "flip horizontal"
    if plan.swap_channels:
        yield "swap channels"
    if plan.size is not None and plan.size != plan.src_shape[:2]:
        yield f"resize {plan.size[0]}x{plan.size[1]} ({plan.resample})"
    if plan.normalize is not None:
        low, high = plan.normalize
        yield "normalize /255" if (low, high) == (0.0, 1.0) else f"normalize [{low:g}, {high:g}]"
    if plan.mean:
        yield "minus mean / std"
    yield plan.dtype
    if plan.dst_layout == "chw":
        yield "hwc->chw"
    if plan.lead_dims:
        yield f"+{plan.lead_dims} lead dims"


def _piece(piece: Piece) -> str:
    if piece.source is None:
        return f"zeros({piece.width})"
    text = show_path(piece.source)
    if piece.is_field:
        text += f"[{piece.offset}:{piece.offset + piece.src_dim}]"
    if piece.src_encoding != piece.dst_encoding:
        text += f" ({piece.src_encoding}->{piece.dst_encoding})"
    if piece.index is not None:
        text += f"[{piece.index}]"
    elif piece.dim is not None and not (piece.is_field and piece.dim == piece.src_dim):
        text += f"[:{piece.dim}]"
    return text + _mapped(piece.src_range, piece.dst_range)


def _mapped(source: Ends | None, target: Ends | None) -> str:
    if source is None or target is None:
        return ""
    return f" (range {_ends(source)}->{_ends(target)})"


def _ends(ends: Ends) -> str:
    return f"({_number(ends[0])}, {_number(ends[1])})"


def _number(value: float | tuple[float, ...]) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(float(value))


def _action(plan: ActionPlan) -> Iterator[str]:
    for segment in plan.segments:
        yield _segment(segment)
    if plan.clip is not None:
        yield f"clip to {_ends(plan.clip)}"


def _segment(segment: Segment) -> str:
    if segment.fill is not None:
        if not segment.role:
            return f"(opaque {segment.width}d) <- fill {segment.fill:g}"
        return (
            f'"{segment.role}" <- fill {segment.fill:g} '
            f"({segment.width}d; model did not output this optional role)"
        )
    text = f'"{segment.role}" <- model[{segment.start}:{segment.stop}]'
    if segment.src_encoding != segment.dst_encoding:
        text += f" ({segment.src_encoding}->{segment.dst_encoding})"
    text += _mapped(segment.src_range, segment.dst_range)
    if segment.select:
        return f"{text} ({segment.select} of {segment.count})"
    if segment.scale is not None:
        text += f" (*{segment.scale:g})"
    if segment.invert:
        text += " (invert)"
    if segment.threshold is not None:
        text += f" (-{segment.threshold:g})"
    return text + (" (sign)" if segment.is_binary else "")
