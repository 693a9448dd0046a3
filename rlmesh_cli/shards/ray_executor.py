"""RayExecutor: workers on the nodes of a Ray cluster, each behind a relay."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rlmesh_adapters.errors import HarnessError

from .messages import Gone, Order, Refused, Task, Word
from .processes import unsendable
from .relay import Node, Relay, look_around
from .shipping import LEFT_OUT, Shipment
from .threads import core_count

#: What `--cluster` says for a cluster that is started for the run.
LOCAL = "ray"
#: Seconds for which a worker may wait for a place.
PLACE_SECONDS = 120.0
_RECEIVE_SECONDS = 5.0
_CLOSE_SECONDS = 5.0
_KNOCK_SECONDS = 5.0


class RayExecutor:
    """Workers that are actors of a Ray cluster. One whose node is lost is `Gone`, and its successor finds another.

    address: `ray` starts a cluster on this machine; else that of a head, `host:port` or `ray://host:port`.
    resources: of each worker, such as cpu and gpu. shipment: files that workers get.

    Raises HarnessError where Ray is not installed or the cluster cannot be reached.
    """

    name = "worker on the cluster"
    is_early = False

    def __init__(self, address: str, *, workers: int, resources: Mapping[str, float], shipment: Shipment) -> None:
        self._address, self._workers = address, workers
        self._resources = {"cpu": 1.0, **{name.lower(): number for name, number in resources.items()}}
        self._shipment = shipment
        self._ray = _import_ray()
        self._here = look_around(shipment.policy, shipment.folder or Path.cwd())
        self._actors: dict[int, _Actor] = {}
        self._is_connected = False

    @property
    def threads(self) -> int:
        """Threads of numerical libraries in each worker: as many as it has processors."""
        return max(1, int(self._resources["cpu"]))

    def start(self, worker: int) -> None:
        """Ask for a worker; see Executor. It has no place yet, so its orders are kept until it has one."""
        if not self._is_connected:
            self._connect()
        ray = self._ray
        others = {name: number for name, number in self._resources.items() if name not in ("cpu", "gpu")}
        made = ray.remote(
            num_cpus=self._resources["cpu"],
            num_gpus=self._resources.get("gpu", 0),
            resources=others or None,
            max_restarts=0,
            scheduling_strategy="SPREAD",
            # One thread for each direction: an answer that is waited for keeps no order waiting.
            concurrency_groups={"orders": 1, "words": 1},
        )(Relay)
        handle = made.remote(self.threads, self._shipment.policy)
        meeting = handle.meet.options(concurrency_group="orders").remote()
        self._actors[worker] = _Actor(handle=handle, awaited=meeting, until=time.monotonic() + PLACE_SECONDS)

    def send(self, worker: int, order: Order) -> None:
        """Give an order; see Executor."""
        actor = self._actors.get(worker)
        if actor is None:
            return
        if actor.node is None:
            _pickled(order)  # what cannot be sent is said at once
            actor.waiting.append(order)
            return
        if isinstance(order, Task):
            order = self._shipment.placed(order, actor.node.folder)
        actor.handle.send.options(concurrency_group="orders").remote(_pickled(order))

    def receive(self, seconds: float) -> list[tuple[int, Word]]:
        """Return what was said; see Executor."""
        awaited = {actor.awaited: worker for worker, actor in self._actors.items()}
        if not awaited:
            time.sleep(seconds)
            return []
        ready, _ = self._ray.wait(list(awaited), num_returns=1, timeout=seconds)
        if ready:
            ready, _ = self._ray.wait(list(awaited), num_returns=len(awaited), timeout=0)
        words = [(awaited[one], word) for one in ready for word in self._words_of(awaited[one])]
        return words + self._unplaced()

    def _words_of(self, worker: int) -> list[Word]:
        actor = self._actors[worker]
        try:
            answer = self._ray.get(actor.awaited)
        except self._ray.exceptions.RayError as error:
            self._forget(worker)
            if actor.node is None and "No module named" in str(error):
                return [_not_installed(error), Gone("rlmesh-cli is not there")]
            return [Gone(f"its node was lost, or Ray ended it: {type(error).__name__}")]
        words: list[Word] = []
        if actor.node is None:
            refused = self._mismatch(answer)
            if refused is not None:
                self._forget(worker)
                return [refused, Gone("it does not fit")]
            actor.node = answer
            while actor.waiting:
                self.send(worker, actor.waiting.popleft())
        else:
            words = [self._shipment.returned(word, actor.node.folder) for word in answer]
        if any(isinstance(word, Gone) for word in words):
            self._forget(worker)
        else:
            receive = actor.handle.receive.options(concurrency_group="words")
            actor.awaited = receive.remote(_RECEIVE_SECONDS)
        return words

    def _mismatch(self, node: Node) -> Refused | None:
        """Return why a node cannot play what is meant here, None if it can."""
        for name, version in self._here.versions.items():
            other = node.versions.get(name, "not there")
            if other != version:
                what = "the policy's file" if name == "policy" else name
                return Refused(
                    f"{what} is {version} here and {other} on node {node.name}: rows would not be the same",
                    "--cluster",
                    f"install {name} {version} on the nodes"
                    if name != "policy"
                    else "save the file, and run again",
                )
        return None

    def _unplaced(self) -> list[tuple[int, Word]]:
        """Give up workers that have waited too long for a place."""
        now = time.monotonic()
        words: list[tuple[int, Word]] = []
        for worker, actor in list(self._actors.items()):
            if actor.node is None and now > actor.until:
                self._forget(worker)
                wanted = ", ".join(f"{name}={number:g}" for name, number in self._resources.items())
                there = self._ray.cluster_resources()
                shown = ", ".join(
                    f"{name.lower()}={number:g}"
                    for name, number in sorted(there.items())
                    if ":" not in name and "memory" not in name
                )
                cause = f"no node has had room for worker {worker} ({wanted}) for {PLACE_SECONDS:.0f} s"
                mend = f"use fewer --workers or less --ray-resources: the cluster has {shown or 'nothing'} in all"
                words += [(worker, Refused(cause, "--cluster", mend)), (worker, Gone("it had no place"))]
        return words

    def _forget(self, worker: int) -> None:
        actor = self._actors.pop(worker)
        with contextlib.suppress(Exception):  # it may be dead already, or the cluster
            self._ray.kill(actor.handle)

    def _connect(self) -> None:
        os.environ["RAY_RUNTIME_ENV_IGNORE_GITIGNORE"] = "1"  # weights are often in a .gitignore
        given: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "namespace": "rlmesh"}
        if self._shipment.folder is not None:
            excludes = [f"{name}/" for name in LEFT_OUT]
            given["runtime_env"] = {"working_dir": str(self._shipment.folder), "excludes": excludes}
        if self._address == LOCAL:
            given["address"] = "local"
            given["num_cpus"] = max(core_count(), int(self._workers * self._resources["cpu"] + 0.999))
            given["include_dashboard"] = False
        else:
            given["address"] = self._address
        try:
            _knock(self._address)
            with _own_signals():
                self._ray.init(**given)
        except Exception as error:  # Ray raises whatever comes up
            raise _unreachable(self._address, error) from error
        self._is_connected = True

    def close(self) -> None:
        """End all workers, and leave the cluster; see Executor."""
        if not self._is_connected:  # any call would have Ray connect to whatever it finds
            return
        closing = []
        for actor in self._actors.values():
            with contextlib.suppress(Exception):
                closing.append(actor.handle.close.options(concurrency_group="orders").remote())
        with contextlib.suppress(Exception):
            self._ray.wait(closing, num_returns=len(closing), timeout=_CLOSE_SECONDS)
        for worker in list(self._actors):
            self._forget(worker)
        self._is_connected = False
        with _own_signals():
            self._ray.shutdown()


class _Actor(msgspec.Struct):
    """One worker's relay, and what is awaited of it.

    until: when it must have a place. waiting: orders that are kept till then.
    """

    handle: Any
    awaited: Any
    until: float
    node: Node | None = None
    waiting: deque[Order] = msgspec.field(default_factory=deque)


def _knock(address: str) -> None:
    """Raise OSError where nobody listens: Ray would try for minutes, in a call that no signal ends."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_SECONDS).close()


