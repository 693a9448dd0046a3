"""Mistaken: what is named as a policy and is something else: a route, a checkpoint, an earlier run."""

from __future__ import annotations

import os
import shlex

from rlmesh_adapters.errors import LoadError

from .sources import split_source

_ROUTES = (".yaml", ".yml")
#: Modules may be called so too: `policies.onnx` is one unless there is such a file.
_CHECKPOINTS = (".zip", ".pt", ".pth", ".ckpt", ".safetensors", ".onnx", ".pkl", ".npz")


def refuse_mistaken(source: str, where: str, *, is_missing: bool = False) -> None:
    """Raise LoadError for a policy's source that names something else.

    where: it was given. is_missing: whether there is no module of that name.
    """
    target, attribute = split_source(source)
    if not target:
        return
    if os.path.lexists(os.path.join(target, "run.json")):
        # Such as the second of two runs that `--baseline base/*` was given by the shell.
        raise LoadError(
            f"{target} is a run's folder, and no policy: --baseline takes one run",
            where=where,
            mend="name a policy, such as policy.py; a run is named without `*`, after --baseline or --resume",
        )
    if target.lower().endswith(_ROUTES) and not attribute:
        raise LoadError(
            f"{target} is no policy: by its name it is a route",
            where=where,
            mend=f"that is a route: --route {shlex.quote(target)}",
        )
    is_file = is_missing or os.sep in target or os.path.exists(target)
    if target.lower().endswith(_CHECKPOINTS) and is_file:
        raise LoadError(
            f"{target} is a checkpoint, and no policy",
            where=where,
            mend="write a policy that loads it (`rlmesh init` writes one to begin with), and name both: "
            f"policy.py --policy-arg checkpoint={shlex.quote(target)}",
        )
