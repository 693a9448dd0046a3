"""Join: env tags laid over the spaces they speak of."""

from __future__ import annotations

import numpy as np

from rlmesh_adapters.documents.actions import Action, Actuator, is_given
from rlmesh_adapters.documents.encodings import CustomEncoding, first_known
from rlmesh_adapters.documents.tags import EnvTags, Field, ImageTag, Split, StateTag, TextTag
from rlmesh_adapters.documents.trees import Tree, UnknownLeaf
from rlmesh_adapters.errors import nearest
from rlmesh_adapters.paths import ROOT_KEY, NodePath, show_path
from rlmesh_adapters.plans import Ends
from rlmesh_adapters.roles import fixed_width, is_sanctioned, quoted
from rlmesh_adapters.rotations import WIDTHS
from rlmesh_adapters.spaces import INTEGER_KINDS, SpaceView

from .errors import ResolveError
from .features import Drive, Features, ImageFeature, Note, StateFeature, TextFeature, UnknownFeature
from .ranges import agree, show_ends, slice_range, uniform_range, widths_fit

_TAGS = "env_tags.observation"
_KINDS = {
    "box": "Box",
    "discrete": "Discrete",
    "multi_binary": "MultiBinary",
    "multi_discrete": "MultiDiscrete",
    "text": "Text",
    "dict": "Dict",
    "tuple": "Tuple",
    "opaque": "opaque",
}


def join(tags: EnvTags, observation: SpaceView, action: SpaceView) -> Features:
    """Return what tagged spaces give.

    observation, action: spaces of one lane.

    Raises ResolveError, code InvalidTag, where tags and spaces disagree.
    """
    walk = _Walk()
    walk.visit(tags.observation, observation, ())
    drives = _drives(tags.action, action)
    roles = [feature.role for feature in walk.ordered]
    roles += [drive.actuator.role for drive in drives if drive.actuator.role is not None]
    nudges = [_nudge(role) for role in roles if not is_sanctioned(role)]
    return Features(
        tuple(walk.images),
        tuple(walk.states),
        tuple(walk.texts),
        tuple(walk.unknown),
        drives,
        tags.action.clip,
        tuple(walk.hints + nudges),
    )


def _nudge(role: str) -> Note:
    return Note(
        "role-unregistered", "info", f'role "{role}" is not in the role registry; it matches its exact name only'
    )


