"""Features: what tagged spaces give, each with its role, ready to be matched with what a model wants."""

from __future__ import annotations

import msgspec

from rlmesh_adapters.advisories import Severity
from rlmesh_adapters.documents.actions import Actuator
from rlmesh_adapters.documents.tags import ImageTag
from rlmesh_adapters.paths import NodePath
from rlmesh_adapters.plans import Ends


class Note(msgspec.Struct, frozen=True):
    """Something that the reader should know of a route that runs.

    code: stable name.
    is_dropped: whether it is listed under `dropped:` of the peer's text.
    """

    code: str
    severity: Severity
    message: str
    is_dropped: bool = False


class ImageFeature(msgspec.Struct, frozen=True):
    """A camera. shape: (height, width, channels). range: of its numbers where it holds floats, None if unknown."""

    source: NodePath
    tag: ImageTag
    shape: tuple[int, int, int]
    range: tuple[float, float] | None
    is_float: bool
    is_bytes_like: bool

    @property
    def role(self) -> str:
        """Its role."""
        return self.tag.role


class StateFeature(msgspec.Struct, frozen=True):
    """A run of numbers: `width` of the source's `src_width`, from `offset`. is_field: part of a split.

    encoding: what a rotation is in; declares: whether any encoding is named, known or not.
    """

    source: NodePath
    role: str
    width: int
    src_width: int
    offset: int
    is_field: bool
    declares: bool
    encoding: str
    range: Ends | None


class TextFeature(msgspec.Struct, frozen=True):
    """A text."""

    source: NodePath
    role: str


class UnknownFeature(msgspec.Struct, frozen=True):
    """A leaf of a kind that nobody here knows."""

    source: NodePath
    role: str
    kind: str


class Drive(msgspec.Struct, frozen=True):
    """One component of the environment's action.

    range: reconciled with the bounds of the space. low, count: of a discrete one, count 0 for numbers.
    """

    actuator: Actuator
    range: Ends | None
    low: int = 0
    count: int = 0


class Features(msgspec.Struct, frozen=True):
    """All that an environment gives and takes, in the order of its tags."""

    images: tuple[ImageFeature, ...]
    states: tuple[StateFeature, ...]
    texts: tuple[TextFeature, ...]
    unknown: tuple[UnknownFeature, ...]
    drives: tuple[Drive, ...]
    clip: tuple[float, float] | None
    notes: tuple[Note, ...]
