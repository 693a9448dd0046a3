"""Mistaken: what is named as a policy and is something else, such as an earlier run."""

from __future__ import annotations

import os

from rlmesh_adapters.errors import LoadError

from .sources import split_source


def refuse_mistaken(source: str, where: str) -> None:
    """Raise LoadError for a policy's source that names something else; where: it was given."""
    target, _ = split_source(source)
    if target and os.path.lexists(os.path.join(target, "run.json")):
        # Such as the second of two runs that `--baseline base/*` was given by the shell.
        raise LoadError(
            f"{target} is a run's folder, and no policy: --baseline takes one run",
            where=where,
            mend="name a policy, such as policy.py; a run is named without `*`, after --baseline or --resume",
        )
