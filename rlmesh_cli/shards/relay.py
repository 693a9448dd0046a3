"""Relay: stands on a node of a cluster, starts one worker process there, and passes messages on.

The worker is the same as on one machine, in the main thread of a process of its own: time limits work, and what
kills it leaves somebody to say so.
"""

from __future__ import annotations

import os
import pickle
from hashlib import sha256
from pathlib import Path

import msgspec

from rlmesh_cli.provenance import versions

from .messages import Order, Word
from .processes import ProcessExecutor

_COMPARED = ("rlmesh-cli", "python", "gymnasium", "numpy")


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker finds on its node.

    name: of the machine. folder: in which the shipped files are. versions: by package; `policy` is the hash of its
    file.
    """

    name: str
    folder: str
    versions: dict[str, str]


def look_around(policy: str | None, folder: Path) -> Node:
    """Return what is to be found here; policy: its file, seen from `folder`, None if there is none."""
    known = {name: version for name, version in versions().items() if name in _COMPARED}
    if policy is not None:
        file = folder / policy
        known["policy"] = sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else "no such file"
    return Node(name=os.uname().nodename, folder=str(folder), versions=known)


class Relay:
    """One worker's connection with the one who keeps the books.

    threads: of numerical libraries. policy: its file among those that were shipped, None if there is none.
    """

    def __init__(self, threads: int, policy: str | None) -> None:
        # Never forked: this process has threads of the cluster's.
        self._executor = ProcessExecutor(start_method="spawn", threads=threads)
        self._policy = policy

    def meet(self) -> Node:
        """Start the worker, and say where."""
        self._executor.start(0)
        return look_around(self._policy, Path.cwd())

    def send(self, order: bytes) -> None:
        """Pass an order on."""
        known: Order = pickle.loads(order)
        self._executor.send(0, known)

    def receive(self, seconds: float) -> list[Word]:
        """Return what the worker said, waiting at most so long for its first word."""
        return [word for _, word in self._executor.receive(seconds)]

    def close(self) -> None:
        """End the worker."""
        self._executor.close()
