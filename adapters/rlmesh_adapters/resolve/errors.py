"""Errors of resolving: documents that are sound by themselves, but do not fit the spaces or one another."""

from __future__ import annotations

from rlmesh_adapters.errors import HarnessError


class ResolveError(HarnessError):
    """Env tags, spaces and model spec that cannot be brought together.

    code: `InvalidTag`, `Duplicate`, `MissingRole`, `DimMismatch`, `EncodingMismatch`, `SliceOutOfRange`,
        `MissingWidth`, `Unsupported`, `UntrustedEntrypoint` or `UnsupportedKind`.
    """

    def __init__(self, code: str, cause: str, *, where: str = "", mend: str = "") -> None:
        super().__init__(cause, where=where, mend=mend)
        self.code = code