def _import_ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - few runs need it, and it takes a second
    except ImportError as error:
        raise HarnessError(
            "Ray is not installed",
            where="--cluster",
            mend="pip install 'rlmesh-cli[ray]', here and on the nodes",
        ) from error
    return ray


def _pickled(order: Order) -> bytes:
    try:
        return pickle.dumps(order)
    except Exception as error:
        raise unsendable(error) from error


def _not_installed(error: BaseException) -> Refused:
    line = next((line.strip() for line in str(error).splitlines() if "No module named" in line), "")
    return Refused(
        f"a node of the cluster cannot load rlmesh: {line}",
        "--cluster",
        "install the same rlmesh-cli on every node, with what environment and policy need",
    )


def _unreachable(address: str, error: BaseException) -> HarnessError:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    if "ersion mismatch" in str(error):
        text = " ".join(str(error).split())
        mend = "use the same versions of Python and Ray here and on the cluster"
    elif "working_dir" in str(error) or "package" in text.lower():
        mend = "see that the policy's folder can be read, and is not too large"
    else:
        mend = "start a head with `ray start --head`, or use --cluster ray to start one for this run"
    return HarnessError(f"the cluster `{address}` cannot be used: {text}", where="--cluster", mend=mend)


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Put back what Ctrl-C and SIGTERM do; Ray would have them end the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
