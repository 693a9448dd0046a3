"""Model spec: what a model wants to see, and what it puts out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

from rlmesh_adapters.plans import Ends

from .actions import Action
from .checks import (
    accept_set,
    any_text,
    count,
    ends,
    flag,
    nullable,
    numbers,
    one_of,
    pair,
    shape,
    stack_depth,
    text,
)
from .encodings import CustomEncoding, accepted_or_custom, written
from .schema import DocumentError, Record, entry, kind_name
from .statistics import Statistics
from .tags import FLIPS, ORDERS
from .trees import Tree, parse_leaf, parse_tree


def _normalize(value: Any) -> bool | tuple[float, float]:
    if isinstance(value, bool):
        return value
    found: tuple[float, float] = pair(value)
    return found


# The inverse of anything smaller is next to infinite.
_LEAST_STD = 1e-30


@dataclasses.dataclass(frozen=True)
class Image(Record):
    """A camera image, as the model wants it.

    height, width: after resizing, null keeps the environment's. layout: order of its axes. channels: how many
    there must be. dtype: of the result. normalize: (lo, hi) that 0 and 255 become, true for (0, 1).
    lead_dims: axes of size 1 in front. upside_down: turned by 180 degrees. resample: `bilinear` or
    `bilinear_aa`, which smooths when it shrinks. allow_upscale: it may be made larger. fit: `stretch`, `crop` or
    `pad`, the first that will do. optional: made of `fill` (0 to 255) where the environment has none.
    stack: so many frames, the oldest first.

    Beyond v1: channel_order, flip: as in ImageTag. precision: `float` keeps a float camera from being rounded to
    8 bits. mean, std: taken off and divided by after `normalize`, one number a channel.
    """

    what: ClassVar[str] = "an image"
    leaf_type: ClassVar[str] = "image"
    is_open: ClassVar[bool] = True

    role: str = entry(text, always=True)
    height: int | None = entry(nullable(count()), default=None, always=True)
    width: int | None = entry(nullable(count()), default=None, always=True)
    layout: str = entry(one_of("hwc", "chw"), default="hwc", always=True)
    channels: int | None = entry(nullable(count()), default=None)
    dtype: str = entry(text, default="uint8", always=True)
    normalize: bool | tuple[float, float] = entry(_normalize, default=False, always=True)
    lead_dims: int = entry(count(), default=0, always=True)
    upside_down: bool = entry(flag, default=False, always=True)
    resample: str = entry(text, default="bilinear", always=True)
    allow_upscale: bool = entry(flag, default=False)
    fit: tuple[str, ...] | None = entry(nullable(accept_set), default=None)
    optional: bool = entry(flag, default=False)
    fill: int | None = entry(nullable(count(0, 255)), default=None)
    stack: int = entry(stack_depth, default=1)
    channel_order: str | None = entry(nullable(one_of(*ORDERS)), default=None)
    flip: str | None = entry(nullable(one_of(*FLIPS)), default=None)
    precision: str = entry(one_of("uint8", "float"), default="uint8")
    mean: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    std: tuple[float, ...] | None = entry(nullable(numbers), default=None)
    #: Both height and width, where it is written in Python.
    size: dataclasses.InitVar[int | tuple[int, int] | None] = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self, size: int | tuple[int, int] | None) -> None:
        """Take `size` apart, then check."""
        if size is not None:
            sides = size if isinstance(size, (tuple, list)) else (size, size)
            if len(sides) != 2:
                raise DocumentError(f"size must be one number or two, got {kind_name(size)}", path=("size",))
            height, width = sides
            object.__setattr__(self, "height", height)
            object.__setattr__(self, "width", width)
        super().__post_init__()

    def check(self) -> None:
        """Refuse mean and std that do not belong together."""
        if (self.mean is None) != (self.std is None) or len(self.mean or ()) != len(self.std or ()):
            raise DocumentError("mean and std need one number a channel each", path=("mean",))
        if self.std is not None and not all(self.std):
            raise DocumentError("std has a 0", path=("std",))
        if self.std is not None and min(abs(part) for part in self.std) < _LEAST_STD:
            raise DocumentError(f"std has a number below {_LEAST_STD:g}", path=("std",))

    def to_dict(self) -> dict[str, Any]:
        """See Record; one fit stands alone."""
        plain = super().to_dict()
        if plain.get("fit") is not None:
            plain["fit"] = written(tuple(plain["fit"]))
        return plain


@dataclasses.dataclass(frozen=True)
class State(Record):
    """One part of the model's state.

    encoding: of a rotation, in order of preference, or one of the user's own. dim: keep so many numbers in front.
    index: keep only this one. range: (lo, hi) it is mapped to from the environment's range, or one of each number.
    optional: zeros where the environment has none.

    Beyond v1: normalize: by statistics. keep_sign: of a quaternion, instead of the shortest rotation.
    """

    what: ClassVar[str] = "a state component"

    role: str = entry(text, always=True)
    encoding: tuple[str, ...] | CustomEncoding | None = entry(nullable(accepted_or_custom), default=None)
    dim: int | None = entry(nullable(count()), default=None)
    index: int | None = entry(nullable(count()), default=None)
    range: Ends | None = entry(nullable(ends), default=None)
    optional: bool = entry(flag, default=False)
    normalize: Statistics | None = entry(nullable(Statistics.parse), default=None)
    keep_sign: bool = entry(flag, default=False)

    @classmethod
    def parse(cls, value: Any) -> State:
        """Read one; a bare text is its role."""
        return cls(value) if isinstance(value, str) else super().parse(value)

    def check(self) -> None:
        """Refuse two ways to choose, and two ways to scale."""
        if self.dim is not None and self.index is not None:
            raise DocumentError("dim and index exclude one another", mend="keep one of the two")
        if self.range is not None and self.normalize is not None:
            raise DocumentError("range and normalize exclude one another", mend="keep one of the two")

    def to_dict(self) -> dict[str, Any]:
        """See Record; see also `canonical`."""
        plain = super().to_dict()
        if plain.get("encoding") is not None and not isinstance(self.encoding, CustomEncoding):
            plain["encoding"] = written(tuple(plain["encoding"]))
        return plain

    def canonical(self) -> dict[str, Any] | str:
        """Return the part as a list of components holds it: a role that stands alone is a bare text."""
        plain = self.to_dict()
        return self.role if len(plain) == 1 else plain


@dataclasses.dataclass(frozen=True, init=False)
class Concat(Record):
    """The model's state: its components in a row.

    pad_to: zeros behind them up to so many numbers. dtype: of the result. reshape: its shape, one axis may be -1.
    container: `array`, or `list` of numbers.

    Beyond v1: stack: so many frames, the oldest first.
    """

    what: ClassVar[str] = "a state"
    leaf_type: ClassVar[str] = "state"
    is_open: ClassVar[bool] = True

    components: tuple[State, ...] = entry(lambda value: _components(value), always=True)
    pad_to: int | None = entry(nullable(count()), default=None)
    dtype: str = entry(text, default="float32", always=True)
    reshape: tuple[int, ...] | None = entry(nullable(shape), default=None)
    container: str = entry(one_of("array", "list"), default="array")
    stack: int = entry(stack_depth, default=1)

    def __init__(
        self,
        *components: str | State,
        pad_to: Any = None,
        dtype: Any = "float32",
        reshape: Any = None,
        container: Any = "array",
        stack: Any = 1,
        extra: Any = None,
    ) -> None:
        values = {"pad_to": pad_to, "dtype": dtype, "reshape": reshape, "container": container, "stack": stack}
        for name, value in {"components": components, **values, "extra": extra or {}}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    @classmethod
    def build(cls, values: dict[str, Any], extra: dict[str, Any]) -> Concat:
        """See Record."""
        given = values.pop("components")
        if not isinstance(given, (list, tuple)):
            raise DocumentError(f"must be a list, got {kind_name(given)}", path=("components",))
        return cls(*given, **values, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """See Record."""
        return {**super().to_dict(), "components": [part.canonical() for part in self.components]}


def _components(value: Any) -> tuple[State, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise DocumentError(f"must be a list of at least one component, got {kind_name(value)}")
    parts = []
    for position, part in enumerate(value):
        try:
            parts.append(State.parse(part))
        except DocumentError as error:
            raise error.within(position) from None
    return tuple(parts)


@dataclasses.dataclass(frozen=True)
class Text(Record):
    """A text; `fill` stands in where the environment has none. container: `str`, or `list` of one."""

    what: ClassVar[str] = "a text"
    leaf_type: ClassVar[str] = "text"
    is_open: ClassVar[bool] = True

    role: str = entry(text, always=True)
    container: str = entry(one_of("str", "list"), default="str", always=True)
    fill: str | None = entry(nullable(any_text), default=None, always=True)


def _transform(value: Any) -> Any:
    return value if callable(value) else text(value)


@dataclasses.dataclass(frozen=True)
class Custom(Record):
    """An input made by a function of the user's own from one raw observation; as text, `module:function`."""

    what: ClassVar[str] = "a custom input"
    leaf_type: ClassVar[str] = "custom"
    is_open: ClassVar[bool] = True

    transform: str | Callable[[Any], Any] = entry(_transform, always=True)


_LEAVES: dict[str, type[Record]] = {leaf.leaf_type: leaf for leaf in (Image, Concat, Text, Custom)}


def _leaf(value: Any) -> Record:
    return Concat(value) if isinstance(value, State) else parse_leaf(value, _LEAVES, "a model's input")


def _input(value: Any) -> Tree:
    return parse_tree(value, _leaf, "model input tree")


@dataclasses.dataclass(frozen=True)
class ModelSpec(Record):
    """What a model wants to see, and what it puts out.

    input: a tree of Image, Concat (or State), Text and Custom. output: see Action.
    """

    what: ClassVar[str] = "a model spec"

    input: Tree = entry(_input, always=True)
    output: Action = entry(Action.parse, always=True)
