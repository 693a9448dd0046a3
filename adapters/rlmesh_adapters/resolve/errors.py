"""Errors of resolving: documents that are sound by themselves, but do not fit the spaces or one another."""

from __future__ import annotations

from rlmesh_adapters.errors import HarnessError

# Documents of strangers hold names of any length.
_LONGEST = 1_000


class ResolveError(HarnessError):
    """Env tags, spaces and model spec that cannot be brought together.

    code: `InvalidTag`, `Duplicate`, `MissingRole`, `DimMismatch`, `EncodingMismatch`, `SliceOutOfRange`,
        `MissingWidth`, `Unsupported`, `UntrustedEntrypoint` or `UnsupportedKind`.
    """

    def __init__(self, code: str, cause: str, *, where: str = "", mend: str = "") -> None:
        cause, where, mend = (
            text if len(text) <= _LONGEST else text[:_LONGEST] + "..." for text in (cause, where, mend)
        )
        super().__init__(cause, where=where, mend=mend)
        self.code = code