class _Walk:
    """Goes through tags and space side by side."""

    def __init__(self) -> None:
        self.images: list[ImageFeature] = []
        self.states: list[StateFeature] = []
        self.texts: list[TextFeature] = []
        self.unknown: list[UnknownFeature] = []
        self.ordered: list[ImageFeature | StateFeature | TextFeature] = []
        self.hints: list[Note] = []

    def visit(self, tag: Tree, view: SpaceView, path: NodePath) -> None:
        """Join one node and what is inside it."""
        if isinstance(tag, dict):
            children = self._children(view, path, "dict", "Dict")
            for key, inner in tag.items():
                if key == ROOT_KEY:
                    raise _invalid(f'the observation key "{ROOT_KEY}" is reserved', path)
                if key not in children:
                    near = nearest(key, [str(name) for name in children], limit=1)
                    raise _invalid(
                        f'observation "{show_path((*path, key))}" is tagged, but the space has only '
                        f"{quoted(map(str, children))}",
                        (*path, key),
                        f'did you mean "{near[0]}"?' if near else "tag what is there",
                    )
                self.visit(inner, children[key], (*path, key))
        elif isinstance(tag, tuple):
            children = self._children(view, path, "tuple", "Tuple")
            if len(children) != len(tag):
                raise _invalid(
                    f'observation "{show_path(path)}" is tagged as a Tuple of {len(tag)}, but the space has '
                    f"{len(children)}",
                    path,
                    "tag every part",
                )
            for position, inner in enumerate(tag):
                self.visit(inner, children[position], (*path, position))
        else:
            self._leaf(tag, view, path)

    def _children(self, view: SpaceView, path: NodePath, kind: str, name: str) -> dict[str | int, SpaceView]:
        if view.kind != kind:
            raise _invalid(
                f'observation "{show_path(path)}" is tagged as a {name}, but the space is {_kind(view)}', path
            )
        return dict(view.children)

    def _leaf(self, tag: object, view: SpaceView, path: NodePath) -> None:
        if isinstance(tag, UnknownLeaf):
            self.unknown.append(UnknownFeature(path, tag.role, tag.type))
        elif isinstance(tag, ImageTag):
            self._image(tag, view, path)
        elif isinstance(tag, StateTag):
            self._require_numbers(view, path, "a state")
            field = Field(tag.role, view.size or 1, tag.encoding, tag.range) if view.size else None
            if field is None:
                raise _invalid(f'observation "{show_path(path)}" has no numbers', path)
            self._state(field, view, path, 0, is_field=False)
        elif isinstance(tag, Split):
            self._split(tag, view, path)
        elif isinstance(tag, TextTag):
            if view.kind != "text":
                raise _invalid(
                    f'observation "{show_path(path)}" is tagged as a text, but the space is {_kind(view)}', path
                )
            feature = TextFeature(path, tag.role)
            self.texts.append(feature)
            self.ordered.append(feature)

    def _image(self, tag: ImageTag, view: SpaceView, path: NodePath) -> None:
        name = show_path(path)
        if view.kind != "box" or len(view.shape) != 3 or view.dtype is None:
            found = f"a {len(view.shape)}-D Box" if view.kind == "box" else _kind(view)
            raise _invalid(f'observation "{name}" is tagged as an image (3-D Box) but the space is {found}', path)
        height, width, channels = _hwc(view.shape, tag.layout)
        other = "chw" if tag.layout == "hwc" else "hwc"
        if channels > 4 and 1 <= _hwc(view.shape, other)[2] <= 4:
            self.hints.append(
                Note(
                    "image-layout",
                    "info",
                    f'image "{tag.role}": shape implies {channels} channels under layout={tag.layout}; '
                    f'this looks like {other}: declare layout="{other}" if so',
                )
            )
        is_float = view.dtype.kind == "f"
        given = uniform_range(view) if is_float else None
        given = None if given is None or given[0] == given[1] else given
        if tag.range is not None and tag.range[0] == tag.range[1]:
            raise _invalid(f'image "{name}": range {show_ends(tag.range)} has no width', path)
        if tag.range is not None and given is not None and not agree(given, tag.range, 1):
            raise _disagree(f'image "{name}"', given, tag.range, path)
        feature = ImageFeature(
            path, tag, (height, width, channels), tag.range or given, is_float, view.dtype in (np.uint8, np.bool_)
        )
        self.images.append(feature)
        self.ordered.append(feature)

    def _require_numbers(self, view: SpaceView, path: NodePath, what: str) -> None:
        if not view.is_array:
            raise _invalid(
                f'observation "{show_path(path)}" is tagged as {what}, but the space is {_kind(view)}', path
            )

    def _split(self, tag: Split, view: SpaceView, path: NodePath) -> None:
        self._require_numbers(view, path, "a split")
        total = sum(field.dim for field in tag.fields)
        if total != view.size:
            raise _invalid(
                f'state layout for "{show_path(path)}" sums to {total} dims but the space width is {view.size}',
                path,
                "name every run of numbers; a field without a role is passed over",
            )
        offset = 0
        for field in tag.fields:
            if field.role is not None:
                self._state(field, view, path, offset, is_field=True)
            offset += field.dim

    def _state(self, field: Field, view: SpaceView, path: NodePath, offset: int, *, is_field: bool) -> None:
        role = field.role or ""
        name = f'state "{show_path(path)}"' + (f' field "{role}"' if is_field else "")
        encoding = first_known(field.encoding or ())
        if encoding and WIDTHS[encoding] != field.dim:
            width = "field width" if is_field else "space width"
            raise _invalid(
                f"{name} declares encoding {encoding} ({WIDTHS[encoding]} dims) but the {width} is {field.dim}",
                path,
                f"name the encoding the {field.dim} numbers are in",
            )
        _check_law(name, role, field.dim, path)
        if not widths_fit(field.range, field.dim):
            raise _invalid(f"{name}: range has other dims than the {field.dim} of the space", path)
        bounds = slice_range(view, offset, field.dim)
        if bounds is not None and field.range is not None and not agree(bounds, field.range, field.dim):
            raise _disagree(name, bounds, field.range, path)
        feature = StateFeature(
            path,
            role,
            field.dim,
            view.size,
            offset,
            is_field,
            field.encoding is not None,
            encoding,
            field.range if field.range is not None else bounds,
        )
        self.states.append(feature)
        self.ordered.append(feature)


