"""Schema: frozen classes whose fields carry their own check, for documents that are read or written in Python.

A field is declared with `entry(check)`. The class checks its fields whenever it is made, so that a document that
is parsed and one that is written in Python obey the same rules.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from rlmesh_adapters.errors import HarnessError, nearest, shortened

#: Takes a raw value, returns the checked one; raises DocumentError saying what was expected.
Check = Callable[[Any], Any]

_IGNORABLE = ("x-", "ext.")
_LONGEST = 1_000


class DocumentError(HarnessError):
    """A document that cannot be meant, with the path of the offending value.

    path: names and positions that lead to it.
    """

    def __init__(self, cause: str, *, path: tuple[str | int, ...] = (), mend: str = "") -> None:
        super().__init__(_clipped(cause), where=_clipped(shown(path)), mend=_clipped(mend))
        self.path = path

    def within(self, *outer: str | int) -> DocumentError:
        """Return the same error, seen from further outside."""
        return type(self)(self.cause, path=(*outer, *self.path), mend=self.mend)


def _clipped(text: str) -> str:
    """Return text that a screen can take; documents of strangers hold names of any length."""
    return shortened(text, _LONGEST)


def shown(path: tuple[str | int, ...]) -> str:
    """Return a path as `output.components[0].dim`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def entry(check: Check, *, default: Any = dataclasses.MISSING, always: bool = False) -> Any:
    """Declare a field.

    check: of its value; the default is taken unchecked. always: written out even where it is the default.
    """
    return dataclasses.field(default=default, metadata={"check": check, "always": always})


@dataclasses.dataclass(frozen=True)
class Record:
    """One object of a document.

    extra: fields that nobody here knows; kept as they came, and refused when the document is used, unless their
    name begins with `x-` or `ext.`.
    """

    #: What an error calls it.
    what: ClassVar[str] = "an object"
    #: Value of the key `type` for leaves of a tree.
    leaf_type: ClassVar[str] = ""
    #: Whether unknown fields are kept.
    is_open: ClassVar[bool] = False

    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        for field in _entries(type(self)):
            value = getattr(self, field.name)
            if value is field.default:
                continue
            try:
                object.__setattr__(self, field.name, field.metadata["check"](value))
            except DocumentError as error:
                raise error.within(field.name) from None
        self.check()

    def check(self) -> None:
        """Check what no field can know alone; raises DocumentError."""

    @classmethod
    def parse(cls, value: Any) -> Self:
        """Read one from plain values; one that is there already is taken as it is.

        Raises DocumentError with the path inside this object.
        """
        if isinstance(value, cls):
            return value
        known = {field.name: field for field in _entries(cls)}
        given = mapping(value, cls.what)
        # Of a leaf the type was read by whoever found it.
        ignored = ("type",) if cls.leaf_type else ()
        unknown = {name: part for name, part in given.items() if name not in known and name not in ignored}
        if unknown and not cls.is_open:
            name = next(iter(unknown))
            raise unknown_field(name, cls.what, known)
        missing = [name for name, field in known.items() if name not in given and is_required(field)]
        if missing:
            raise DocumentError(f"{cls.what} needs `{missing[0]}`", mend=f"add `{missing[0]}`")
        return cls.build({name: given[name] for name in known if name in given}, unknown)

    @classmethod
    def build(cls, values: dict[str, Any], extra: dict[str, Any]) -> Self:
        """Make one of raw field values."""
        return cls(**values, extra=extra)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values in canonical form: what is always written or is not its default, then the rest."""
        written: dict[str, Any] = {"type": self.leaf_type} if self.leaf_type else {}
        for field in _entries(type(self)):
            value = getattr(self, field.name)
            if field.metadata["always"] or value != field.default:
                written[field.name] = plain(value)
        written.update({name: self.extra[name] for name in sorted(self.extra)})
        return written

    def bare_fields(self) -> list[str]:
        """Return the unknown fields that may not be ignored."""
        return sorted(name for name in self.extra if not name.startswith(_IGNORABLE))

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """Return the names of all known fields."""
        return tuple(field.name for field in _entries(cls))


def _entries(cls: type[Record]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(cls) if "check" in field.metadata]


def is_required(field: dataclasses.Field[Any]) -> bool:
    """Tell whether a field has no default."""
    return field.default is dataclasses.MISSING


def mapping(value: Any, what: str) -> dict[str, Any]:
    """Return a mapping with text keys; raises DocumentError for anything else."""
    if not isinstance(value, Mapping):
        raise DocumentError(f"{what} must be a mapping, got {kind_name(value)}")
    for key in value:
        if not isinstance(key, str):
            raise DocumentError(f"{what} has the key {short(key)}, expected text", mend="put it in quotes")
    return dict(value)


def unknown_field(name: str, what: str, known: Mapping[str, Any]) -> DocumentError:
    """Return the error of a field that is not allowed where it stands."""
    near = nearest(name, known, limit=1)
    mend = f"did you mean `{near[0]}`?" if near else f"known here: {', '.join(known)}"
    return DocumentError(f"unknown field `{name}` in {what}", path=(name,), mend=mend)


def kind_name(value: Any) -> str:
    """Return what a value is, in the words of a document, with its text."""
    if value is None:
        return "null"
    names = ((bool, "a bool"), (int, "a number"), (float, "a number"), (str, "text"), (Mapping, "a mapping"))
    for kind, name in names:
        if isinstance(value, kind):
            return name if isinstance(value, Mapping) else f"{name}, {short(value)}"
    return "a list" if isinstance(value, (list, tuple)) else f"{type(value).__name__}"


def short(value: Any) -> str:
    """Return a value's text, or its beginning."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write out numbers of very many digits
        return "a very large number"
    return shortened(text, 60)


def plain(value: Any) -> Any:
    """Return a value of a document as dicts, lists, text and numbers."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in value]
    # A function of the user's own does not travel.
    return "<local>" if callable(value) else value
