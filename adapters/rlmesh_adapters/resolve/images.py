"""Images: what a model wants of a camera, matched with one that the environment has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlmesh_adapters.documents.spec import Image
from rlmesh_adapters.paths import NodePath, show_path
from rlmesh_adapters.plans import ImagePlan
from rlmesh_adapters.roles import is_sanctioned, nearest_role, quoted

from .dtypes import check_dtype, is_integer
from .errors import ResolveError
from .features import Features, ImageFeature, Note

RESAMPLES = ("bilinear", "bilinear_aa")
FITS = ("stretch", "crop", "pad")
_MOST_VALUES = 2**28
_MOST_AXES = 16


def plan_image(leaf: Image, placement: NodePath, features: Features) -> tuple[ImagePlan, list[Note]]:
    """Return the plan of one image input.

    Raises ResolveError for a role that is missing, and for what cannot be done with the camera that there is.
    """
    name = f'model input "{show_path(placement)}"'
    where = f"model_spec.input.{show_path(placement)}" if placement else "model_spec.input"
    if leaf.fill is not None and not leaf.optional:
        raise ResolveError(
            "Unsupported",
            f"{name} has a fill of {leaf.fill:g}, but is not optional",
            where=where,
            mend="set `optional: true`, or drop `fill`",
        )
    _check_values(leaf, name, where)
    found = next((image for image in features.images if image.role == leaf.role), None)
    notes: list[Note] = []
    if found is None and not leaf.optional and len(features.images) == 1 and is_sanctioned(leaf.role):
        found = features.images[0]
        notes.append(_rebound(name, leaf.role, found))
    if found is None:
        if not leaf.optional:
            raise _missing(name, where, leaf.role, features)
        return _zeros(leaf, placement, name, where), notes
    return _plan(leaf, placement, found, name, where, notes), notes


def _check_values(leaf: Image, name: str, where: str) -> None:
    if leaf.resample not in RESAMPLES:
        raise ResolveError(
            "Unsupported",
            f'{name}: unsupported resample "{leaf.resample}"',
            where=where,
            mend=f"use one of {quoted(RESAMPLES)}",
        )
    check_dtype(leaf.dtype, name, where)
    if leaf.normalize is not False and is_integer(leaf.dtype):
        raise ResolveError(
            "Unsupported",
            f"{name}: normalized numbers do not fit into dtype {leaf.dtype}",
            where=where,
            mend="set `dtype: float32`, or drop `normalize`",
        )
    if leaf.mean is not None and is_integer(leaf.dtype):
        raise ResolveError(
            "Unsupported",
            f"{name}: mean and std need a float dtype, got {leaf.dtype}",
            where=where,
            mend="set `dtype: float32`",
        )
    if leaf.dtype in ("bool", "int8"):
        raise ResolveError(
            "Unsupported",
            f"{name}: dtype {leaf.dtype} does not hold 0 to 255",
            where=where,
            mend="use uint8, a wider whole number, or float32",
        )
    for side in ("height", "width", "channels"):
        if getattr(leaf, side) == 0:
            raise ResolveError("Unsupported", f"{name}: {side} is 0", where=where, mend="drop it, or give a count")


def _rebound(name: str, role: str, found: ImageFeature) -> Note:
    return Note(
        "camera-rebound",
        "caution",
        f'{name}: no env camera has role "{role}"; bound to the env\'s only camera ("{found.role}") instead: '
        "declare the role that is meant",
        is_dropped=True,
    )


def _missing(name: str, where: str, role: str, features: Features) -> ResolveError:
    roles = [image.role for image in features.images]
    near = nearest_role(role, roles)
    return ResolveError(
        "MissingRole",
        f'{name} needs image role "{role}" but the env only has {quoted(roles)}',
        where=where,
        mend=f'did you mean "{near}"?' if near else "tag a camera with it, or set `optional: true`",
    )


def _zeros(leaf: Image, placement: NodePath, name: str, where: str) -> ImagePlan:
    if leaf.height is None or leaf.width is None or leaf.channels is None:
        raise ResolveError(
            "MissingWidth",
            f"{name} is optional and absent, so its zero fill needs height, width and channels",
            where=where,
            mend="declare the three",
        )
    _check_channels(leaf, leaf.channels, name, where)
    _check_size((leaf.height, leaf.width, leaf.channels), leaf, name, where)
    low, high = _normalized(leaf)
    return ImagePlan(
        placement=placement,
        source=None,
        role=leaf.role,
        bound_role="",
        dst_layout=leaf.layout,
        dtype=leaf.dtype,
        normalize=None if leaf.normalize is False else (low, high),
        mean=_each(leaf.mean, leaf.channels),
        std=_each(leaf.std, leaf.channels),
        lead_dims=leaf.lead_dims,
        stack=leaf.stack,
        zero_fill=(leaf.height, leaf.width, leaf.channels),
        fill=int(leaf.fill or 0),
    )


def _normalized(leaf: Image) -> tuple[float, float]:
    return leaf.normalize if isinstance(leaf.normalize, tuple) else (0.0, 1.0)


def _each(values: tuple[float, ...] | None, channels: int) -> tuple[float, ...]:
    """Return one number a channel; a single one is for all."""
    if values is None:
        return ()
    return values * channels if len(values) == 1 else values


def _check_channels(leaf: Image, channels: int, name: str, where: str) -> None:
    if leaf.mean is not None and len(leaf.mean) not in (1, channels):
        raise ResolveError(
            "DimMismatch",
            f"{name}: mean has {len(leaf.mean)} numbers for {channels} channels",
            where=where,
            mend="give one number, or one a channel",
        )


def _check_size(shape: tuple[int, int, int], leaf: Image, name: str, where: str) -> None:
    """Refuse what no memory holds, and more axes than an array may have."""
    if math.prod(shape) * leaf.stack > _MOST_VALUES:
        raise ResolveError(
            "Unsupported",
            f"{name}: an image of {'x'.join(map(str, shape))}, {leaf.stack} at a time, is too large",
            where=where,
            mend=f"ask for at most {_MOST_VALUES:,} values",
        )
    if leaf.lead_dims > _MOST_AXES:
        raise ResolveError(
            "Unsupported",
            f"{name}: {leaf.lead_dims} axes of size 1",
            where=where,
            mend=f"ask for at most {_MOST_AXES}",
        )


def _plan(
    leaf: Image, placement: NodePath, camera: ImageFeature, name: str, where: str, notes: list[Note]
) -> ImagePlan:
    height, width, channels = camera.shape
    if leaf.channels is not None and leaf.channels != channels:
        raise ResolveError(
            "Unsupported",
            f'{name} wants {leaf.channels} channels but camera "{camera.role}" has {channels}',
            where=where,
            mend="channels are never converted; use another camera, or a model for it",
        )
    _check_channels(leaf, channels, name, where)
    size = _size(leaf, height, width)
    _check_size((*(size or (height, width)), channels), leaf, name, where)
    tag = camera.tag
    swaps = _swaps(leaf, camera, name, where)
    _note_order(leaf, camera, name, notes)
    _note_range(leaf, camera, name, notes)
    turned = tag.upside_down != leaf.upside_down
    rows = turned != ((tag.flip == "vertical") != (leaf.flip == "vertical"))
    columns = turned != ((tag.flip == "horizontal") != (leaf.flip == "horizontal"))
    return ImagePlan(
        placement=placement,
        source=camera.source,
        role=leaf.role,
        bound_role=camera.role,
        src_layout=tag.layout,
        dst_layout=leaf.layout,
        src_shape=camera.shape,
        flip_rows=rows,
        flip_columns=columns,
        swap_channels=swaps,
        size=size,
        fit=_fit(leaf, (height, width), size, name, where) if size is not None else "",
        resample=leaf.resample,
        src_range=camera.range,
        is_float=camera.is_float and leaf.precision == "float",
        dtype=leaf.dtype,
        normalize=None if leaf.normalize is False else _normalized(leaf),
        mean=_each(leaf.mean, channels),
        std=_each(leaf.std, channels),
        lead_dims=leaf.lead_dims,
        stack=leaf.stack,
    )


def _size(leaf: Image, height: int, width: int) -> tuple[int, int] | None:
    if leaf.height is None and leaf.width is None:
        return None
    return leaf.height if leaf.height is not None else height, leaf.width if leaf.width is not None else width


def _swaps(leaf: Image, camera: ImageFeature, name: str, where: str) -> bool:
    """Tell whether channels are reversed; only where both sides say what theirs is."""
    given, wanted = camera.tag.channel_order, leaf.channel_order
    if wanted is not None and given is None:
        raise ResolveError(
            "Unsupported",
            f'{name} wants channel order {wanted}, but camera "{camera.role}" does not say its own',
            where=where,
            mend="declare `channel_order: rgb` or `channel_order: bgr` in the camera's tag",
        )
    if given is None or wanted is None or given == wanted:
        return False
    if camera.shape[2] % 3:
        raise ResolveError(
            "Unsupported",
            f"{name}: {camera.shape[2]} channels have no order {wanted}",
            where=where,
            mend="drop `channel_order` in the model's input",
        )
    return True


def _note_order(leaf: Image, camera: ImageFeature, name: str, notes: list[Note]) -> None:
    """Note that a model may be meant to see RGB, as nearly all are, and is handed BGR."""
    if camera.tag.channel_order == "bgr" and leaf.channel_order is None and camera.shape[2] % 3 == 0:
        notes.append(
            Note(
                "camera-order-assumed",
                "caution",
                f'{name}: camera "{camera.role}" is bgr, and the model\'s channel order is unknown; frames are '
                "handed on as bgr: declare `channel_order` in the model's input",
            )
        )


def _note_range(leaf: Image, camera: ImageFeature, name: str, notes: list[Note]) -> None:
    if camera.is_float and camera.range is None:
        notes.append(
            Note(
                "camera-range-assumed",
                "caution",
                f'{name}: float camera "{camera.role}" has no finite range; it is taken for 0 to 1: '
                "declare `range` in its tag",
            )
        )
    if camera.is_float and leaf.precision == "uint8" and not is_integer(leaf.dtype):
        notes.append(
            Note(
                "camera-rounded",
                "info",
                f'{name}: float camera "{camera.role}" is rounded to 8 bits; `precision: float` keeps it as it is',
            )
        )
    if not camera.is_float and not camera.is_bytes_like:
        notes.append(
            Note(
                "camera-saturates",
                "caution",
                f'{name}: camera "{camera.role}" holds whole numbers that are no bytes; those over 255 become 255',
            )
        )


def _fit(leaf: Image, env: tuple[int, int], target: tuple[int, int], name: str, where: str) -> str:
    """Return how the camera is brought to its size: the first declared way that does not make it larger."""
    known = [mode for mode in leaf.fit or () if mode in FITS]
    if 0 in env:
        return known[0] if known else "stretch"
    if env[0] * target[1] != env[1] * target[0]:
        for mode in known:
            if leaf.allow_upscale or not _upscales(env, target, mode):
                return mode
        raise ResolveError("Unsupported", *_no_fit(leaf, env, target, known, name), where=where, mend=_FIT_MEND)
    if leaf.fit is not None and not known:
        raise ResolveError(
            "Unsupported", f"{name}: no fit of {quoted(leaf.fit)} is known", where=where, mend=_FIT_MEND
        )
    mode = known[0] if known else "stretch"
    if _upscales(env, target, mode) and not leaf.allow_upscale:
        raise ResolveError(
            "Unsupported",
            f"{name} would upscale the camera from {_by(env)} to {_by(target)}",
            where=where,
            mend="set `allow_upscale: true`, or ask for a smaller image",
        )
    return mode


_FIT_MEND = f"declare `fit` with one or more of {quoted(FITS)}"


def _no_fit(
    leaf: Image, env: tuple[int, int], target: tuple[int, int], known: Sequence[str], name: str
) -> list[str]:
    change = f"the aspect ratio changes from {_by(env)} to {_by(target)}"
    if leaf.fit is None:
        return [f"{name}: {change} and no fit is declared"]
    if not known:
        return [f"{name}: {change} and no fit of {quoted(leaf.fit)} is known"]
    return [f"{name}: {change} and every declared fit would upscale; set `allow_upscale: true` if that is meant"]


def _upscales(env: tuple[int, int], target: tuple[int, int], mode: str) -> bool:
    grows = (target[0] > env[0], target[1] > env[1])
    return all(grows) if mode == "pad" else any(grows)


def _by(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