def _hwc(shape: tuple[int, ...], layout: str) -> tuple[int, int, int]:
    first, second, third = shape
    return (first, second, third) if layout == "hwc" else (second, third, first)


def _drives(action: Action, view: SpaceView) -> tuple[Drive, ...]:
    """Return the components of an action with the ranges and counts that the space gives them."""
    if view.kind not in ("box", *INTEGER_KINDS):
        raise ResolveError(
            "InvalidTag",
            f"the action space must be a flat Box or whole numbers but it is {_kind(view)}",
            where="env_tags.action",
            mend="run the policy without a model spec",
        )
    total = sum(part.dim for part in action.components)
    if total != view.size:
        raise ResolveError(
            "InvalidTag",
            f"the action components sum to {total} dims but the action space has {view.size}",
            where="env_tags.action",
            mend="give every number of the action a component; one without a role sends its fill",
        )
    drives, offset = [], 0
    for part in action.components:
        drives.append(_drive(part, view, offset))
        offset += part.dim
    if view.kind in INTEGER_KINDS and action.clip is not None:
        raise ResolveError(
            "InvalidTag",
            f"clip is for numbers, but the action space is {_kind(view)}",
            where="env_tags.action.clip",
            mend="drop it",
        )
    if action.clip is not None and view.size and _misses(action.clip, view):
        raise ResolveError(
            "InvalidTag",
            f"clip {show_ends(action.clip)} lies outside the action space {view}",
            where="env_tags.action.clip",
            mend="correct it, or drop it: actions are clipped into their space anyway",
        )
    is_whole = view.dtype is not None and view.dtype.kind in "iu"
    if action.clip is not None and is_whole and not all(end.is_integer() for end in action.clip):
        raise ResolveError(
            "InvalidTag",
            f"clip {show_ends(action.clip)} of an action of whole numbers",
            where="env_tags.action.clip",
            mend="give whole numbers",
        )
    return tuple(drives)


def check_fill(part: Actuator, view: SpaceView, offset: int) -> None:
    """Refuse a constant that the environment does not take.

    offset: of the component's first number in the action.
    """
    assert view.low is not None
    assert view.high is not None
    assert view.dtype is not None
    low = np.ravel(view.low)[offset : offset + part.dim].astype(np.float64)
    high = np.ravel(view.high)[offset : offset + part.dim].astype(np.float64)
    with np.errstate(over="ignore"):
        sent = np.array([part.fill]).astype(view.dtype).astype(np.float64)
    is_held = bool(np.isfinite(sent).all()) and (view.dtype.kind == "f" or part.fill == sent[0])
    if not is_held or (sent < low).any() or (sent > high).any():
        name = f'action role "{part.role}"' if part.role else "an action component without a role"
        raise ResolveError(
            "InvalidTag",
            f"{name}: fill {part.fill:g} is outside the action space",
            where="env_tags.action",
            mend="give a `fill` that the environment takes",
        )


#: Fields that only an actuator of plain numbers has.
_NUMBERS_OWN = ("encoding", "range", "binary", "scale", "threshold", "invert", "clip", "mode")
#: Fields of an actuator that only a model's output has.
_MODELS_OWN = ("select", "normalize", "reference", "keep_sign")


