"""Check: one thing that was looked at; and the shield that keeps a broken part from hiding the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from rlmesh_adapters.errors import describe_error

#: `ok` works; `missing` is optional and not there; `broken` does not work; `note` is a fact, good or bad.
State = Literal["ok", "missing", "broken", "note"]


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at.

    group: what it belongs to. found: what is there. mend: how to get or mend it, empty if nothing is to do.
    is_core: whether nothing can be run without it.
    """

    group: str
    name: str
    state: State
    found: str
    mend: str = ""
    is_core: bool = False


def shielded(group: str, look: Callable[[], Iterable[Check]]) -> list[Check]:
    """Return what was found, up to where looking itself failed, and that it failed."""
    found: list[Check] = []
    try:
        found.extend(look())
    except Exception as error:  # whatever is broken here, the rest is looked at
        reason = f"cannot be looked at: {describe_error(error)}"
        found.append(Check(group=group, name=group, state="broken", found=reason))
    return found
