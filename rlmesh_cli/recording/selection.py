"""Selection: which episodes' videos are kept."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from rlmesh_adapters.errors import RouteError
from rlmesh_cli.episodes import EpisodeResult

_COUNTED = re.compile(r"(first|worst):([0-9]{1,9})")
_MEND = "write all, failures, first:N, worst:N or flips:RUN"


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """A rule such as `first:5`.

    kind: `all`; `first` of the plan; `failures`, episodes that had no success or could not be finished; `worst` by
        return, those that could not be finished first; `flips`, episodes whose success is not that of `run`.
    count: how many, of `first` and `worst`. run: name of a run, of `flips`.
    """

    kind: Literal["all", "first", "failures", "worst", "flips"] = "all"
    count: int = 0
    run: str = ""

    def seeds(self, planned: tuple[int, ...]) -> frozenset[int] | None:
        """Return the seeds of episodes that may be kept, None if any may.

        planned: one seed an episode.
        """
        return frozenset(planned[: self.count]) if self.kind == "first" else None


def parse_selection(text: str, where: str) -> Selection:
    """Read a rule as typed.

    Raises RouteError, at `where`, for what is none.
    """
    word = text.strip()
    if word in ("all", "failures"):
        return Selection(kind=word)  # type: ignore[arg-type]
    counted = _COUNTED.fullmatch(word)
    if counted is not None and int(counted[2]) > 0:
        return Selection(kind=counted[1], count=int(counted[2]))  # type: ignore[arg-type]
    kind, colon, run = word.partition(":")
    if kind == "flips" and colon and run.strip():
        return Selection(kind="flips", run=run.strip())
    cause = f"`{text}` keeps no episode" if counted is not None else f"`{text}` does not say which videos are kept"
    raise RouteError(cause, where=where, mend=_MEND)


def goodness(row: EpisodeResult) -> tuple[bool, float, int]:
    """Return what episodes are sorted by, the best first: finished ones, by return, and the later of equals."""
    return row.is_error, -row.return_, -row.index