def _drive(part: Actuator, view: SpaceView, offset: int) -> Drive:
    if view.kind in INTEGER_KINDS:
        return _discrete(part, view, offset)
    if part.role is None:
        check_fill(part, view, offset)
        return Drive(part, None)
    name = f'action role "{part.role}"'
    wrong = [field for field in _MODELS_OWN if is_given(getattr(part, field))]
    if isinstance(part.encoding, CustomEncoding):
        wrong.append("encoding (one of the user's own)")
    if wrong:
        raise ResolveError(
            "InvalidTag",
            f"{name}: `{'`, `'.join(wrong)}` belongs to the model's side",
            where="env_tags.action",
            mend="move it to the model's output",
        )
    encoding = part.encoding
    assert encoding is None or isinstance(encoding, str)
    if encoding is not None and WIDTHS[encoding] != part.dim:
        raise ResolveError(
            "InvalidTag",
            f"{name} declares encoding {encoding} ({WIDTHS[encoding]} dims) but its width is {part.dim}",
            where="env_tags.action",
            mend=f"name the encoding the {part.dim} numbers are in",
        )
    _check_law(name, part.role, part.dim, None)
    bounds = slice_range(view, offset, part.dim)
    if bounds is not None and part.range is not None and not agree(bounds, part.range, part.dim):
        raise _disagree(name, bounds, part.range, None)
    return Drive(part, part.range if part.range is not None else bounds)


def _discrete(part: Actuator, view: SpaceView, offset: int) -> Drive:
    assert view.low is not None
    assert view.high is not None
    low = np.ravel(view.low)[offset : offset + part.dim]
    high = np.ravel(view.high)[offset : offset + part.dim]
    name = f'action role "{part.role}"' if part.role else "an action component without a role"
    if len(set(zip(low.tolist(), high.tolist(), strict=True))) > 1:
        raise ResolveError(
            "InvalidTag",
            f"{name} covers numbers of different counts: {(high - low + 1).tolist()} values",
            where="env_tags.action",
            mend="give each a component of its own",
        )
    wrong = [field for field in (*_NUMBERS_OWN, *_MODELS_OWN) if is_given(getattr(part, field))]
    if wrong:
        raise ResolveError(
            "InvalidTag",
            f"{name} is discrete ({_kind(view)}) and cannot have `{'`, `'.join(wrong)}`",
            where="env_tags.action",
            mend="drop them; the model's side says how an index is read, with `select`",
        )
    first, count = int(low[0]), int(high[0]) - int(low[0]) + 1
    is_filled = part.role is None or part.optional
    if is_filled and not (part.fill.is_integer() and first <= part.fill < first + count):
        raise ResolveError(
            "InvalidTag",
            f"{name}: fill {part.fill:g} is none of its values {first} to {first + count - 1}",
            where="env_tags.action",
        )
    return Drive(part, None, first, count)


def _misses(clip: tuple[float, float], view: SpaceView) -> bool:
    """Tell whether no number between two ends is in the space, in some dimension."""
    assert view.low is not None
    assert view.high is not None
    return bool((view.low.astype(np.float64) > clip[1]).any() or (view.high.astype(np.float64) < clip[0]).any())


def _check_law(name: str, role: str, width: int, path: NodePath | None) -> None:
    law = fixed_width(role)
    if law is not None and law != width:
        where = "env_tags.action" if path is None else f"{_TAGS}.{show_path(path)}"
        raise ResolveError(
            "InvalidTag",
            f'{name}: role "{role}" is {law}-D by convention, but has {width} dims',
            where=where,
            mend="name another role, or one of your own that begins with x/",
        )


def _kind(view: SpaceView) -> str:
    name = _KINDS[view.kind]
    return f"a {len(view.shape)}-D Box" if view.kind == "box" else f"a {name} space"


def _invalid(cause: str, path: NodePath, mend: str = "") -> ResolveError:
    where = f"{_TAGS}.{show_path(path)}" if path else _TAGS
    return ResolveError("InvalidTag", cause, where=where, mend=mend or "make the tag fit the space")


def _disagree(name: str, space: Ends, tag: Ends, path: NodePath | None) -> ResolveError:
    where = "env_tags.action" if path is None else f"{_TAGS}.{show_path(path)}"
    return ResolveError(
        "InvalidTag",
        f"{name}: the tag says range {show_ends(tag)}, the space {show_ends(space)}",
        where=where,
        mend="drop the tag's range, or correct it",
    )
